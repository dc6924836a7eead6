import { isIP } from 'node:net';
import { networkText } from './compile-lists.ts';
import { type CompiledPolicy, compilePolicy, type RuleProtection } from './compile-policy.ts';
import { syscallText } from './compile-seccomp.ts';
import type { PolicyFacts, RuleRef } from './compiled.ts';
import { type Mechanism, type Section, VERBS, type Verb } from './document.ts';
import { decidingRule } from './file-decision.ts';
import { coversRule } from './network-rule.ts';
import type { NetworkAllowance, Policy, Source } from './policy.ts';

export type Question =
  | { readonly path: string }
  | { readonly socket: { readonly family: string; readonly type: string } }
  | { readonly syscall: string; readonly arguments?: readonly number[] }
  | { readonly capability: string }
  | { readonly device: string }
  | { readonly service: string }
  /** A domain or an address. */
  | {
      readonly host: string;
      readonly port?: number;
      readonly protocol?: 'tcp' | 'udp';
    };

export interface Answer {
  /** `read /work/a`, `socket inet stream`. */
  readonly what: string;
  readonly verdict: 'allow' | 'deny';
  /** That decides; absent: nothing speaks of it. */
  readonly rule?: { readonly text: string; readonly source: Source };
  /** Of a denial: what keeps to it. Of what is allowed: nothing. */
  readonly by: readonly Mechanism[];
  /** False for a denial that nothing on this node keeps to. */
  readonly isEnforced: boolean;
  readonly notes: readonly string[];
}

/**
 * Which rule decides what is asked, and by what it is enforced on a node. `invalid-argument` for a path that
 * is none.
 */
export function explainPolicy(
  policy: Policy,
  facts: PolicyFacts,
  question: Question,
): readonly Answer[] {
  const context: Context = { policy, compiled: compilePolicy(policy, facts) };
  if ('path' in question) return VERBS.map((verb) => explainFile(context, question.path, verb));
  if ('socket' in question) return [explainSocket(context, question.socket)];
  if ('syscall' in question) return [explainSyscall(context, question)];
  if ('service' in question) return [explainService(context, question.service)];
  if ('host' in question) return [explainHost(context, question)];
  if ('device' in question) {
    const { device } = question;
    return [explainListed(context, 'devices', device, policy.devices)];
  }
  const { capability } = question;
  return [explainListed(context, 'capabilities', capability, policy.capabilities)];
}

interface Context {
  readonly policy: Policy;
  readonly compiled: CompiledPolicy;
}

function explainFile({ policy, compiled }: Context, path: string, verb: Verb): Answer {
  const what = `${verb} ${path}`;
  const found = decidingRule(policy.files, path);
  if (found === undefined) {
    return allowed(what, undefined, 'no rule speaks of it: as the file system has it');
  }
  const protection = protectionOf(compiled, 'files', found.source);
  const rule = protection?.rule ?? { text: found.glob.text, source: found.source };
  if (!found.denied.has(verb)) return allowed(what, rule, 'as the file system has it');
  return denied(what, rule, protection, verb);
}

function explainSocket(
  { policy, compiled }: Context,
  { family, type }: { readonly family: string; readonly type: string },
): Answer {
  const what = `socket ${family} ${type}`;
  const { items, source } = policy.sockets;
  const protection = protectionOf(compiled, 'sockets', source);
  const isAllowed = items.some(
    (one) => one.family === family && (one.types as readonly string[]).includes(type),
  );
  if (isAllowed) return allowed(what, protection?.rule);
  return denied(what, protection?.rule, protection);
}

function explainSyscall(
  { policy, compiled }: Context,
  question: { readonly syscall: string; readonly arguments?: readonly number[] },
): Answer {
  const what = `system call ${question.syscall}`;
  const about = policy.syscalls.filter(({ call }) => call === question.syscall);
  const values = question.arguments;
  const deciding = about.find(({ when }) =>
    when.every(({ argument, equals, mask }) => {
      const value = values?.[argument];
      return value !== undefined && (value & mask) >>> 0 === equals >>> 0;
    }),
  );
  if (deciding !== undefined) {
    const protection = protectionOf(compiled, 'syscalls', deciding.source);
    return denied(what, protection?.rule, protection);
  }
  const conditions = about.map((denial) => syscallText(denial));
  return allowed(what, undefined, ...conditions, 'the list of the platform decides');
}

function explainListed(
  { compiled }: Context,
  section: 'devices' | 'capabilities',
  name: string,
  { items, source }: { readonly items: readonly string[]; readonly source: Source },
): Answer {
  const what = `${section === 'devices' ? 'device' : 'capability'} ${name}`;
  const protection = protectionOf(compiled, section, source);
  if (items.includes(name)) return allowed(what, protection?.rule);
  return denied(what, protection?.rule, protection);
}

function explainService(context: Context, service: string): Answer {
  const found = context.policy.network.items.find(
    ({ rule }) => rule.kind === 'service' && rule.target === service,
  );
  return explainReach(context, `service ${service}`, found);
}

/** Of a name without ports in its rule. */
const PROXY_PORTS = [80, 443];

function explainHost(
  context: Context,
  asked: { readonly host: string; readonly port?: number; readonly protocol?: 'tcp' | 'udp' },
): Answer {
  const { host, port, protocol } = asked;
  const kind = isIP(host) === 0 ? 'domain' : 'address';
  const found = context.policy.network.items.find(({ rule }) => {
    const isBare = rule.ports === undefined || rule.ports.length === 0;
    const ports = isBare && kind === 'domain' ? PROXY_PORTS : rule.ports;
    const wide = ports === undefined ? rule : { ...rule, ports: [...ports] };
    const looked = port ?? ports?.[0];
    const narrow = {
      kind,
      target: host,
      ...(looked !== undefined && { ports: [looked] }),
    } as const;
    const over = protocol ?? rule.protocol;
    return coversRule(wide, over === undefined ? narrow : { ...narrow, protocol: over });
  });
  const where = `${host}${port === undefined ? '' : ` port ${port}`}`;
  const text = `reach ${where}${protocol === undefined ? '' : ` ${protocol}`}`;
  const hasServices = context.policy.network.items.some(({ rule }) => rule.kind === 'service');
  const note = 'a service that is allowed may have this name in the map of the operator';
  return explainReach(context, text, found, ...(hasServices && found === undefined ? [note] : []));
}

function explainReach(
  { policy, compiled }: Context,
  what: string,
  found: NetworkAllowance | undefined,
  ...notes: readonly string[]
): Answer {
  if (found !== undefined) {
    const protection = protectionOf(compiled, 'network', found.source);
    const rule = { text: networkText(found.rule), source: found.source };
    // Without anything that lets packets through, nothing is reached.
    if (protection?.isEnforced === false) {
      return {
        what,
        verdict: 'deny',
        rule,
        by: ['network'],
        isEnforced: true,
        notes: protection.why,
      };
    }
    return allowed(what, rule, ...notes);
  }
  const { source } = policy.network;
  const rule = { text: 'network: nothing else', source };
  return { what, verdict: 'deny', rule, by: ['network'], isEnforced: true, notes };
}

function protectionOf(
  { protections }: CompiledPolicy,
  section: Section,
  { origin, field }: Source,
): RuleProtection | undefined {
  return protections.find(
    ({ rule }) =>
      rule.section === section && rule.source.origin === origin && rule.source.field === field,
  );
}

type AnswerRule = Pick<RuleRef, 'text' | 'source'>;

const withRule = (rule: AnswerRule | undefined) =>
  rule === undefined ? {} : { rule: { text: rule.text, source: rule.source } };

const allowed = (
  what: string,
  rule: AnswerRule | undefined,
  ...notes: readonly string[]
): Answer => ({ what, verdict: 'allow', ...withRule(rule), by: [], isEnforced: true, notes });

function denied(
  what: string,
  rule: AnswerRule | undefined,
  protection: RuleProtection | undefined,
  verb?: Verb,
): Answer {
  const does = (protection?.enforcements ?? []).filter(
    ({ verbs }) => verb === undefined || verbs?.includes(verb) === true,
  );
  return {
    what,
    verdict: 'deny',
    ...withRule(rule),
    by: [...new Set(does.map(({ by }) => by))],
    isEnforced: does.length > 0,
    notes: does.length > 0 ? does.flatMap(({ note }) => note ?? []) : (protection?.why ?? []),
  };
}

/** Lines for people. Not yet safe for a terminal: names may hold anything. */
export function renderAnswers(answers: readonly Answer[]): string {
  return answers.map(renderAnswer).join('\n');
}

function renderAnswer({ what, verdict, rule, by, isEnforced, notes }: Answer): string {
  const source = rule?.source;
  const place =
    source === undefined || source.field === ''
      ? source?.origin
      : `${source.origin}, ${source.field}`;
  const how =
    verdict === 'allow' ? '' : isEnforced ? ` by ${by.join(' and ')}` : ', but NOT ENFORCED';
  return [
    `${verdict.padEnd(5)} ${what}${how}`,
    ...(rule === undefined ? [] : [`      ${rule.text} (${place})`]),
    ...notes.map((note) => `      ${note}`),
  ].join('\n');
}
