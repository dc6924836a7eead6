import { isPrefix, textOf } from './compile-mounts.ts';
import { type Compiled, judgeFileRules, type PolicyFacts } from './compiled.ts';
import { VERBS, type Verb } from './document.ts';
import { decidingRule } from './file-decision.ts';
import type { FileRule, Policy } from './policy.ts';

/** Access rights of linux/landlock.h. */
export const LANDLOCK_BITS = {
  execute: 1 << 0,
  writeFile: 1 << 1,
  readFile: 1 << 2,
  readDirectory: 1 << 3,
  removeDirectory: 1 << 4,
  removeFile: 1 << 5,
  makeCharacterDevice: 1 << 6,
  makeDirectory: 1 << 7,
  makeFile: 1 << 8,
  makeSocket: 1 << 9,
  makeFifo: 1 << 10,
  makeBlockDevice: 1 << 11,
  makeLink: 1 << 12,
  /** Moving and linking between directories: always refused unless granted. From version 2 on. */
  refer: 1 << 13,
  /** From version 3 on. */
  truncate: 1 << 14,
} as const;

const BITS = LANDLOCK_BITS;
const WRITE_BITS =
  BITS.writeFile |
  BITS.removeDirectory |
  BITS.removeFile |
  BITS.makeCharacterDevice |
  BITS.makeDirectory |
  BITS.makeFile |
  BITS.makeSocket |
  BITS.makeFifo |
  BITS.makeBlockDevice |
  BITS.makeLink |
  BITS.refer |
  BITS.truncate;
const BITS_OF: Readonly<Record<Verb, number>> = {
  read: BITS.readFile | BITS.readDirectory,
  write: WRITE_BITS,
  exec: BITS.execute,
};
/** The kernel refuses others in a rule for what is no directory. */
export const LANDLOCK_FILE_BITS = BITS.execute | BITS.writeFile | BITS.readFile | BITS.truncate;

/** With an older one, truncating cannot be denied, or moving between directories cannot be allowed. */
const ABI_MIN = 3;

export interface LandlockRule {
  /** Opened when a session starts; what is not there then is left out, and is denied. */
  readonly path: string;
  readonly access: number;
}

/** For `landlock_create_ruleset` and `landlock_add_rule`. What is handled and not granted is denied. */
export interface LandlockRuleset {
  readonly handledAccess: number;
  readonly rules: readonly LandlockRule[];
}

interface Grants {
  readonly isHandled: boolean;
  /** Trees, by the names that lead to them. Hold all that is allowed, or more. */
  readonly trees: readonly { readonly names: readonly string[]; readonly isExact: boolean }[];
}

/**
 * A Landlock ruleset for sessions, or none where it would deny nothing. Landlock only grants: whole trees,
 * from nothing. So it serves a verb whose default the policy denies at the root; a denial inside a tree
 * that is allowed cannot be said.
 */
export function compileLandlock(
  policy: Policy,
  facts: PolicyFacts,
): Compiled<LandlockRuleset | undefined> {
  const isThere = facts.landlockAbi >= ABI_MIN;
  const grants = new Map(VERBS.map((verb) => [verb, grantsOf(verb, policy.files, isThere)]));
  const judged = judgeFileRules(
    'landlock',
    policy.files,
    (rule, verb) => {
      if (facts.landlockAbi === 0) return 'this node has no Landlock';
      if (!isThere) return `Landlock of version ${facts.landlockAbi}; it takes ${ABI_MIN}`;
      return reasonAgainst(rule, grants.get(verb));
    },
    noteOn,
  );
  return { output: rulesetOf(grants), ...judged };
}

const noteOn = ({ denied }: FileRule) =>
  denied.has('exec') ? 'exec is refused; a loader that may run can still map the file' : undefined;

function grantsOf(verb: Verb, files: readonly FileRule[], isThere: boolean): Grants {
  const isDeniedAtRoot = decidingRule(files, '/')?.denied.has(verb) === true;
  const trees = files
    .filter(({ denied }) => !denied.has(verb))
    .map(({ glob }) => ({ names: glob.literal, isExact: glob.isLiteral }));
  const isWhole = trees.some(({ names }) => names.length === 0);
  return { isHandled: isThere && isDeniedAtRoot && !isWhole, trees };
}

function reasonAgainst({ glob }: FileRule, grants: Grants | undefined): string | undefined {
  if (grants?.isHandled !== true)
    return 'Landlock grants whole trees, and this is allowed at the root';
  for (const { names, isExact } of grants.trees) {
    if (isPrefix(names, glob.literal)) return `inside ${textOf(names)}, which is granted whole`;
    if (isPrefix(glob.literal, names) && !(isExact && glob.isLiteral)) {
      return `a pattern, which is granted as all of ${textOf(names)}`;
    }
  }
  return undefined;
}

function rulesetOf(grants: ReadonlyMap<Verb, Grants>): LandlockRuleset | undefined {
  const byPath = new Map<string, number>();
  const add = (path: string, bits: number) => byPath.set(path, (byPath.get(path) ?? 0) | bits);
  let handledAccess = 0;
  for (const [verb, { isHandled, trees }] of grants) {
    if (!isHandled) continue;
    handledAccess |= BITS_OF[verb];
    for (const { names } of trees) add(textOf(names), BITS_OF[verb]);
  }
  if (handledAccess === 0) return undefined;
  if (grants.get('write')?.isHandled !== true) {
    handledAccess |= BITS.refer;
    add('/', BITS.refer);
  }
  return {
    handledAccess,
    rules: [...byPath].map(([path, access]) => ({ path, access })),
  };
}
