import { expect, test } from 'vitest';
import { decodeRecord, encodeRecord, type KeyRecord, shownKey } from '../src/key-record.ts';

const record: KeyRecord = {
  ...{ format: 1, id: `ke-${'a'.repeat(16)}`, hash: 'f'.repeat(64), name: 'n' },
  ...{ project: 'p', principal: 'q', scopes: ['exec'], createdAtMs: 5 },
};

test('a record comes back as it was, and is shown without its hash', () => {
  expect(decodeRecord(encodeRecord(record))).toEqual(record);
  expect(JSON.stringify(shownKey(record))).not.toContain('ffff');
});

test.each(['', '{}', 'null', JSON.stringify({ ...record, scopes: [] })])(
  'what is none lets nobody in: %s',
  (text) => {
    expect(() => decodeRecord(Buffer.from(text))).toThrowError(
      expect.objectContaining({ code: 'data-loss' }),
    );
  },
);
