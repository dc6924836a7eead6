import { closeSync, openSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSeededRandom } from '@dsec/std';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type ByteSource,
  copyBytes,
  createChunkSource,
  createFileSource,
  drain,
  FILL_BYTES_MAX,
  readExactly,
} from '../../src/sources/byte-source.ts';
import { createPace } from '../../src/sources/pace.ts';
import { errorWith, scratchDirectory } from './scratch.ts';

const bytes = Buffer.from(createSeededRandom(1).bytes(3_000_000));
const path = join(scratchDirectory(), 'bytes');
writeFileSync(path, bytes);
const fd = openSync(path, 'r');
afterAll(() => closeSync(fd));

/** Chunks of odd lengths, empty ones among them. */
async function* chunksOf(all: Buffer): AsyncGenerator<Uint8Array> {
  const random = createSeededRandom(2);
  for (let at = 0; at < all.length; ) {
    const length = [0, 1, 511, 70_000, 1_500_000][random.int(5)] ?? 0;
    yield all.subarray(at, at + length);
    at += length;
  }
}

const makers: [string, (pace?: ReturnType<typeof createPace>) => ByteSource][] = [
  ['file', (pace = createPace()) => createFileSource({ fd, start: 0, end: bytes.length }, pace)],
  [
    'file seen',
    () => createFileSource({ fd, start: 0, end: bytes.length }, createPace(), () => {}),
  ],
  ['chunks', () => createChunkSource(chunksOf(bytes), createPace())],
];

describe.each(makers)('a source of a %s', (_, make) => {
  it('gives the bytes in order, whatever is asked for', async () => {
    const random = createSeededRandom(3);
    const source = make();
    let at = 0;
    while (at < bytes.length - FILL_BYTES_MAX) {
      const count = [0, 1, 512, 4096, 65_537, FILL_BYTES_MAX][random.int(6)] ?? 0;
      expect(source.position).toBe(at);
      if (random.int(3) === 0) {
        await source.skip(count);
      } else {
        const buffered = await source.fill(count);
        expect(buffered).toBeGreaterThanOrEqual(count);
        expect(source.peek(count).equals(source.take(count))).toBe(true);
      }
      at += count;
    }
    const rest: Buffer[] = [];
    await copyBytes(source, bytes.length - at, (piece) => rest.push(Buffer.from(piece)));
    expect(Buffer.concat(rest).equals(bytes.subarray(at))).toBe(true);
    expect(await source.fill(1)).toBe(0);
    await source.close();
  });

  it('says where the input ended', async () => {
    const source = make();
    await source.skip(bytes.length - 10);
    expect(await source.fill(100)).toBe(10);
    const where = new RegExp(`after byte ${bytes.length}$`);
    await expect(readExactly(source, 11)).rejects.toThrowError(errorWith('import-invalid', where));
    await expect(source.skip(11)).rejects.toThrowError(errorWith('import-invalid'));
  });

  it('ends copying and skipping short input with an error', async () => {
    const pieces = copyBytes(make(), bytes.length + 1, () => {});
    await expect(pieces).rejects.toThrowError(errorWith('import-invalid'));
    await expect(make().skip(bytes.length + 1)).rejects.toThrowError(errorWith('import-invalid'));
  });
});

it('shows every byte of a range once, in order, also those passed over', async () => {
  const seen: Buffer[] = [];
  const range = { fd, start: 1000, end: 2_500_000 };
  const source = createFileSource(range, createPace(), (part) => seen.push(Buffer.from(part)));
  await source.skip(700_000);
  await readExactly(source, 512);
  await source.skip(range.end - range.start - 700_512);
  expect(Buffer.concat(seen).equals(bytes.subarray(range.start, range.end))).toBe(true);
});

it('takes a file that was cut meanwhile for one that ends', async () => {
  const shrunk = `${path}.shrunk`;
  writeFileSync(shrunk, bytes);
  const shrunkFd = openSync(shrunk, 'r');
  truncateSync(shrunk, 100);
  const source = createFileSource({ fd: shrunkFd, start: 0, end: bytes.length }, createPace());
  await expect(readExactly(source, 512)).rejects.toThrowError(errorWith('import-invalid'));
  closeSync(shrunkFd);
});

it('stops reading a file after an abort', async () => {
  const endless = `${path}.endless`;
  writeFileSync(endless, '');
  truncateSync(endless, 2 ** 40);
  const endlessFd = openSync(endless, 'r');
  const abort = new AbortController();
  const pace = createPace({ signal: abort.signal });
  const source = createFileSource({ fd: endlessFd, start: 0, end: 2 ** 40 }, pace);
  setTimeout(() => abort.abort(), 30);
  const reading = copyBytes(source, 2 ** 40, () => {});
  await expect(reading).rejects.toThrowError(errorWith('cancelled'));
  closeSync(endlessFd);
});

it('stops what feeds it when it is closed', async () => {
  let stopped = false;
  async function* endless() {
    try {
      for (;;) yield Buffer.alloc(10);
    } finally {
      stopped = true;
    }
  }
  const source = createChunkSource(endless(), createPace());
  await source.fill(25);
  expect(source.take(25).length).toBe(25);
  await source.close();
  expect(stopped).toBe(true);
});

describe('drain', () => {
  it('takes what is left, to a bound', async () => {
    const few = createChunkSource(chunksOf(bytes.subarray(0, 20_000)), createPace());
    await few.fill(1);
    await drain(few);
    expect([few.position, few.buffered]).toEqual([20_000, 0]);
    const many = createChunkSource(chunksOf(bytes), createPace());
    await drain(many);
    expect(many.position).toBeGreaterThanOrEqual(FILL_BYTES_MAX);
    expect(many.position).toBeLessThan(bytes.length);
  });
});
