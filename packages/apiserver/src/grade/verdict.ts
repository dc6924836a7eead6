/** What a run of the grader's commands means: only that which the runner told, and only when it is whole. */
import { type Exec, type GradeCommand, TEST_OUTCOMES, type TestOutcome } from '@dsec/protocol';
import { DsecError } from '@dsec/std';

export interface CommandRun {
  readonly command: Pick<GradeCommand, 'expect'>;
  readonly exec: Pick<Exec, 'state' | 'exit'>;
  /** All that the runner wrote. */
  readonly told: string;
  /** The end of what the command wrote. */
  readonly output: string;
}

export interface GradedTest {
  readonly name: string;
  readonly outcome: TestOutcome;
}

const SHOWN_MAX = 20;
/** Of a text among the details of an error. */
const SHOWN_LENGTH = 1000;
const LINE = /^test ([a-z]+) (.+)$/;

/** Throws `grade-invalid` with what is missing: a status alone is never a score. */
export function verdictOf(runs: readonly CommandRun[]): readonly GradedTest[] {
  return runs.flatMap((run, index) => testsOf(run, index));
}

function testsOf({ command, exec, told, output }: CommandRun, index: number): GradedTest[] {
  const fail = (why: string, more: Readonly<Record<string, string>> = {}) =>
    new DsecError('grade-invalid', `command ${index}: ${why}`, {
      details: { command: index, output: output.slice(-SHOWN_LENGTH), ...more },
    });
  const { exit } = exec;
  if (exit?.timedOut === true) throw fail('its time was up before it had ended');
  if (exit?.oomKilled === true) throw fail('the memory of the sandbox was full');
  if (exec.state !== 'exited' || exit?.exitCode !== 0 || !exit.trusted) {
    throw fail('the runner did not come to its end');
  }
  const lines = told.split('\n');
  const [last, rest] = [lines.at(-2) ?? '', lines.slice(0, -2)];
  if (lines.at(-1) !== '' || last !== 'exit 0') {
    throw fail(`the grader's program ended with ${last || 'nothing'}, not with exit 0`);
  }
  const found = new Map<string, TestOutcome>();
  for (const line of rest) {
    const [, word = '', name = ''] = LINE.exec(line) ?? [];
    const outcome = TEST_OUTCOMES.find((known) => known === word);
    if (outcome === undefined) throw fail('something else than its reports was on the channel');
    if (found.has(name)) throw fail(`${name} was reported twice`);
    found.set(name, outcome);
  }
  return compare(command.expect, found, fail);
}

function compare(
  expected: readonly string[],
  found: ReadonlyMap<string, TestOutcome>,
  fail: (why: string, more: Readonly<Record<string, string>>) => DsecError,
): GradedTest[] {
  const wanted = new Set(expected);
  const missing = expected.filter((name) => !found.has(name));
  const unexpected = [...found.keys()].filter((name) => !wanted.has(name));
  if (missing.length + unexpected.length > 0) {
    const [first = ''] = [...missing, ...unexpected];
    throw fail(
      `${missing.length} of ${expected.length} expected tests were not reported, ${unexpected.length} ` +
        `others were: ${first}`,
      { missing: shown(missing), unexpected: shown(unexpected) },
    );
  }
  return expected.map((name) => ({ name, outcome: found.get(name) ?? 'error' }));
}

const shown = (names: readonly string[]) =>
  names.slice(0, SHOWN_MAX).join('\n').slice(0, SHOWN_LENGTH);
