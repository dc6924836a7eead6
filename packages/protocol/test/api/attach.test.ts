import {
  ATTACH_DATA_BYTES_MAX,
  AttachClientMessage,
  decodeAttachData,
  encodeAttachData,
  isValid,
} from '@dsec/protocol';
import { expect, test } from 'vitest';

test('bytes of a channel come back with their offset', () => {
  const message = { channel: 'stderr', offset: 2 ** 40 + 1, data: Buffer.from('abc') } as const;
  const encoded = encodeAttachData(message);
  expect(Buffer.from(encoded).toString('hex')).toBe('02' + '0100000000010000' + '616263');
  expect(decodeAttachData(encoded)).toEqual(message);
});

test.each([
  ['a short header', Buffer.alloc(8)],
  ['an unknown channel', Buffer.concat([Buffer.from([3]), Buffer.alloc(8)])],
  ['an offset beyond 2^53', Buffer.concat([Buffer.from([1]), Buffer.alloc(8, 0xff)])],
  ['too many bytes', Buffer.alloc(9 + ATTACH_DATA_BYTES_MAX + 1)],
])('%s is a violation', (_, message) => {
  expect(() => decodeAttachData(message)).toThrow(expect.objectContaining({ code: 'protocol' }));
});

test('text messages are told apart by their type', () => {
  const ok = (value: unknown) => isValid(AttachClientMessage, value);
  expect(ok({ type: 'ack', channel: 'stdout', offset: 3 })).toBe(true);
  expect(ok({ type: 'resize', rows: 24, columns: 80 })).toBe(true);
  expect(ok({ type: 'ack', channel: 'stdin', offset: 3 })).toBe(false);
  expect(ok({ type: 'resize', rows: 24 })).toBe(false);
  expect(ok({ type: 'other' })).toBe(false);
});
