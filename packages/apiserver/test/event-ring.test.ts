import type { Event } from '@dsec/protocol';
import { expect, test } from 'vitest';
import { createEventRing } from '../src/events/event-ring.ts';

const never = new AbortController().signal;
const event = (number: number, project = 'p') =>
  ({ type: 'sandbox-state', cursor: `c-${number}`, project, atMs: number }) as Event;
const filter = (project = 'p', wants: (event: Event) => boolean = () => true) => ({
  project,
  wants,
});

test('keeps the newest, in order', () => {
  const ring = createEventRing(4);
  for (let number = 0; number < 10; number += 1) ring.append('a', event(number));
  expect([ring.start, ring.end]).toEqual([6, 10]);
  expect([6, 7, 8, 9].map((index) => ring.at(index).cursor)).toEqual(['c-6', 'c-7', 'c-8', 'c-9']);
});

test('finds the place of a cursor that was told, until it is too old; and the end', () => {
  const ring = createEventRing(4);
  ring.append('a', event(0));
  ring.append('b', event(1));
  const cursor = ring.cursorAt(0);
  expect(ring.find(cursor)).toBe(1);
  expect(ring.find(ring.cursorAt(1))).toBe(2);
  for (let number = 2; number < 5; number += 1) ring.append('a', event(number));
  expect(ring.find(cursor)).toBeUndefined();
});

test('a cursor holds the places of all edges', () => {
  const ring = createEventRing(8);
  ring.setPlace('a', 'a-0');
  ring.setPlace('b', 'b-0');
  ring.append('a', event(1));
  expect(ring.place).toEqual(
    new Map([
      ['a', 'c-1'],
      ['b', 'b-0'],
    ]),
  );
});

test('who waits is woken by what it wants, and reads on behind what it did not', async () => {
  const ring = createEventRing(4);
  const second = ring.wait(
    filter('p', ({ atMs }) => atMs === 7),
    never,
    60_000,
  );
  for (let number = 0; number < 8; number += 1) ring.append('a', event(number, 'p'));
  ring.append('a', event(7, 'other'));
  expect(await second).toEqual({ next: 7, isQuiet: false });
});

test('other projects do not wake anybody; a loss wakes all', async () => {
  const ring = createEventRing(4);
  const [mine, theirs] = [
    ring.wait(filter('p'), never, 60_000),
    ring.wait(filter('q'), never, 60_000),
  ];
  ring.append('a', event(0, 'q'));
  expect(await theirs).toEqual({ next: 0, isQuiet: false });
  ring.append('a', { type: 'lost', cursor: 'c', atMs: 1 });
  expect(await mine).toEqual({ next: 1, isQuiet: false });
});

test('silence ends a wait, and so do the signal and the end of the ring', async () => {
  const ring = createEventRing(4);
  expect(await ring.wait(filter(), never, 1)).toEqual({ next: 0, isQuiet: true });
  const leaving = new AbortController();
  const left = ring.wait(filter(), leaving.signal, 60_000);
  leaving.abort();
  expect((await left).isQuiet).toBe(true);
  const closed = ring.wait(filter(), never, 60_000);
  ring.close();
  expect((await closed).isQuiet).toBe(true);
});
