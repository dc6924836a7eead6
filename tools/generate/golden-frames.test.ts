import { readFileSync } from 'node:fs';
import { AETHER_FRAMES, createFrameDecoder, encodeFrame, LAUNCHER_FRAMES } from '@dsec/protocol';
import { expect, test } from 'vitest';
import { describeFrame, parseGolden } from './golden-frames.mjs';

interface Golden {
  readonly frame: string;
  readonly protocol: 'aether' | 'launcher';
  readonly from: 'client' | 'server';
  readonly hex: string;
  readonly lines: readonly string[];
}

const golden = (file: string): Golden[] =>
  parseGolden(
    readFileSync(new URL(`../../spec/golden/${file}`, import.meta.url), 'utf8'),
  ) as unknown[] as Golden[];
const protocols = { aether: AETHER_FRAMES, launcher: LAUNCHER_FRAMES };
const good = golden('frames.txt');
const broken = golden('broken-frames.txt');

test('every frame type has golden frames', () => {
  const types = (name: string) =>
    new Set(good.filter((g) => g.protocol === name).map((g) => g.frame.split(':')[0]));
  expect([...types('aether')]).toEqual(Object.keys(AETHER_FRAMES.frames));
  expect([...types('launcher')]).toEqual(Object.keys(LAUNCHER_FRAMES.frames));
  expect(broken.length).toBeGreaterThan(30);
});

test.each(good.map((g) => [`${g.protocol} ${g.frame}`, g]))(
  '%s',
  (_, { protocol, from, hex, lines }) => {
    const frames = protocols[protocol];
    const [frame, ...rest] = createFrameDecoder(frames, { from }).push(Buffer.from(hex, 'hex'));
    expect(rest).toEqual([]);
    expect(describeFrame(frames, frame)).toEqual(lines);
    expect(Buffer.from(encodeFrame(frames, frame as never)).toString('hex')).toBe(hex);
  },
);

test.each(broken.map((g) => [g.frame, g]))('broken: %s', (_, { from, hex }) => {
  const decoder = createFrameDecoder(AETHER_FRAMES, { from });
  expect(() => decoder.push(Buffer.from(hex, 'hex'))).toThrow(
    expect.objectContaining({ code: 'protocol' }),
  );
});
