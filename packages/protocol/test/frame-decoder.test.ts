import { AETHER_FRAMES, type AetherFrame, createFrameDecoder, encodeFrame } from '@dsec/protocol';
import { expect, test } from 'vitest';

const frames: AetherFrame[] = [
  {
    type: 'hello',
    stream: 0,
    epoch: 7,
    offset: 1,
    fields: { nonce: new Uint8Array(16).fill(9), versionMax: 1, sandboxId: 'sb-a-b-c' },
  },
  {
    type: 'exec-start',
    stream: 3,
    epoch: 7,
    offset: 2,
    fields: {
      execId: 'ex-1',
      argv: [Buffer.from('a'), Buffer.from([255])],
      environment: [],
      stdin: true,
      windowBytes: 65536,
      terminal: { rows: 2, columns: 3 },
    },
  },
  {
    type: 'stdout',
    stream: 3,
    epoch: 7,
    offset: 2 ** 40 + 5,
    data: Buffer.from('hey'),
    end: false,
  },
  { type: 'stdout', stream: 3, epoch: 7, offset: 2 ** 40 + 8, data: Buffer.alloc(0), end: true },
];
test('x', () => {
  const s = createFrameDecoder(AETHER_FRAMES, { from: 'server' });
  expect(s.push(encodeFrame(AETHER_FRAMES, frames[2] as AetherFrame)).map((f) => f.type)).toEqual([
    'stdout',
  ]);
  const c = createFrameDecoder(AETHER_FRAMES, { from: 'client' });
  const all = Buffer.concat(frames.slice(0, 2).map((f) => encodeFrame(AETHER_FRAMES, f)));
  const out: AetherFrame[] = [];
  for (const b of all) out.push(...c.push(Uint8Array.of(b)));
  expect(out).toEqual(frames.slice(0, 2).map((f) => ({ ...f })));
});
