import { MOUNT_BITS, type MountFields } from '@dsec/protocol';
import { type Compiled, judgeFileRules, type PathKind, type PolicyFacts } from './compiled.ts';
import { VERBS, type Verb } from './document.ts';
import { exceptionsTo } from './exceptions.ts';
import { namesOf } from './glob.ts';
import { PLATFORM_DENIES, PLATFORM_MOUNTS, TOOL_MOUNT } from './platform.ts';
import type { FileRule, Policy } from './policy.ts';

/** A spawn has 128 mounts, of which the platform needs about half. */
const POLICY_MOUNTS_MAX = 48;

interface PlacedMount {
  readonly names: readonly string[];
  readonly denies: ReadonlySet<Verb>;
  /** Absent: the platform's own. */
  readonly fields?: MountFields;
}

/**
 * Masks and read-only binds for the launcher, outer ones first, behind the platform's own. A mount holds for
 * a whole tree and knows no pattern, so it is made only where no other rule allows a part of what it takes.
 * What is not there becomes an empty directory, so that nothing can be planted.
 */
export function compileMounts(
  policy: Policy,
  facts: PolicyFacts,
): Compiled<readonly MountFields[]> {
  const kindOf = facts.kindOf ?? (() => 'unknown' as const);
  const placed = platformMounts(facts);
  const obstacles = new Map<FileRule, string>();
  for (const rule of outermostFirst(policy.files)) {
    const wanted = wantedBy(rule, policy.files);
    const why = wanted.size === 0 ? reasonAgainst(rule) : obstacleOf(rule, wanted, placed, facts);
    if (why !== undefined) obstacles.set(rule, why);
    else placed.push(...placementOf(rule, wanted, placed, kindOf));
  }
  const judged = judgeFileRules(
    'mounts',
    policy.files,
    (rule, verb) => {
      const isCovered = placed.some(
        ({ names, denies }) => denies.has(verb) && isPrefix(names, rule.glob.literal),
      );
      if (isCovered) return undefined;
      return obstacles.get(rule) ?? reasonFor(rule, verb);
    },
    (rule) =>
      rule.glob.isLiteral && kindOf(textOf(rule.glob.literal)) === 'absent'
        ? NOTE_ABSENT
        : undefined,
  );
  return { output: placed.flatMap(({ fields }) => fields ?? []), ...judged };
}

/** What is mounted before the policy is looked at, where it denies something. */
function platformMounts({ hasToolMount }: PolicyFacts): PlacedMount[] {
  const rows: [string, readonly Verb[]][] = Object.entries(PLATFORM_DENIES);
  if (hasToolMount) rows.push([TOOL_MOUNT, ['write']]);
  return rows.map(([path, denies]) => ({ names: namesOf(path), denies: new Set(denies) }));
}

const NOTE_ABSENT = 'nothing is there: it becomes an empty directory';

const outermostFirst = (rules: readonly FileRule[]): FileRule[] =>
  rules
    .filter(({ glob, denied }) => glob.isLiteral && denied.size > 0)
    .sort((a, b) => a.glob.literal.length - b.glob.literal.length);

/** What a mount for this rule alone would deny; empty where there is no such mount. */
function wantedBy(rule: FileRule, rules: readonly FileRule[]): ReadonlySet<Verb> {
  const free = VERBS.filter(
    (verb) => rule.denied.has(verb) && exceptionsTo(rule, verb, rules).length === 0,
  );
  // All of it: a mask. Else what a read-only bind takes.
  if (free.length === VERBS.length) return new Set(free);
  return new Set(free.includes('write') ? free.filter((verb) => verb !== 'read') : []);
}

const reasonAgainst = ({ denied }: FileRule): string =>
  denied.has('write') ? REASONS.exception : REASONS.verbs;

const REASONS = {
  pattern: 'a mount knows no pattern',
  exception: 'another rule allows a part of it, and a mount holds for all below',
  verbs: 'a mount takes all, or writing, or writing and running together',
  platform: 'the platform has mounts there, which it would cover',
  link: 'a link in this image: name what it leads to',
  many: `more than ${POLICY_MOUNTS_MAX} mounts`,
};

function reasonFor(rule: FileRule, verb: Verb): string {
  if (!rule.glob.isLiteral) return REASONS.pattern;
  return verb === 'write' || rule.denied.size === VERBS.length ? REASONS.exception : REASONS.verbs;
}

function obstacleOf(
  rule: FileRule,
  wanted: ReadonlySet<Verb>,
  placed: readonly PlacedMount[],
  { kindOf = () => 'unknown', hasToolMount }: PolicyFacts,
): string | undefined {
  const { literal } = rule.glob;
  if (isCoveredBy(literal, wanted, placed)) return undefined;
  const taken = [...PLATFORM_MOUNTS, ...(hasToolMount ? [TOOL_MOUNT] : [])];
  if (taken.some((path) => isPrefix(literal, namesOf(path)))) return REASONS.platform;
  if (hasLink(literal, kindOf)) return REASONS.link;
  const made = placed.filter(({ fields }) => fields !== undefined);
  if (made.length >= POLICY_MOUNTS_MAX) return REASONS.many;
  return undefined;
}

const hasLink = (names: readonly string[], kindOf: (path: string) => PathKind): boolean =>
  names.some((_, index) => kindOf(textOf(names.slice(0, index + 1))) === 'link');

/** Nothing, where an outer mount does it or keeps what is not there from being made. */
function placementOf(
  rule: FileRule,
  wanted: ReadonlySet<Verb>,
  placed: readonly PlacedMount[],
  kindOf: (path: string) => PathKind,
): readonly PlacedMount[] {
  const names = rule.glob.literal;
  if (isCoveredBy(names, wanted, placed)) return [];
  const staysAbsent = kindOf(textOf(names)) === 'absent' && isCoveredBy(names, WRITING, placed);
  return [staysAbsent ? { names, denies: wanted } : mountOf(rule, wanted)];
}

const WRITING: ReadonlySet<Verb> = new Set(['write']);

const isCoveredBy = (
  names: readonly string[],
  wanted: ReadonlySet<Verb>,
  placed: readonly PlacedMount[],
): boolean =>
  placed.some(
    ({ names: above, denies }) =>
      isPrefix(above, names) && [...wanted].every((verb) => denies.has(verb)),
  );

function mountOf(rule: FileRule, wanted: ReadonlySet<Verb>): PlacedMount {
  const { nosuid, nodev, noexec, readonly } = MOUNT_BITS;
  const target = Buffer.from(pathOf(rule.glob.literal), 'latin1');
  const flags = nosuid | nodev | (wanted.has('exec') ? noexec : 0);
  const fields: MountFields = wanted.has('read')
    ? { kind: 'mask', target, flags }
    : { kind: 'readonly', target, flags: flags | readonly };
  return { names: rule.glob.literal, denies: wanted, fields };
}

/** As a string of characters, for people and file systems. */
export const textOf = (names: readonly string[]): string =>
  Buffer.from(pathOf(names), 'latin1').toString();

/** As bytes. */
export const pathOf = (names: readonly string[]): string => `/${names.join('/')}`;

export const isPrefix = (above: readonly string[], names: readonly string[]): boolean =>
  above.length <= names.length && above.every((name, index) => name === names[index]);
