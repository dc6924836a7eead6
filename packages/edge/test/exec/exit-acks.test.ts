import { createManualClock, type ExecId } from '@dsec/std';
import { expect, it } from 'vitest';
import { createExitAcks } from '../../src/exec/exit-acks.ts';

const idOf = (n: number) => `ex-${String(n).padStart(16, 'a')}` as ExecId;
const turn = () => new Promise((resolve) => setImmediate(resolve));

function opened() {
  const clock = createManualClock();
  const told: string[] = [];
  const stream = {
    send: async (_type: string, { execId }: { execId: string }) => void told.push(execId),
  };
  const acks = createExitAcks(clock);
  return { clock, told, add: (n: number) => acks.add(stream as never, idOf(n)) };
}

it('tells of several commands together, after a while, each once', async () => {
  const { clock, told, add } = opened();
  add(1);
  add(2);
  await turn();
  expect(told).toEqual([]);
  clock.advance(20);
  await turn();
  expect(told).toEqual([idOf(1), idOf(2)]);
  add(3);
  clock.advance(20);
  await turn();
  expect(told).toEqual([idOf(1), idOf(2), idOf(3)]);
});

it('does not let many wait', async () => {
  const { told, add } = opened();
  for (let n = 0; n < 70; n += 1) add(n);
  await turn();
  expect(told).toHaveLength(64);
});
