/**
 * The frame codec in TypeScript and in C: what is valid comes back, what is hostile is refused in bounded
 * memory.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import {
  AETHER_FRAMES,
  type AnyFrame,
  createFrameDecoder,
  encodeFrame,
  FRAME_HEADER_BYTES,
  FRAME_PAYLOAD_BYTES_MAX,
  type FrameProtocol,
  LAUNCHER_FRAMES,
} from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyFrameOf } from './frames-arbitrary.ts';

const long = process.env.DSEC_TEST_LONG === '1';
const runs = { seed: 20_260_919, numRuns: long ? 50_000 : 1_000 };
const native = fileURLToPath(new URL('../../native', import.meta.url));

const sideOf = (protocol: FrameProtocol, { type }: AnyFrame) =>
  protocol.frames[type]?.from === 'server' ? 'server' : 'client';

/** Feeds bytes cut at arbitrary places. Returns the frames, or the error that ended it. */
function feed(protocol: FrameProtocol, from: 'client' | 'server', bytes: Buffer, cuts: number[]) {
  const decoder = createFrameDecoder(protocol, { from });
  const frames: AnyFrame[] = [];
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  let at = 0;
  try {
    for (const place of [...places, bytes.length]) {
      frames.push(...(decoder.push(bytes.subarray(at, place)) as AnyFrame[]));
      at = place;
      expect(decoder.bufferedBytes).toBeLessThanOrEqual(
        FRAME_PAYLOAD_BYTES_MAX + FRAME_HEADER_BYTES,
      );
    }
  } catch (error) {
    return { frames, error };
  }
  return { frames, error: undefined };
}

const comparable = (frame: AnyFrame) =>
  JSON.stringify(frame, (_, value) => {
    if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
    if (value?.type === 'Buffer') return Buffer.from(value.data).toString('hex');
    return Object.is(value, -0) ? 0 : value;
  });

describe.each<[string, FrameProtocol]>([
  ['aether', AETHER_FRAMES],
  ['launcher', LAUNCHER_FRAMES],
])('%s', (_, protocol) => {
  const frame = anyFrameOf(protocol, 64);
  const cuts = fc.array(fc.nat({ max: 4096 }), { maxLength: 8 });

  test('any valid frames, cut anywhere, come back in order', () => {
    fc.assert(
      fc.property(fc.array(frame, { minLength: 1, maxLength: 5 }), cuts, (frames, places) => {
        for (const side of ['client', 'server'] as const) {
          const sent = frames.filter((f) => sideOf(protocol, f) === side);
          const bytes = Buffer.concat(sent.map((f) => encodeFrame(protocol, f as never)));
          const { frames: received, error } = feed(protocol, side, bytes, places);
          expect(error).toBeUndefined();
          expect(received.map(keyless)).toEqual(sent.map(keyless));
        }
      }),
      runs,
    );
  });

  test('any one changed byte gives frames that encode to the same bytes, or a violation', () => {
    fc.assert(
      fc.property(frame, fc.nat(), fc.integer({ min: 1, max: 255 }), (valid, at, change) => {
        const bytes = Buffer.from(encodeFrame(protocol, valid as never));
        const place = at % bytes.length;
        bytes[place] = (bytes[place] as number) ^ change;
        expectCanonicalOrViolation(protocol, bytes, []);
      }),
      runs,
    );
  });

  test('any bytes after a header give a violation or frames, never anything else', () => {
    const codes = Object.values(protocol.frames).map((definition) => definition.code);
    fc.assert(
      fc.property(
        fc.constantFrom(...codes),
        fc.uint8Array({ maxLength: 256 }),
        cuts,
        (code, payload, places) => {
          const header = Buffer.alloc(FRAME_HEADER_BYTES);
          header.writeUInt32LE(payload.length, 0);
          header.set([1, code], 4);
          header.writeUInt32LE(payload.length % 2, 8);
          expectCanonicalOrViolation(protocol, Buffer.concat([header, payload]), places);
        },
      ),
      runs,
    );
  });
});

/** Keys in one order, bytes in one form. */
function keyless(frame: AnyFrame): unknown {
  return JSON.parse(comparable(frame));
}

function expectCanonicalOrViolation(protocol: FrameProtocol, bytes: Buffer, cuts: number[]): void {
  for (const side of ['client', 'server'] as const) {
    const { frames, error } = feed(protocol, side, bytes, cuts);
    if (error !== undefined) {
      expect(error).toBeInstanceOf(DsecError);
      expect((error as DsecError).code).toBe('protocol');
    }
    const again = Buffer.concat(frames.map((f) => encodeFrame(protocol, f as never)));
    expect(again.equals(bytes.subarray(0, again.length))).toBe(true);
  }
}

test('announced lengths cost nothing until the bytes come', () => {
  const before = process.memoryUsage().arrayBuffers;
  const decoders = Array.from({ length: 2_000 }, () => {
    const decoder = createFrameDecoder(AETHER_FRAMES, { from: 'server' });
    const bytes = encodeFrame(AETHER_FRAMES, {
      ...{ type: 'stdout', stream: 1, epoch: 0, offset: 0 },
      ...{ data: new Uint8Array(65_536), end: false },
    });
    decoder.push(bytes.subarray(0, FRAME_HEADER_BYTES));
    return decoder;
  });
  const grown = process.memoryUsage().arrayBuffers - before;
  expect(decoders.every((decoder) => decoder.bufferedBytes === FRAME_HEADER_BYTES)).toBe(true);
  expect(grown).toBeLessThan(256 * 1024 * 1024);
});

const has = (program: string) => {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};
test('C codec under ASan and UBSan', (context) => {
  context.skip(!has('cc') || !has('make'), 'needs a C compiler and make');
  const output = execFileSync('make', ['-s', 'test'], { cwd: native, encoding: 'utf8' });
  expect(output).toContain('frame_test: ok');
});

test('C codec under libFuzzer', (context) => {
  context.skip(!['clang', 'clang-14', 'clang-19'].some(has), 'needs clang');
  const count = long ? 5_000_000 : 100_000;
  const output = execFileSync('sh', ['-c', `make -s fuzz RUNS=${count} 2>&1`], {
    cwd: native,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  expect(output).toMatch(new RegExp(`number_of_executed_units: ${count}`));
});
