import { expect, test } from 'vitest';
import { formatEventCursor, parseEventCursor } from '../src/events/event-cursor.ts';

test('a place in many streams comes back as it was, and fits', () => {
  const edges = Array.from({ length: 100 }, (_, index) => `edge${index}`);
  const place = new Map(edges.map((edge) => [edge, `${'f'.repeat(16)}-${'z'.repeat(11)}`]));
  const cursor = formatEventCursor(place);
  expect(cursor).toMatch(/^[A-Za-z0-9_-]{1,8192}$/);
  expect(parseEventCursor(cursor)).toEqual(new Map([...place].sort()));
});

test('the same place is the same cursor, whatever the order', () => {
  const parts = [
    ['a', '1'],
    ['b', '2'],
  ] as const;
  expect(formatEventCursor(new Map(parts))).toBe(formatEventCursor(new Map([...parts].reverse())));
});

test.each(['', 'x', 'YT0', 'QT0x', Buffer.from('a=1,,b=2').toString('base64url')])(
  'what is none is refused: %s',
  (cursor) => {
    expect(() => parseEventCursor(cursor)).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
  },
);
