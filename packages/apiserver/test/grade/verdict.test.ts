import { describe, expect, it } from 'vitest';
import { type CommandRun, verdictOf } from '../../src/grade/verdict.ts';

const EXITED = { coreDumped: false, timedOut: false, oomKilled: false, trusted: true, exitCode: 0 };

const runOf = (told: string, exit: object = {}, state: CommandRun['exec']['state'] = 'exited') =>
  ({
    command: { expect: ['a', 'b c'] },
    exec: { state, exit: { ...EXITED, ...exit } },
    ...{ told, output: 'what it wrote' },
  }) satisfies CommandRun;

const WHOLE = 'test passed a\ntest failed b c\nexit 0\n';

describe('a verdict', () => {
  it('is what the runner told of each expected test, in their order', () => {
    expect(verdictOf([runOf('test failed b c\ntest passed a\nexit 0\n')])).toEqual([
      { name: 'a', outcome: 'passed' },
      { name: 'b c', outcome: 'failed' },
    ]);
  });

  it.each([
    ['nothing', ''],
    ['a clean exit alone', 'exit 0\n'],
    ['one of two', 'test passed a\nexit 0\n'],
    ['another one', `test passed x\n${WHOLE}`],
    ['one twice', `test passed a\n${WHOLE}`],
    ['one twice, with another outcome', `test failed a\n${WHOLE}`],
    ['an outcome that is none', 'test great a\ntest failed b c\nexit 0\n'],
    ['something else on the channel', `bad\n${WHOLE}`],
    ['an exit that is not clean', WHOLE.replace('exit 0', 'exit 1')],
    ['a signal', WHOLE.replace('exit 0', 'signal 9')],
    ['an exit before the end', `exit 0\n${WHOLE}`.replace(/exit 0\n$/, '')],
    ['a cut line', WHOLE.slice(0, -1)],
    ['a name with a break', 'test passed a\ntest passed b\nc\nexit 0\n'],
  ])('is none for %s', (_what, told) => {
    expect(() => verdictOf([runOf(told)])).toThrow(
      expect.objectContaining({ code: 'grade-invalid' }),
    );
  });

  it.each([
    [{ exitCode: 1 }],
    [{ timedOut: true }],
    [{ oomKilled: true }],
    [{ trusted: false }],
    [{ exitCode: undefined, signal: 9 }],
  ])('is none where the runner ended with %j', (exit) => {
    expect(() => verdictOf([runOf(WHOLE, exit)])).toThrow(
      expect.objectContaining({ code: 'grade-invalid' }),
    );
  });

  it.each(['failed', 'unknown', 'running'] as const)(
    'is none for a command that is %s',
    (state) => {
      expect(() => verdictOf([runOf(WHOLE, {}, state)])).toThrow(/did not come to its end/);
    },
  );

  it('says which command, and which tests are missing', () => {
    const runs = [runOf(WHOLE), runOf('test passed a\nexit 0\n')];
    expect(() => verdictOf(runs)).toThrow(
      expect.objectContaining({
        details: expect.objectContaining({ command: 1, missing: 'b c', output: 'what it wrote' }),
      }),
    );
  });
});
