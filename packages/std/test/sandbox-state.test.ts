import {
  canTransition,
  isEndState,
  SANDBOX_STATES,
  type SandboxState,
  transition,
} from '@dsec/std';
import { describe, expect, it } from 'vitest';

/** Written by hand a second time, as rows of who may follow whom: c r p P R s S . F */
const LEGAL = `
creating     | . y . . . . y . y
running      | . . y . . y y . y
pausing      | . y . y . . y . y
paused       | . . . . y y y . y
resuming     | . y . y . . y . y
snapshotting | . y . y . . y . y
stopping     | . . . . . . . y y
stopped      | . . . . . . . . .
failed       | . . . . . . . . .
`;

const PAIRS = LEGAL.trim()
  .split('\n')
  .flatMap((line) => {
    const [from = '', marks = ''] = line.split('|').map((part) => part.trim());
    return marks
      .split(' ')
      .map((mark, index): [SandboxState, SandboxState, boolean] => [
        from as SandboxState,
        SANDBOX_STATES[index] as SandboxState,
        mark === 'y',
      ]);
  });

describe('states of a sandbox', () => {
  it('has a mark for every pair', () => {
    expect(PAIRS).toHaveLength(SANDBOX_STATES.length ** 2);
  });

  it.each(PAIRS)('%s → %s: %j', (from, to, legal) => {
    expect(canTransition(from, to)).toBe(legal);
    if (legal) return expect(transition(from, to)).toBe(to);
    expect(() => transition(from, to)).toThrow(
      expect.objectContaining({ code: 'state-conflict', details: { from, to } }),
    );
  });

  it('says what is possible instead', () => {
    expect(() => transition('paused', 'running')).toThrow(
      'a sandbox cannot go from paused to running; possible: resuming, snapshotting, stopping, failed',
    );
    expect(() => transition('stopped', 'running')).toThrow('nothing: it is an end state');
  });

  it('can reach an end from every state, and leaves none', () => {
    for (const start of SANDBOX_STATES) {
      const reached = new Set<SandboxState>([start]);
      for (const from of reached) {
        for (const to of SANDBOX_STATES) if (canTransition(from, to)) reached.add(to);
      }
      expect(reached.has('stopped') || reached.has('failed')).toBe(true);
      if (isEndState(start)) expect([...reached]).toEqual([start]);
    }
  });
});
