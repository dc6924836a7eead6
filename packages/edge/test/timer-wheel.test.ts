import { createTimerWheel, TICK_MS } from '@dsec/edge';
import { createManualClock, createSeededRandom } from '@dsec/std';
import { expect, it } from 'vitest';

const turn = () => new Promise((resolve) => setImmediate(resolve));

function open() {
  const clock = createManualClock();
  const wheel = createTimerWheel(clock);
  const fired: string[] = [];
  const at = (ms: number, name = String(ms)) => wheel.at(ms, () => fired.push(name));
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= TICK_MS) {
      clock.advance(Math.min(left, TICK_MS));
      await turn();
    }
  };
  return { clock, wheel, fired, at, pass };
}

it('fires in order, never early, and within a tick', async () => {
  const { fired, at, pass } = open();
  for (const ms of [950, 150, 500, 501]) at(ms);
  await pass(400);
  expect(fired).toEqual(['150']);
  await pass(100);
  expect(fired).toEqual(['150', '500']);
  await pass(500);
  expect(fired).toEqual(['150', '500', '501', '950']);
});

it('fires what is due already with the next tick', async () => {
  const { fired, at, pass } = open();
  await pass(1000);
  at(5);
  expect(fired).toEqual([]);
  await pass(200);
  expect(fired).toEqual(['5']);
});

it('does not fire what was cancelled', async () => {
  const { fired, at, pass } = open();
  at(100).cancel();
  at(100, 'kept');
  at(100, 'gone').cancel();
  await pass(300);
  expect(fired).toEqual(['kept']);
});

it('knows no steps of the wall clock, and counts the time of a suspended machine', async () => {
  const { clock, fired, at, pass } = open();
  at(1000);
  at(3_600_000);
  clock.stepWall(10_000_000);
  await pass(500);
  expect(fired).toEqual([]);
  clock.suspend(3_600_000);
  await pass(100);
  expect(fired).toEqual(['1000', '3600000']);
});

it('fires what a timer sets, also for a time that has passed', async () => {
  const { wheel, fired, clock, pass } = open();
  const again = (left: number) => {
    fired.push(`${left}`);
    if (left > 0) wheel.at(wheel.nowMs() - 50, () => again(left - 1));
  };
  wheel.at(100, () => again(2));
  clock.suspend(100_000);
  await pass(1000);
  expect(fired).toEqual(['2', '1', '0']);
});

it('fires each of many timers once', async () => {
  const { wheel, pass } = open();
  const random = createSeededRandom(3);
  const counts = Array.from({ length: 2000 }, () => 0);
  for (const [index] of counts.entries()) {
    wheel.at(random.int(5000), () => {
      counts[index] = (counts[index] ?? 0) + 1;
    });
  }
  await pass(5200);
  expect(counts.every((count) => count === 1)).toBe(true);
});

it('forgets everything when it is closed', async () => {
  const { wheel, fired, at, pass } = open();
  at(100);
  wheel.close();
  await pass(300);
  expect(fired).toEqual([]);
});
