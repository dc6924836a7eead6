import { createBoundedQueue, createSeededRandom, DsecError } from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

const codeOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    return (error as DsecError).code;
  }
  return 'none';
};
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('createBoundedQueue', () => {
  it('is a queue with a limit: the same as a plain list would be', () => {
    const step = fc.oneof(fc.nat(99), fc.constant('shift' as const));
    return fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(step), async (depthMax, steps) => {
        const queue = createBoundedQueue<number>('q', depthMax);
        const model: number[] = [];
        for (const step of steps) {
          if (step !== 'shift') {
            const isFull = model.length >= depthMax;
            expect(codeOf(() => queue.push(step))).toBe(isFull ? 'overloaded' : 'none');
            if (!isFull) model.push(step);
          } else if (model.length > 0) {
            expect(await queue.shift()).toBe(model.shift());
          }
          expect(queue.depth).toBe(model.length);
        }
      }),
      { seed: 1 },
    );
  });

  it('loses and doubles nothing under producers and consumers at once', async () => {
    for (let seed = 0; seed < 20; seed++) {
      const random = createSeededRandom(seed);
      const depthMax = 1 + random.int(4);
      const queue = createBoundedQueue<{ from: number; n: number }>('q', depthMax);
      const taken: { from: number; n: number }[] = [];
      // No more producers than may wait, or one would be turned away.
      const producers = Array.from({ length: depthMax }, async (_, from) => {
        for (let n = 0; n < 50; n++) {
          if (random.int(3) === 0) await turn();
          await queue.pushWhenRoom({ from, n });
          expect(queue.depth).toBeLessThanOrEqual(depthMax);
        }
      });
      const consumerCount = 1 + (seed % 3);
      const consumers = Array.from({ length: consumerCount }, async () => {
        for (let item = await queue.shift(); item !== undefined; item = await queue.shift()) {
          taken.push(item);
          if (random.int(3) === 0) await turn();
        }
      });
      await Promise.all(producers);
      queue.close();
      await Promise.all(consumers);
      expect(taken).toHaveLength(50 * depthMax);
      for (let from = 0; from < depthMax; from++) {
        const own = taken.filter((item) => item.from === from).map(({ n }) => n);
        // Several consumers may note down their items in another order than they got them.
        if (consumerCount > 1) own.sort((a, b) => a - b);
        expect(own).toEqual(Array.from({ length: 50 }, (_, n) => n));
      }
    }
  });

  it('serves waiting consumers and producers in the order in which they came', async () => {
    const queue = createBoundedQueue<string>('q', 1);
    const first = queue.shift();
    const second = queue.shift();
    queue.push('a');
    queue.push('b');
    expect(await Promise.all([first, second])).toEqual(['a', 'b']);
    queue.push('c');
    const waiting = queue.pushWhenRoom('d');
    expect(await queue.shift()).toBe('c');
    await waiting;
    expect(await queue.shift()).toBe('d');
  });

  it('bounds the producers that wait as well', async () => {
    const queue = createBoundedQueue<number>('q', 1);
    queue.push(1);
    const waiting = queue.pushWhenRoom(2);
    await expect(queue.pushWhenRoom(3)).rejects.toMatchObject({ code: 'overloaded' });
    expect([await queue.shift(), await queue.shift()]).toEqual([1, 2]);
    await waiting;
  });

  it('lets a waiter go when its signal says so, and then does not give it anything', async () => {
    const queue = createBoundedQueue<number>('q', 1);
    const reason = new Error('enough');
    const controller = new AbortController();
    const taker = queue.shift(controller.signal);
    controller.abort(reason);
    await expect(taker).rejects.toBe(reason);
    queue.push(1);
    const other = new AbortController();
    const giver = queue.pushWhenRoom(2, other.signal);
    other.abort(reason);
    await expect(giver).rejects.toBe(reason);
    await expect(queue.pushWhenRoom(3, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(await queue.shift()).toBe(1);
    expect(queue.depth).toBe(0);
    await expect(queue.shift(AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it('gives out what it holds after it is closed, then ends', async () => {
    const queue = createBoundedQueue<number>('q', 1);
    queue.push(1);
    const giver = queue.pushWhenRoom(2);
    queue.close();
    queue.close();
    await expect(giver).rejects.toMatchObject({ code: 'unavailable' });
    expect(codeOf(() => queue.push(3))).toBe('unavailable');
    await expect(queue.pushWhenRoom(3)).rejects.toBeInstanceOf(DsecError);
    expect(await queue.shift()).toBe(1);
    expect(await queue.shift()).toBeUndefined();
    const empty = createBoundedQueue<number>('q', 1);
    const taker = empty.shift();
    empty.close();
    expect(await taker).toBeUndefined();
  });

  it('holds items that look like nothing', async () => {
    const queue = createBoundedQueue<unknown>('q', 3);
    for (const item of [undefined, null, 0]) queue.push(item);
    expect([await queue.shift(), await queue.shift(), await queue.shift()]).toEqual([
      undefined,
      null,
      0,
    ]);
    expect(queue.depth).toBe(0);
  });

  it.each([0, -1, 1.5, Number.NaN])('refuses a limit of %j', (depthMax) => {
    expect(codeOf(() => createBoundedQueue('q', depthMax))).toBe('internal');
  });
});
