import { DsecError } from '@dsec/std';
import { expect, it } from 'vitest';
import { createInbox, takeAll } from '../src/inbox.ts';

function inbox(itemsMax: number, bytesMax: number) {
  const valve: string[] = [];
  const made = createInbox<number>({
    itemsMax,
    bytesMax,
    pause: () => valve.push('pause'),
    resume: () => valve.push('resume'),
  });
  return { ...made, valve, take: made.take, isPaused: () => made.paused };
}

it('pauses its source when full, by items or by bytes, and resumes it at half', async () => {
  for (const [itemsMax, bytesMax, size] of [
    [4, 1000, 1],
    [1000, 40, 10],
  ] as const) {
    const box = inbox(itemsMax, bytesMax);
    for (let i = 0; i < 3; i += 1) box.push(i, size);
    expect(box.valve).toEqual([]);
    box.push(3, size);
    box.push(4, size);
    expect(box.valve).toEqual(['pause']);
    expect(await box.take()).toBe(0);
    expect(await box.take()).toBe(1);
    expect(box.isPaused()).toBe(true);
    expect(await box.take()).toBe(2);
    expect(box.valve).toEqual(['pause', 'resume']);
    expect([await box.take(), await box.take()]).toEqual([3, 4]);
  }
});

it('gives what is inside before it tells of the end', async () => {
  const box = inbox(10, 10);
  box.push(1, 1);
  box.end(new DsecError('protocol', 'bad'));
  box.push(2, 1);
  expect(await box.take()).toBe(1);
  await expect(box.take()).rejects.toMatchObject({ code: 'protocol' });
  const proper = inbox(10, 10);
  for (let i = 0; i < 3000; i += 1) proper.push(i, 0);
  proper.end();
  const all: number[] = [];
  for await (const item of takeAll(() => proper.take())) all.push(item);
  expect(all).toEqual(Array.from({ length: 3000 }, (_, i) => i));
});

it('hands an item straight to a waiting taker, and has one taker at a time', async () => {
  const box = inbox(1, 1);
  const waiting = box.take();
  await expect(box.take()).rejects.toMatchObject({ code: 'internal' });
  box.push(7, 100);
  expect(await waiting).toBe(7);
  expect(box.valve).toEqual([]);
});
