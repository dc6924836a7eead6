import { expect, it } from 'vitest';
import { createPace } from '../../src/sources/pace.ts';
import { errorWith } from './scratch.ts';

/** Asks again and again, as a synchronous import would, until it is told to wait. */
async function untilDue(pace: ReturnType<typeof createPace>): Promise<void> {
  let turn = pace.due();
  while (turn === undefined) turn = pace.due();
  await turn;
}

it('lets the event loop turn, so that an abort comes through', async () => {
  const abort = new AbortController();
  const pace = createPace({ signal: abort.signal });
  let turns = 0;
  const busy = (async () => {
    for (;;) {
      await untilDue(pace);
      turns += 1;
    }
  })();
  setTimeout(() => abort.abort(new Error('enough')), 50);
  await expect(busy).rejects.toThrowError(errorWith('cancelled'));
  expect(turns).toBeGreaterThan(0);
});

it('tells what was read, now and then', async () => {
  const told: (readonly [number, number | null])[] = [];
  const pace = createPace({
    onProgress: ({ bytes, bytesTotal }) => told.push([bytes, bytesTotal]),
  });
  pace.expect(1000);
  let turns = 0;
  while (told.length < 2) {
    pace.count(1);
    await untilDue(pace);
    turns += 1;
  }
  expect(told[0]?.[1]).toBe(1000);
  expect(told[1]?.[0]).toBe(turns);
  expect(told.length).toBeLessThan(turns);
});
