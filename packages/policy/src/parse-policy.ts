import { check } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { POLICY_LIMITS, PolicyDocument, type PolicyOverlay, STAGES } from './document.ts';
import { parseGlob } from './glob.ts';
import { checkNetworkRule } from './network-rule.ts';
import { SOCKET_FAMILIES, SYSCALLS_NEEDED } from './platform.ts';

/**
 * Checks a policy document by itself: its shape, patterns, and rules that contradict each other. Throws
 * `invalid-argument`; `details.field` is the field at fault, and `details.other` the one that it contradicts.
 * What depends on the profile that it extends is checked by `resolvePolicy`.
 */
export function parsePolicy(value: unknown, what = 'policy'): PolicyDocument {
  const document = check(PolicyDocument, value, what);
  checkOverlay(document, '');
  for (const stage of STAGES) {
    const overlay = document.stages?.[stage];
    if (overlay !== undefined) checkOverlay(overlay, `stages.${stage}.`);
  }
  return document;
}

/** The same of a JSON text, whose size is bounded before it is read. */
export function parsePolicyText(text: string, what = 'policy'): PolicyDocument {
  if (Buffer.byteLength(text) > POLICY_LIMITS.bytes) {
    throw new DsecError('too-large', `${what}: more than ${POLICY_LIMITS.bytes} bytes`);
  }
  try {
    return parsePolicy(JSON.parse(text), what);
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    throw new DsecError('invalid-argument', `${what}: not JSON: ${thrown.message}`, {
      cause: thrown,
    });
  }
}

function checkOverlay(overlay: PolicyOverlay, prefix: string): void {
  checkFiles(overlay.files ?? [], `${prefix}files`);
  checkSockets(overlay.sockets ?? [], `${prefix}sockets`);
  checkNetwork(overlay.network ?? [], `${prefix}network`);
  checkSyscalls(overlay.syscalls ?? [], `${prefix}syscalls`);
}

export function refuseField(field: string, why: string, other?: string): never {
  throw new DsecError('invalid-argument', `${field}: ${why}`, {
    details: { field, ...(other !== undefined && { other }) },
  });
}

function checkFiles(rules: NonNullable<PolicyOverlay['files']>, at: string): void {
  const seen = new Map<string, { field: string; access: string }>();
  for (const [index, { path, access }] of rules.entries()) {
    const field = `${at}.${index}`;
    if (access.includes('hide') && access.length > 1) {
      refuseField(`${field}.access`, 'hide leaves nothing else, so it stands alone');
    }
    if (access.includes('exec') && !access.includes('read')) {
      refuseField(`${field}.access`, 'exec without read: the kernel reads what it runs');
    }
    const { text } = parseGlob(path, `${field}.path`);
    if (text === '/' && access.includes('hide')) refuseField(field, 'nothing runs without files');
    const said = [...access].sort().join(' ');
    const other = seen.get(text);
    if (other !== undefined) {
      const verb = other.access === said ? 'repeats' : 'contradicts';
      refuseField(field, `${verb} ${other.field}, which has the same path`, other.field);
    }
    seen.set(text, { field, access: said });
  }
  checkHidden(rules, at);
}

/** What is hidden stays so, and a rule that says otherwise was meant for something. */
function checkHidden(rules: NonNullable<PolicyOverlay['files']>, at: string): void {
  const globs = rules.map(({ path }) => parseGlob(path, at));
  for (const [index, { access }] of rules.entries()) {
    const above = globs[index];
    if (!access.includes('hide') || above?.isLiteral !== true) continue;
    const below = rules.findIndex((rule, other) => {
      const { literal = [] } = globs[other] ?? {};
      const isBelow = above.literal.every((name, position) => name === literal[position]);
      return other !== index && isBelow && !rule.access.includes('hide');
    });
    if (below < 0) continue;
    const [field, other] = [`${at}.${below}`, `${at}.${index}`];
    refuseField(field, `contradicts ${other}, which hides all of that`, other);
  }
}

function checkSockets(rules: NonNullable<PolicyOverlay['sockets']>, at: string): void {
  const seen = new Map<string, string>();
  for (const [index, { family, types }] of rules.entries()) {
    const field = `${at}.${index}`;
    const other = seen.get(family);
    if (other !== undefined) {
      refuseField(field, `${other} has the family ${family} already`, other);
    }
    seen.set(family, field);
    const given: readonly string[] = SOCKET_FAMILIES[family].types;
    const beyond = types?.find((type) => !given.includes(type));
    if (beyond !== undefined) {
      refuseField(`${field}.types`, `no sandbox has ${family} sockets of type ${beyond}`);
    }
  }
}

function checkNetwork(rules: NonNullable<PolicyOverlay['network']>, at: string): void {
  const seen = new Map<string, string>();
  for (const [index, rule] of rules.entries()) {
    const field = `${at}.${index}`;
    checkNetworkRule(rule, field);
    const key = JSON.stringify([rule.kind, rule.target, rule.protocol, rule.ports]);
    const other = seen.get(key);
    if (other !== undefined) refuseField(field, `repeats ${other}`, other);
    seen.set(key, field);
  }
}

function checkSyscalls(denials: NonNullable<PolicyOverlay['syscalls']>, at: string): void {
  const seen = new Map<string, { field: string; error: string }>();
  for (const [index, { call, when = [], error = 'EPERM' }] of denials.entries()) {
    const field = `${at}.${index}`;
    if (SYSCALLS_NEEDED.has(call) && when.length === 0) {
      refuseField(`${field}.call`, `no command starts without ${call}`);
    }
    for (const [position, { equals, mask = 0xffff_ffff }] of when.entries()) {
      if ((equals & ~mask) !== 0) {
        refuseField(
          `${field}.when.${position}`,
          'can never hold: `equals` has bits outside `mask`',
        );
      }
    }
    const key = JSON.stringify([call, when]);
    const other = seen.get(key);
    if (other !== undefined) {
      const verb = other.error === error ? 'repeats' : 'contradicts';
      refuseField(field, `${verb} ${other.field}`, other.field);
    }
    seen.set(key, { field, error });
  }
}
