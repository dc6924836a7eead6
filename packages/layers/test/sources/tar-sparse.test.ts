import { describe, expect, it } from 'vitest';
import type { PaxSparse } from '../../src/sources/pax.ts';
import { readOldSparse, readPaxSparse } from '../../src/sources/tar-sparse.ts';
import { errorWith } from './scratch.ts';
import { base256, memorySource, padded, tarHeader } from './tar-encoder.ts';

type Pair = readonly [offset: number | Buffer, length: number | Buffer];

function slots(pairs: readonly Pair[], count: number, more: boolean, moreAt: number): Buffer {
  const bytes = Buffer.alloc(moreAt + 1);
  pairs.slice(0, count).forEach((pair, i) => {
    pair.forEach((value, j) => {
      const at = i * 24 + j * 12;
      if (typeof value === 'number') bytes.write(value.toString(8).padStart(11, '0'), at);
      else bytes.set(value, at);
    });
  });
  bytes[moreAt] = more ? 1 : 0;
  return bytes;
}

function oldHeader(size: number, pairs: readonly Pair[], more = false): Buffer {
  const slotBytes = slots(pairs, 4, more, 96);
  const realSize = Buffer.from(size.toString(8).padStart(11, '0'));
  return tarHeader({
    name: 'f',
    type: 'S',
    magic: 'gnu',
    patches: [
      [386, slotBytes],
      [483, realSize],
    ],
  });
}

const blockOf = (pairs: readonly Pair[], more = false) => padded(slots(pairs, 21, more, 504));

const readOld = (header: Buffer, body: number, rest: readonly Buffer[] = [], max = 1000) =>
  readOldSparse(header, body, memorySource(Buffer.concat(rest)), max);

describe("GNU tar's older form", () => {
  it('reads what is in the header', async () => {
    const map = await readOld(
      oldHeader(1000, [
        [0, 10],
        [500, 20],
        [1000, 0],
      ]),
      30,
    );
    expect(map).toEqual({
      sizeBytes: 1000,
      pieces: [
        { offset: 0, length: 10 },
        { offset: 500, length: 20 },
      ],
      storedBytes: 30,
    });
  });

  it('goes on in blocks of 21', async () => {
    const pairs = Array.from({ length: 40 }, (_, i) => [i * 100, 10] as const);
    const source = memorySource(
      Buffer.concat([blockOf(pairs.slice(4, 25), true), blockOf(pairs.slice(25))]),
    );
    const map = await readOldSparse(oldHeader(5000, pairs, true), 400, source, 1000);
    expect(map.pieces.length).toBe(40);
    expect(map.pieces[39]).toEqual({ offset: 3900, length: 10 });
    expect(source.position).toBe(1024);
  });

  it('reads offsets beyond 8 GiB', async () => {
    const far = base256(2n ** 40n, 12);
    const map = await readOld(
      tarHeader({
        name: 'f',
        patches: [
          [386, slots([[far, 5]], 4, false, 96)],
          [483, base256(2n ** 40n + 5n, 12)],
        ],
      }),
      5,
    );
    expect(map.pieces).toEqual([{ offset: 2 ** 40, length: 5 }]);
  });

  it.each<[string, Buffer, number, Buffer[], string]>([
    [
      'overlap',
      oldHeader(100, [
        [0, 10],
        [5, 10],
      ]),
      20,
      [],
      'import-invalid',
    ],
    [
      'disorder',
      oldHeader(100, [
        [50, 10],
        [0, 10],
      ]),
      20,
      [],
      'import-invalid',
    ],
    ['a piece past the end', oldHeader(100, [[95, 10]]), 10, [], 'import-invalid'],
    ['a body of another length', oldHeader(100, [[0, 10]]), 11, [], 'import-invalid'],
    ['a negative length', oldHeader(100, [[10, base256(-5n, 12)]]), -5, [], 'import-invalid'],
    ['a negative offset', oldHeader(100, [[base256(-5n, 12), 5]]), 5, [], 'import-invalid'],
    [
      'a sum past 2^53',
      oldHeader(100, [[base256(2n ** 52n, 12), base256(2n ** 52n, 12)]]),
      5,
      [],
      'import-invalid',
    ],
    ['no block where one is announced', oldHeader(100, [[0, 1]], true), 1, [], 'import-invalid'],
    [
      'a gap in the middle',
      oldHeader(100, [[0, 1]], true),
      1,
      [blockOf([], true), blockOf([])],
      'import-invalid',
    ],
  ])('refuses %s', async (_, header, body, rest, code) => {
    await expect(readOld(header, body, rest)).rejects.toThrowError(errorWith(code));
  });

  it('has a limit on its pieces, empty ones too', async () => {
    const empty = Array.from({ length: 21 }, () => [0, 0] as const);
    const rest = Array.from({ length: 100 }, () => blockOf(empty, true));
    await expect(readOld(oldHeader(0, [], true), 0, rest, 50)).rejects.toThrowError(
      errorWith('import-limit'),
    );
  });
});

describe("pax's forms", () => {
  const read = (sparse: Partial<PaxSparse>, body: number, content = '', max = 1000) =>
    readPaxSparse({ pairs: [], ...sparse }, body, memorySource(padded(content)), max);
  const expected = {
    sizeBytes: 1000,
    pieces: [
      { offset: 5, length: 10 },
      { offset: 500, length: 20 },
    ],
    storedBytes: 30,
  };

  it('0.0', async () => {
    expect(await read({ sizeBytes: 1000, pairs: [5, 10, 500, 20, 1000, 0] }, 30)).toEqual(expected);
  });
  it('0.1', async () => {
    expect(await read({ sizeBytes: 1000, map: '5,10,500,20,1000,0' }, 30)).toEqual(expected);
  });
  it('1.0', async () => {
    const content = '3\n5\n10\n500\n20\n1000\n0\n';
    expect(await read({ major: 1, minor: 0, sizeBytes: 1000 }, 542, content)).toEqual(expected);
  });
  it('1.0, with a map of several blocks and numbers across them', async () => {
    const pairs = Array.from({ length: 300 }, (_, i) => `${1000 + i * 100}\n7\n`);
    const content = `300\n${pairs.join('')}`;
    const mapBytes = padded(content).length;
    const map = await read({ major: 1, minor: 0, sizeBytes: 1e6 }, mapBytes + 2100, content);
    expect(mapBytes).toBeGreaterThan(2000);
    expect(map?.pieces.length).toBe(300);
    expect(map?.pieces[299]).toEqual({ offset: 30_900, length: 7 });
  });
  it('none', async () => {
    expect(await read({}, 100)).toBeUndefined();
    expect(await read({ sizeBytes: 1000, name: 'x' }, 0)).toBeUndefined();
    expect(await read({ major: 0, minor: 1, sizeBytes: 1000 }, 5)).toBeUndefined();
  });
  it('one hole', async () => {
    const hole = { sizeBytes: 1000, pieces: [], storedBytes: 0 };
    expect(await read({ sizeBytes: 1000, pairs: [1000, 0] }, 0)).toEqual(hole);
    expect(await read({ major: 1, minor: 0, sizeBytes: 1000 }, 512, '0\n')).toEqual(hole);
    expect(await read({ sizeBytes: 1000, map: '1000,0' }, 0)).toEqual(hole);
  });

  const v1 = { major: 1, minor: 0, sizeBytes: 1000 };
  it.each<[string, Partial<PaxSparse>, number, string, string]>([
    ['an unknown version', { major: 2, minor: 0, sizeBytes: 1 }, 0, '', 'import-invalid'],
    ['a version that never was', { major: 0, minor: 2, map: '0,0' }, 0, '', 'import-invalid'],
    ['no size', { map: '0,5' }, 5, '', 'import-invalid'],
    ['half a piece', { map: '0', sizeBytes: 5 }, 5, '', 'import-invalid'],
    ['letters in a list', { map: '0,x', sizeBytes: 5 }, 5, '', 'import-invalid'],
    ['an empty list', { map: '', sizeBytes: 5 }, 5, '', 'import-invalid'],
    ['a size that is too small', { map: '0,10', sizeBytes: 5 }, 10, '', 'import-invalid'],
    ['content for a hole', { sizeBytes: 1000, map: '1000,0' }, 5, '', 'import-invalid'],
    ['a map longer than the body', v1, 100, '1\n0\n5\n', 'import-invalid'],
    ['letters in a map', v1, 1024, '1\nx\n5\n', 'import-invalid'],
    ['no lines in a map', v1, 5120, '1'.repeat(600), 'import-invalid'],
    ['a count that is not met', v1, 5120, '9\n1\n1\n', 'import-invalid'],
    ['a count that is too large', v1, 1e9, `9999999\n${'0\n0\n'.repeat(5000)}`, 'import-limit'],
  ])('refuses %s', async (_, sparse, body, content, code) => {
    await expect(read(sparse, body, content)).rejects.toThrowError(errorWith(code));
  });
});
