import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { onAborted } from '../src/abort-listeners.ts';
import { startDeadline } from '../src/index.ts';

const listenersOf = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;

it('calls all of a signal by one listener, and none that was taken back', () => {
  const controller = new AbortController();
  const { signal } = controller;
  const called: number[] = [];
  const offs = Array.from({ length: 100 }, (_, index) =>
    onAborted(signal, () => void called.push(index)),
  );
  expect(listenersOf(signal)).toBe(1);
  for (const off of offs.slice(2)) off();
  offs[2]?.();
  expect(listenersOf(signal)).toBe(1);
  controller.abort();
  expect(called).toEqual([0, 1]);
  for (const off of offs) off();
});

it('leaves no listener behind, and may be used again', () => {
  const { signal } = new AbortController();
  for (let round = 0; round < 2; round += 1) {
    const off = onAborted(signal, () => undefined);
    expect(listenersOf(signal)).toBe(1);
    off();
    expect(listenersOf(signal)).toBe(0);
  }
});

it('lets a thousand deadlines end with their caller', () => {
  const caller = new AbortController();
  const deadlines = Array.from({ length: 1000 }, () => startDeadline(60_000, caller.signal));
  expect(listenersOf(caller.signal)).toBe(1);
  deadlines[0]?.stop();
  caller.abort();
  expect(deadlines.map(({ signal }) => signal.aborted)).toEqual([
    false,
    ...Array.from({ length: 999 }, () => true),
  ]);
  for (const deadline of deadlines) deadline.stop();
});
