import {
  AETHER_FRAMES,
  type AetherFrame,
  createFrameDecoder,
  encodeFrame,
  FRAME_DATA_BYTES_MAX,
  FRAME_HEADER_BYTES,
  type FrameSide,
} from '@dsec/protocol';
import { expect, test } from 'vitest';

const hello: AetherFrame = {
  ...{ type: 'hello', stream: 0, epoch: 7, offset: 1 },
  fields: { nonce: Buffer.alloc(16, 9), versionMax: 1, sandboxId: 'sb-a-b-c' },
};
const start: AetherFrame = {
  ...{ type: 'exec-start', stream: 3, epoch: 7, offset: 2 },
  fields: {
    execId: 'ex-1',
    argv: [Buffer.from('cat'), Buffer.from([255])],
    env: [],
    pty: { rows: 24, columns: 80 },
    stdinOpen: true,
    windowBytes: 65_536,
  },
};
const stdin: AetherFrame = {
  ...{ type: 'stdin', stream: 3, epoch: 7, offset: 0 },
  ...{ data: Buffer.from('hello'), end: false },
};
const last: AetherFrame = {
  ...{ type: 'stdin', stream: 3, epoch: 7, offset: 5 },
  ...{ data: Buffer.alloc(0), end: true },
};
const all = [hello, start, stdin, last];
const encode = (...frames: AetherFrame[]) =>
  Buffer.concat(frames.map((frame) => encodeFrame(AETHER_FRAMES, frame)));
const decoder = (from: FrameSide = 'client', payloadBytesMax?: number) =>
  createFrameDecoder(AETHER_FRAMES, {
    from,
    ...(payloadBytesMax === undefined ? {} : { payloadBytesMax }),
  });
const protocolError = expect.objectContaining({ code: 'protocol' });

test.each([1, 2, 7, 23, 24, 25, 100, 10_000])('frames cut into chunks of %i bytes', (size) => {
  const bytes = encode(...all);
  const subject = decoder();
  const frames: AetherFrame[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    frames.push(...subject.push(bytes.subarray(at, at + size)));
  }
  expect(frames).toEqual(all);
  expect(subject.bufferedBytes).toBe(0);
  expect(() => subject.end()).not.toThrow();
});

test('a frame that lies within a chunk is not copied', () => {
  const chunk = encode(hello, stdin);
  const frames = decoder().push(chunk);
  expect((frames[1] as { data: Uint8Array }).data.buffer).toBe(chunk.buffer);
});

test('the rest of a frame is not mixed with the next one', () => {
  const bytes = encode(stdin, stdin, stdin);
  const subject = decoder();
  expect(subject.push(bytes.subarray(0, 40))).toEqual([stdin]);
  expect(subject.push(bytes.subarray(40))).toEqual([stdin, stdin]);
});

test('a bad header is refused before its payload comes', () => {
  const bytes = encode(stdin);
  bytes.writeUInt32LE(FRAME_DATA_BYTES_MAX + 1, 0);
  expect(() => decoder().push(bytes.subarray(0, FRAME_HEADER_BYTES))).toThrow(protocolError);
});

test('no more is held than one permitted payload', () => {
  const subject = decoder();
  const data = Buffer.alloc(FRAME_DATA_BYTES_MAX, 1);
  const bytes = encode({ type: 'stdin', stream: 1, epoch: 0, offset: 0, data, end: false });
  for (const byte of bytes.subarray(0, 2000)) subject.push(Buffer.of(byte));
  expect(subject.bufferedBytes).toBeLessThanOrEqual(FRAME_DATA_BYTES_MAX + FRAME_HEADER_BYTES);
});

test('a lower limit of the caller holds', () => {
  expect(() => decoder('client', 4).push(encode(stdin))).toThrow(protocolError);
  expect(decoder('client', 5).push(encode(stdin))).toEqual([stdin]);
});

test('a frame of the other side is refused', () => {
  expect(() => decoder('server').push(encode(hello))).toThrow('not for this direction');
});

test('after a violation every call fails, however good the bytes', () => {
  const subject = decoder();
  const bad = encode(stdin);
  bad[4] = 9;
  expect(() => subject.push(bad)).toThrow('frame version 9');
  expect(() => subject.push(encode(stdin))).toThrow('frame version 9');
  expect(() => subject.end()).toThrow('frame version 9');
  expect(subject.bufferedBytes).toBe(0);
});

test('frames before a violation in the same chunk are lost with it', () => {
  const subject = decoder();
  const bad = encode(stdin, stdin);
  bad[bad.length - 5 - 24 + 4] = 9;
  expect(() => subject.push(bad)).toThrow(protocolError);
});

test('an end inside a frame is a violation', () => {
  const subject = decoder();
  subject.push(encode(stdin).subarray(0, 3));
  expect(() => subject.end()).toThrow('inside a frame');
});

test.each([1, 10, 30, 100])('data given piece by piece, in chunks of %i bytes', (size) => {
  const data = Buffer.from('the quick brown fox');
  const frame: AetherFrame = {
    ...{ type: 'stdin', stream: 3, epoch: 7, offset: 1000 },
    ...{ data, end: true },
  };
  const bytes = encode(start, frame, start);
  const subject = createFrameDecoder(AETHER_FRAMES, { from: 'client', splitData: true });
  const frames: AetherFrame[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    frames.push(...subject.push(bytes.subarray(at, at + size)));
  }
  const pieces = frames.slice(1, -1) as (AetherFrame & { data: Uint8Array; end: boolean })[];
  expect(frames.at(0)).toEqual(start);
  expect(frames.at(-1)).toEqual(start);
  expect(Buffer.concat(pieces.map((piece) => piece.data))).toEqual(data);
  let next = 1000;
  for (const piece of pieces) {
    expect(piece.offset).toBe(next);
    next += piece.data.byteLength;
    expect(piece.end).toBe(next === 1000 + data.length);
  }
});
