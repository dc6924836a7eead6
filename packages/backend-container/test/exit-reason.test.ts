import { describe, expect, it } from 'vitest';
import { exitOf, lostExit } from '../src/exit-reason.ts';
import { planWith } from './support/plans.ts';

const { key } = planWith();

describe('exitOf', () => {
  it.each([
    [{ exitCode: 0, oomKilled: false }, 'agent'],
    [{ exitCode: 1, oomKilled: true }, 'agent'],
    [{ signal: 9, oomKilled: true }, 'oom'],
    [{ signal: 9, oomKilled: false }, 'killed'],
    [{ signal: 11, oomKilled: true }, 'killed'],
    [{ oomKilled: true }, 'oom'],
    [{ oomKilled: false }, 'killed'],
  ] as const)('%j is %s', (ending, reason) => {
    expect(exitOf(key, ending)).toMatchObject({ key, reason });
  });

  it('knows one that nobody saw', () => expect(lostExit(key).reason).toBe('killed'));
});
