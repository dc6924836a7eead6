import { DsecError as CodedError, MIB } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { createStdin } from '../src/stdin.ts';
import { type FakeHandlers, joined, PLACE, serverOf } from './support/fake-server.ts';

/** A command that has taken so much already; `fail` may break an answer off. */
function takingCommand(taken: Buffer, fail: (post: number) => boolean = () => false) {
  const state = { taken, ended: false, posts: 0 };
  const handlers: FakeHandlers = {
    async writeExecStdin({ query: { offset, end }, body }) {
      const bytes = await joined(body);
      expect(offset).toBeLessThanOrEqual(state.taken.length);
      const fresh = bytes.subarray(Math.min(bytes.length, state.taken.length - offset));
      state.taken = Buffer.concat([state.taken, fresh]);
      state.ended ||= end === true;
      state.posts += 1;
      if (fail(state.posts)) throw new CodedError('unavailable', 'the answer is lost');
      return { offset: state.taken.length };
    },
  };
  return { state, handlers };
}

describe('standard input', () => {
  it('goes in the order of the calls, each byte once, though answers are lost', async () => {
    const { state, handlers } = takingCommand(Buffer.alloc(0), (post) => post % 2 === 1);
    const stdin = createStdin(await serverOf(handlers), PLACE, 0);
    await Promise.all([
      stdin.write(Buffer.from('one ')),
      stdin.write(Buffer.from('two ')),
      stdin.write(Buffer.from('three')),
      stdin.end(),
    ]);
    expect(state.taken.toString()).toBe('one two three');
    expect(state.ended).toBe(true);
  });

  it('of a command found again goes on after what was written before', async () => {
    const { state, handlers } = takingCommand(Buffer.from('before '));
    const stdin = createStdin(await serverOf(handlers), PLACE);
    await stdin.write(Buffer.from('after'));
    expect(state.taken.toString()).toBe('before after');
  });

  it('is cut into pieces', async () => {
    const { state, handlers } = takingCommand(Buffer.alloc(0));
    await createStdin(await serverOf(handlers), PLACE, 0).write(Buffer.alloc(9 * MIB, 'x'));
    expect(state.taken.length).toBe(9 * MIB);
    expect(state.posts).toBe(3);
  });

  it('tells that the command has ended, and does not hold up what is written later', async () => {
    let isOver = true;
    const stdin = createStdin(
      await serverOf({
        async writeExecStdin({ body }) {
          await joined(body);
          if (isOver) throw new CodedError('state-conflict', 'it has ended');
          return { offset: 1 };
        },
      }),
      PLACE,
      0,
    );
    await expect(stdin.write(Buffer.of(1))).rejects.toMatchObject({ name: 'StateConflictError' });
    isOver = false;
    await stdin.write(Buffer.of(1));
  });
});
