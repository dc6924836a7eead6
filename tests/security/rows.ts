/** What a row of the table of hostile actions is, and the kind of row that most are. */
import { expect } from 'vitest';
import type { NetworkWorld } from './network-world.ts';
import type { Box, SecurityWorld } from './security-world.ts';
import { type Outcomes, outcomesOf, runPlain } from './unprotected.ts';

interface RowName {
  /** As in the threat model. */
  readonly id: number;
  readonly name: string;
  readonly expected: string;
}

/** Shows first that the action does harm where nothing protects, then that it does none in a sandbox. */
export interface CheckedRow extends RowName {
  /** What of it is not checked yet, and why. */
  readonly later?: string;
  check(world: SecurityWorld, network: NetworkWorld): Promise<void>;
}

/** Needs a part that does not exist yet. It counts for nothing. */
export interface WaitingRow extends RowName {
  readonly waitsFor: string;
}

/** Another suite of this repository checks it, with processes that die, say. */
export interface ShownRow extends RowName {
  readonly shownBy: string;
}

export type Row = CheckedRow | ShownRow | WaitingRow;

/** How a kernel says that somebody may not, or that there is no such thing. */
export const REFUSALS = [
  ...['EPERM', 'EACCES', 'ENOSYS', 'EROFS', 'ENOENT', 'ENXIO', 'ENODEV', 'ESRCH'],
  ...['EAFNOSUPPORT', 'EPROTONOSUPPORT', 'ESOCKTNOSUPPORT', 'EOPNOTSUPP', 'ENOPROTOOPT'],
];

export interface ProbeCheck {
  readonly words: readonly string[];
  /** Of what the program tries; all of it unless set. */
  readonly items?: RegExp;
  /** Instead of `REFUSALS`. */
  readonly refusals?: readonly string[];
  /** These may be done: they do no harm. */
  readonly harmless?: readonly string[];
  /**
   * Some kernels lack these, or the control cannot reach them; they are refused in a sandbox all the same,
   * and prove nothing.
   */
  readonly unproven?: readonly string[];
}

/**
 * The program does its worst with and without protections: in a sandbox every attempt is refused, and each
 * of them gets further without.
 */
export async function expectRefused(box: Box, check: ProbeCheck): Promise<void> {
  const { words, items = /./, refusals = REFUSALS, harmless = [], unproven = [] } = check;
  const control = outcomesOf(runPlain(...words));
  const { stdout, stderr, exec } = await box.probe(...words);
  const outcomes = new Map([...outcomesOf(stdout)].filter(([item]) => items.test(item)));
  expect(stderr).toBe('');
  expect(exec.exit).toMatchObject({ exitCode: 0 });
  const allowed = [...outcomes].filter(
    ([item, outcome]) => !refusals.includes(outcome) && !harmless.includes(item),
  );
  expect(allowed, 'allowed in a sandbox').toEqual([]);
  expect(withoutControl(outcomes, control, refusals, [...harmless, ...unproven])).toEqual([]);
}

/** Attempts of which nothing shows that they are refused by a protection. */
function withoutControl(
  outcomes: Outcomes,
  control: Outcomes,
  refusals: readonly string[],
  excused: readonly string[],
): string[] {
  expect(outcomes.size).toBeGreaterThan(0);
  return [...outcomes.keys()].filter((item) => {
    const outcome = control.get(item);
    return (outcome === undefined || refusals.includes(outcome)) && !excused.includes(item);
  });
}

/** Makes a sandbox for one check. */
export async function withBox<T>(
  world: SecurityWorld,
  work: (box: Box) => Promise<T>,
  limits?: Parameters<SecurityWorld['make']>[0],
): Promise<T> {
  const box = await world.make(limits);
  try {
    return await work(box);
  } finally {
    await box.stop();
  }
}

/** What the host sees of the agent is as before, and it still does its work. */
export async function expectUnharmed(box: Box, attack: () => Promise<void>): Promise<void> {
  const before = box.host.agentState();
  await attack();
  expect(box.host.agentState()).toEqual(before);
  expect((await box.run(['/bin/probe', 'spy'])).exec.exit).toMatchObject({ exitCode: 0 });
  expect(box.entry.state).toBe('running');
}
