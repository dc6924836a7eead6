import { createHash } from 'node:crypto';
import { treeWithout } from './apparmor-complement.ts';
import { escapeBytes, quoted, treePattern } from './apparmor-text.ts';
import { type Compiled, type Enforcement, judgeFileRules, type PolicyFacts } from './compiled.ts';
import { VERBS, type Verb } from './document.ts';
import { exceptionsTo } from './exceptions.ts';
import type { FileRule, Policy } from './policy.ts';

export interface AppArmorProfile {
  /** `dsec-` and a digest of the text: equal policies share one, and it can be kept once compiled. */
  readonly name: string;
  /** For `apparmor_parser`. */
  readonly text: string;
}

/** Linking counts as writing the new name; locking goes with reading. */
const LETTERS: Readonly<Record<Verb, string>> = { read: 'rk', write: 'wl', exec: 'mx' };

/**
 * The AppArmor profile of sessions. All files are allowed, then denials are added, which win over all else;
 * so an exception is left out of them (`treeWithout`). Every directory above something that is denied cannot
 * be renamed or removed, as its files would have another path then.
 */
export function compileAppArmor(
  policy: Policy,
  facts: PolicyFacts,
): Compiled<AppArmorProfile | undefined> {
  const plans = policy.files.map((rule) => [rule, planOf(rule, policy.files)] as const);
  const reasons = new Map(plans.map(([rule, plan]) => [rule, plan.reasons]));
  const absent = facts.hasAppArmor ? undefined : 'this node has no AppArmor';
  const files = judgeFileRules('apparmor', policy.files, (rule, verb) =>
    absent === undefined ? reasons.get(rule)?.get(verb) : absent,
  );
  if (absent !== undefined) return { output: undefined, ...files };
  return {
    output: profileOf(
      policy,
      plans.flatMap(([, { lines }]) => lines),
    ),
    enforced: [...files.enforced, ...listsEnforced(policy)],
    notEnforced: files.notEnforced,
  };
}

interface FilePlan {
  readonly lines: readonly string[];
  readonly reasons: ReadonlyMap<Verb, string>;
}

function planOf(rule: FileRule, rules: readonly FileRule[]): FilePlan {
  const reasons = new Map<Verb, string>();
  const lettersOf = new Map<string, string>();
  for (const verb of VERBS.filter((one) => rule.denied.has(one))) {
    const patterns = patternsFor(rule, verb, rules);
    if (patterns === undefined) {
      reasons.set(
        verb,
        'another rule allows a part of it, and denials of AppArmor have no exceptions',
      );
      continue;
    }
    if (!staysNamed(rule)) {
      reasons.set(verb, 'a directory that a wildcard names can be renamed');
    }
    for (const pattern of patterns) {
      lettersOf.set(pattern, (lettersOf.get(pattern) ?? '') + LETTERS[verb]);
    }
  }
  const denials = [...lettersOf].map(([pattern, letters]) => denial(pattern, letters));
  return { lines: [...(denials.length > 0 ? ancestorLines(rule) : []), ...denials], reasons };
}

function patternsFor(
  rule: FileRule,
  verb: Verb,
  rules: readonly FileRule[],
): readonly string[] | undefined {
  const exceptions = exceptionsTo(rule, verb, rules);
  if (exceptions.length === 0) return [treePattern(rule.glob)];
  if (![rule, ...exceptions].every(({ glob }) => glob.isLiteral)) return undefined;
  return treeWithout(
    rule.glob.literal,
    exceptions.map(({ glob }) => glob.literal),
  );
}

/** Whether no move of a directory takes a path out of the pattern: no wildcard but for the last name. */
function staysNamed({ glob: { segments } }: FileRule): boolean {
  const above = segments.slice(0, -1);
  const isAnywhere = above.length === 1 && above[0]?.kind === 'any';
  return isAnywhere || above.every(({ kind }) => kind === 'literal');
}

function ancestorLines({ glob: { literal, isLiteral } }: FileRule): string[] {
  const above = isLiteral ? literal.slice(0, -1) : literal;
  return above.map((_, index) => {
    const names = above.slice(0, index + 1).map(escapeBytes);
    return denial(`/${names.join('/')}/`, 'wkl');
  });
}

const denial = (pattern: string, letters: string) => `  audit deny ${quoted(pattern)} ${letters},`;

function profileOf(policy: Policy, denials: readonly string[]): AppArmorProfile {
  const textFor = (name: string) =>
    [
      'abi <abi/3.0>,',
      `profile ${name} flags=(attach_disconnected,mediate_deleted) {`,
      '  file,',
      ...new Set(denials),
      ...policy.capabilities.items.map((capability) => `  capability ${capability},`),
      ...policy.sockets.items.flatMap(({ family, types }) =>
        types.map((type) => `  network ${family} ${type},`),
      ),
      '  unix,',
      `  signal (send, receive) peer=${name},`,
      '  signal (receive) peer=unconfined,',
      `  ptrace (trace, read, tracedby, readby) peer=${name},`,
      '}',
      '',
    ].join('\n');
  const digest = createHash('sha256').update(textFor('dsec')).digest('hex');
  const name = `dsec-${digest.slice(0, 32)}`;
  return { name, text: textFor(name) };
}

function listsEnforced({ sockets, capabilities }: Policy): Enforcement[] {
  const ref = (section: 'sockets' | 'capabilities', text: string) => ({
    section,
    source: section === 'sockets' ? sockets.source : capabilities.source,
    text,
  });
  return [
    {
      rule: ref('sockets', `sockets: ${sockets.items.map(({ family }) => family).join(' ')}`),
      by: 'apparmor',
    },
    {
      rule: ref('capabilities', `capabilities: ${capabilities.items.join(' ')}`),
      by: 'apparmor',
    },
  ];
}
