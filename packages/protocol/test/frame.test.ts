import {
  AETHER_FRAMES,
  type AetherFrame,
  control,
  defineFrameProtocol,
  type ExecStartFields,
  encodeDataHeader,
  encodeFrame,
  FRAME_DATA_BYTES_MAX,
  payloadBytesMax,
  wire,
} from '@dsec/protocol';
import { expect, test } from 'vitest';

const place = { stream: 3, epoch: 7, offset: 2 ** 40 + 5 };

test('a header is laid out as documented', () => {
  const frame = { type: 'stdout', ...place, data: Buffer.from('hey'), end: true } as const;
  expect(Buffer.from(encodeFrame(AETHER_FRAMES, frame)).toString('hex')).toBe(
    '03000000' + '01' + '21' + '0100' + '03000000' + '07000000' + '0500000000010000' + '686579',
  );
});

test('a header and its data sent apart are the frame', () => {
  const frame = { type: 'stdin', ...place, data: Buffer.alloc(70, 1), end: false } as const;
  const parts = [encodeDataHeader(AETHER_FRAMES, frame), frame.data];
  expect(Buffer.concat(parts)).toEqual(encodeFrame(AETHER_FRAMES, frame));
});

test.each<[string, AetherFrame]>([
  [
    'data that is too long',
    { type: 'stdin', ...place, data: Buffer.alloc(FRAME_DATA_BYTES_MAX + 1), end: false },
  ],
  [
    'empty data that is not the last',
    { type: 'stdin', ...place, data: Buffer.alloc(0), end: false },
  ],
  ['stream 0 for a stream frame', { type: 'cancel', ...place, stream: 0, fields: {} }],
  ['a stream for a connection frame', { type: 'ping', ...place, fields: {} }],
  ['an unsafe offset', { type: 'cancel', ...place, offset: 2 ** 53, fields: {} }],
  ['an unknown type', { ...({ type: 'nonsense' } as unknown as AetherFrame), ...place }],
])('encoding refuses %s as a fault of our own', (_, frame) => {
  expect(() => encodeFrame(AETHER_FRAMES, frame)).toThrow(
    expect.objectContaining({ code: 'internal' }),
  );
});

test('fields that together exceed the longest payload are refused', () => {
  const argument = new Uint8Array(100 * 1024).fill(65);
  const fields = {
    execId: 'ex-1',
    argv: [argument],
    shell: argument,
    env: [],
    stdinOpen: false,
    windowBytes: 65_536,
  };
  const long = { ...fields, env: Array(2).fill(argument.subarray(0, 32_000)) };
  const start = (value: ExecStartFields) =>
    encodeFrame(AETHER_FRAMES, { type: 'exec-start', ...place, fields: value });
  expect(start(fields).byteLength).toBeGreaterThan(200 * 1024);
  expect(() => start(long)).toThrow(expect.objectContaining({ code: 'invalid-argument' }));
});

test('every frame of the protocols fits its limit, and codes are distinct', () => {
  for (const definition of Object.values(AETHER_FRAMES.frames)) {
    expect(payloadBytesMax(definition)).toBeLessThanOrEqual(256 * 1024);
  }
  const M = wire.message('m', {});
  expect(() =>
    defineFrameProtocol('p', {
      a: control(1, 'both', 'any', M),
      b: control(1, 'both', 'any', M),
    }),
  ).toThrow('used twice');
  expect(() => defineFrameProtocol('p', { a: control(256, 'both', 'any', M) })).toThrow('1 to 255');
});
