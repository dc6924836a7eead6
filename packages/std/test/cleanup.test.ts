import { createCleanupStack, DsecError } from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

describe('createCleanupStack', () => {
  it('undoes every step once, in reverse, whichever fail, and names those', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom('ok', 'throws', 'rejects')), async (kinds) => {
        const order: number[] = [];
        const stack = createCleanupStack();
        kinds.forEach((kind, index) => {
          stack.push(`step ${index}`, () => {
            order.push(index);
            if (kind === 'throws') throw new Error(`no ${index}`);
            return kind === 'rejects'
              ? Promise.reject(new Error(`no ${index}`))
              : Promise.resolve();
          });
        });
        const failures = await stack.run();
        const reverse = kinds.map((_, index) => index).reverse();
        expect(order).toEqual(reverse);
        expect(failures.map(({ step, error }) => `${step}: ${error.message}`)).toEqual(
          reverse.filter((index) => kinds[index] !== 'ok').map((i) => `step ${i}: no ${i}`),
        );
      }),
      { seed: 1 },
    );
  });

  it('runs one undo at a time', async () => {
    const log: string[] = [];
    const stack = createCleanupStack();
    for (const name of ['a', 'b']) {
      stack.push(name, async () => {
        log.push(`${name} starts`);
        await new Promise((resolve) => setImmediate(resolve));
        log.push(`${name} ends`);
      });
    }
    await stack.run();
    expect(log).toEqual(['b starts', 'b ends', 'a starts', 'a ends']);
  });

  it('runs once, also when asked twice at the same time', async () => {
    let count = 0;
    const stack = createCleanupStack();
    stack.push('count', () => {
      count += 1;
      throw new Error('no');
    });
    const [first, second] = await Promise.all([stack.run(), stack.run()]);
    expect(count).toBe(1);
    expect(second).toEqual(first);
  });

  it('keeps the code of a failure', async () => {
    const stack = createCleanupStack();
    stack.push('disk', () => {
      throw new DsecError('storage-full', 'no room');
    });
    expect((await stack.run())[0]?.error.code).toBe('storage-full');
  });

  it('forgets everything when the work is released', async () => {
    const stack = createCleanupStack();
    stack.push('never', () => {
      throw new Error('undone');
    });
    stack.release();
    expect(await stack.run()).toEqual([]);
  });

  it('undoes at once what is pushed after it ran, and reports that with the rest', async () => {
    const done: string[] = [];
    const stack = createCleanupStack();
    stack.push('early', () => {
      throw new Error('first');
    });
    await stack.run();
    stack.push('late', () => {
      done.push('late');
      throw new Error('second');
    });
    const failures = await stack.run();
    expect(done).toEqual(['late']);
    expect(failures.map(({ step }) => step)).toEqual(['early', 'late']);
  });
});
