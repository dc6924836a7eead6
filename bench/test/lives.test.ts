import { describe, expect, it } from 'vitest';
import { inLanes, ratePerSecond, runBurst, runLives, timePercentile } from '../src/lives.ts';

describe('inLanes', () => {
  it('does everything once, with no more in flight than asked', async () => {
    const done: number[] = [];
    let now = 0;
    let most = 0;
    await inLanes(20, 4, async (index) => {
      now += 1;
      most = Math.max(most, now);
      await Promise.resolve();
      now -= 1;
      done.push(index);
    });
    expect(done.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index));
    expect(most).toBe(4);
  });

  it('ends with the first failure, when all that was under way is over', async () => {
    const begun: number[] = [];
    let over = 0;
    const work = inLanes(100, 2, async (index) => {
      begun.push(index);
      await Promise.resolve();
      over += 1;
      if (index === 3) throw new Error('the fourth');
    });
    await expect(work).rejects.toThrow('the fourth');
    expect(over).toBe(begun.length);
    expect(begun.length).toBeLessThan(10);
  });

  it('ends when it is interrupted', async () => {
    const gone = new AbortController();
    let count = 0;
    const work = inLanes(
      100,
      1,
      async () => {
        count += 1;
        if (count === 5) gone.abort(new Error('interrupted'));
      },
      gone.signal,
    );
    await expect(work).rejects.toThrow('interrupted');
    expect(count).toBe(5);
  });
});

describe('lives', () => {
  it('have a rate, and percentiles of the times that they have', async () => {
    const result = await runLives({ count: 3, inFlight: 1 }, async (index) => ({
      firstCommandMs: index + 1,
    }));
    expect(ratePerSecond({ ...result, wallMs: 1500 })).toBe(2);
    expect(timePercentile(result, 'firstCommandMs', 50)).toBe(2);
    expect(timePercentile(result, 'readyMs', 50)).toBeUndefined();
  });
});

describe('a burst', () => {
  it('has all of them there before any goes', async () => {
    let there = 0;
    let most = 0;
    const start = async () => {
      there += 1;
      most = Math.max(most, there);
      return async () => {
        there -= 1;
      };
    };
    const result = await runBurst({ count: 10, inFlight: 3 }, start);
    expect(result.count).toBe(10);
    expect([there, most]).toEqual([0, 10]);
  });

  it('removes what is there when one fails', async () => {
    let there = 0;
    const start = async () => {
      if (there === 4) throw new Error('the fifth');
      there += 1;
      return async () => {
        there -= 1;
      };
    };
    await expect(runBurst({ count: 10, inFlight: 1 }, start)).rejects.toThrow('the fifth');
    expect(there).toBe(0);
  });
});
