import { VERBS, type Verb } from './document.ts';
import { wins } from './file-decision.ts';
import { type PathSpace, pathSpaceOf } from './path-space.ts';
import type { FileRule } from './policy.ts';

export interface FileLoosening {
  /** One path of those for which it is so. */
  readonly path: string;
  readonly gains: readonly Verb[];
  /** Of the new policy; absent: nothing there speaks of it. */
  readonly rule?: FileRule;
}

export interface FileComparison {
  /** At most `EXAMPLES_MAX`, each of another kind. */
  readonly loosenings: readonly FileLoosening[];
  /** Rules of the new policy that take away reading what could be read before. */
  readonly hiding: readonly FileRule[];
  /** What is taken away anywhere. */
  readonly loses: ReadonlySet<Verb>;
  /** False: the two differ in more ways than are looked at, and nothing is proven. */
  readonly isDecided: boolean;
}

const EXAMPLES_MAX = 16;
/** Bounds time and memory: a second, and some hundred MiB at the very most. */
const WORK_MAX = 2_000_000;
const STATES_MAX = 60_000;

interface State {
  readonly places: readonly number[];
  /** What decides where nothing nearer is named. */
  readonly old: FileRule | undefined;
  readonly next: FileRule | undefined;
  readonly isRoot: boolean;
  readonly isAfterSlash: boolean;
  readonly from: State | undefined;
  readonly byte: string;
}

/**
 * Looks at one path of every kind that the rules can tell apart, so that what it says holds for all paths:
 * with `isDecided` and no loosening, nothing is allowed that was not.
 */
export function compareFiles(old: readonly FileRule[], next: readonly FileRule[]): FileComparison {
  const rules = [...old, ...next];
  const space = pathSpaceOf(rules.map(({ glob }) => glob));
  const walk = {
    space,
    rules,
    oldCount: old.length,
    seen: new Map<string, State>(),
    findings: {
      loosenings: new Map<string, FileLoosening>(),
      hiding: new Set<FileRule>(),
      loses: new Set<Verb>(),
    },
  };
  const isDecided = walkSpace(walk);
  const { loosenings, hiding, loses } = walk.findings;
  return { loosenings: [...loosenings.values()], hiding: [...hiding], loses, isDecided };
}

interface Walk {
  readonly space: PathSpace;
  readonly rules: readonly FileRule[];
  readonly oldCount: number;
  readonly seen: Map<string, State>;
  readonly findings: {
    readonly loosenings: Map<string, FileLoosening>;
    readonly hiding: Set<FileRule>;
    readonly loses: Set<Verb>;
  };
}

function walkSpace(walk: Walk): boolean {
  const { space } = walk;
  const root = { old: undefined, next: undefined, from: undefined, byte: '' };
  const waiting: State[] = [{ ...root, places: space.start, isRoot: true, isAfterSlash: false }];
  let work = 0;
  for (let at = 0; at < waiting.length; at += 1) {
    const state = waiting[at] as State;
    const named = state.isAfterSlash ? [] : space.named(state.places);
    const deciding = {
      old: decidingOf(walk, state, named, 'old'),
      next: decidingOf(walk, state, named, 'next'),
    };
    if (!state.isAfterSlash) judge(walk, state, deciding.old, deciding.next);
    const bytes = state.isRoot ? [] : space.bytesFrom(state.places);
    work += (bytes.length + 1) * (state.places.length + 1);
    if (work > WORK_MAX || waiting.length > STATES_MAX) return false;
    // Where nothing more can be named, all that follows is decided as this is.
    if (state.places.length === 0) continue;
    for (const byte of bytes) {
      const places = space.next(state.places, byte);
      add(walk, waiting, {
        ...state,
        places,
        isRoot: false,
        isAfterSlash: false,
        from: state,
        byte,
      });
    }
    if (state.isAfterSlash) continue;
    const places = space.next(state.places, '/');
    if (places.length === 0) continue;
    const below = { ...deciding, places, isRoot: false, isAfterSlash: true };
    add(walk, waiting, { ...below, from: state, byte: '/' });
  }
  return true;
}

function add({ seen, rules }: Walk, waiting: State[], state: State): void {
  const indexOf = (rule: FileRule | undefined) => (rule === undefined ? '' : rules.indexOf(rule));
  const key = `${state.places.join()} ${indexOf(state.old)} ${indexOf(state.next)} ${state.isAfterSlash}`;
  if (seen.has(key)) return;
  seen.set(key, state);
  waiting.push(state);
}

function decidingOf(
  { rules, oldCount }: Walk,
  state: State,
  named: readonly number[],
  side: 'old' | 'next',
): FileRule | undefined {
  if (state[side]?.isHidden === true) return state[side];
  let best: FileRule | undefined;
  for (const index of named) {
    const rule = rules[index];
    if (rule === undefined || index < oldCount !== (side === 'old')) continue;
    if (best === undefined || wins(rule, best)) best = rule;
  }
  return best ?? state[side];
}

function judge(
  { findings }: Walk,
  state: State,
  old: FileRule | undefined,
  next: FileRule | undefined,
): void {
  const gains = VERBS.filter((verb) => old?.denied.has(verb) && next?.denied.has(verb) !== true);
  for (const verb of next?.denied ?? []) {
    if (old?.denied.has(verb)) continue;
    findings.loses.add(verb);
    if (verb === 'read' && next !== undefined) findings.hiding.add(next);
  }
  if (gains.length === 0 || findings.loosenings.size >= EXAMPLES_MAX) return;
  const key = `${old?.order} ${next?.order}`;
  if (findings.loosenings.has(key)) return;
  findings.loosenings.set(key, {
    path: pathTo(state),
    gains,
    ...(next !== undefined && { rule: next }),
  });
}

function pathTo(state: State): string {
  let bytes = '';
  for (let at: State | undefined = state; at !== undefined; at = at.from) bytes = at.byte + bytes;
  return Buffer.from(bytes === '' ? '/' : bytes, 'latin1').toString();
}
