/**
 * Archives that hold about as much as the default limits let in, in the shapes that cost the most memory, and
 * some that go past a limit late.
 */
import {
  gnuLong,
  paxHeader,
  TAR_END,
  tarHeader,
} from '../../packages/layers/test/sources/tar-encoder.ts';

export interface Flood {
  readonly name: string;
  /** Members in full; each may make several entries. */
  readonly countMax: number;
  /** Whether the default limits let all of them in. */
  readonly accepts: boolean;
  /** One of the three that take the most. */
  readonly isWorst: boolean;
  parts(count: number): Generator<Buffer>;
}

/** A little less than `entriesMax`. */
const ENTRIES = 199_900;

interface Shape {
  readonly countMax?: number;
  readonly accepts?: boolean;
  readonly isWorst?: boolean;
}

function flood(name: string, shape: Shape, member: (i: number) => readonly Buffer[]): Flood {
  return {
    name,
    countMax: shape.countMax ?? ENTRIES,
    accepts: shape.accepts ?? true,
    isWorst: shape.isWorst ?? false,
    *parts(count) {
      for (let i = 0; i < count; i += 1) yield* member(i);
      yield TAR_END;
    },
  };
}

const WINDOW = Buffer.alloc(64 * 2 ** 20);

const named = (name: string, type: string, link = ''): Buffer[] => {
  const header = tarHeader({ name: name.length < 100 ? name : 'x', type, link });
  return name.length < 100 ? [header] : [gnuLong('L', name), header];
};
const directory = (name: string) => named(name, '5');
const file = (name: string) => named(name, '0');
/** A name or value that differs from all others, of `length` bytes. */
const unique = (i: number, length: number) => `${i}`.padEnd(length, 'n');
const user = (name: string, value: string) => paxHeader([[`SCHILY.xattr.user.${name}`, value]]);

export const FLOODS: readonly Flood[] = [
  flood('directories side by side', {}, (i) => directory(`${i}`)),
  flood('directories with names of 20 bytes', {}, (i) => directory(unique(i, 20))),
  flood('directories with names of 130 bytes', { accepts: false }, (i) =>
    directory(unique(i, 130)),
  ),
  flood('fewer directories with long names', { countMax: 145_000, isWorst: true }, (i) =>
    directory(unique(i, 220)),
  ),
  flood('directories in groups of ten', { countMax: Math.floor((ENTRIES * 10) / 11) }, (i) =>
    directory(`${Math.floor(i / 10)}/${i % 10}`),
  ),
  flood('directories in pairs', { countMax: ENTRIES / 2 }, (i) => directory(`${i}/d`)),
  flood('directories below one another', { countMax: Math.floor(ENTRIES / 1000) }, (i) =>
    directory(`${i}/${'d/'.repeat(998)}d`),
  ),
  flood('directories that only paths name', { countMax: ENTRIES / 2 }, (i) => file(`${i}/f`)),
  flood('directories with times past 2038', {}, (i) => [
    paxHeader([['mtime', '3000000000.123456789']]),
    ...directory(`${i}`),
  ]),
  flood('directories with different attributes', { accepts: false }, (i) => [
    user('a', `${i}`),
    ...directory(`${i}`),
  ]),
  flood('files', {}, (i) => file(`${i}`)),
  flood('files of one block', {}, (i) => [
    tarHeader({ name: `${i}`, size: 1 + (i % 500) }),
    Buffer.alloc(512, `${i}`),
  ]),
  flood('files with names of 170 bytes', { isWorst: true }, (i) => file(unique(i, 170))),
  flood('files with names of 255 bytes', { accepts: false }, (i) => file(unique(i, 255))),
  flood('files at the end of long paths', { countMax: 197_000 }, (i) =>
    file(`${'d/'.repeat(1000)}${unique(i, 14)}`),
  ),
  flood('files with different attributes', { accepts: false }, (i) => [
    user(`${i}`, ''),
    ...file(`${i}`),
  ]),
  // Behind content that fills the window of a decoder.
  flood('files with many different attributes', { countMax: 610 }, (i) => [
    ...(i === 0 ? [tarHeader({ name: 'f', size: WINDOW.length }), WINDOW] : []),
    paxHeader(Array.from({ length: 256 }, (_, j) => [`SCHILY.xattr.user.${i}.${j}`, ''])),
    ...file(`${i}`),
  ]),
  flood('files with attributes of 60,000 bytes', { countMax: 700, accepts: false }, (i) => [
    user('a', unique(i, 60_000)),
    ...file(`${i}`),
  ]),
  flood('files with one attribute for all', {}, (i) => [
    user('a', unique(0, 100)),
    ...file(`${i}`),
  ]),
  flood('hard links to one file', {}, (i) => (i === 0 ? file('f') : named(`${i}`, '1', 'f'))),
  flood('hard links in pairs', {}, (i) =>
    i % 2 === 0 ? file(`${i}`) : named(`${i}`, '1', `${i - 1}`),
  ),
  flood('symbolic links', { isWorst: true }, (i) => named(unique(i, 70), '2', unique(i, 90))),
  flood('whiteouts', {}, (i) => file(`.wh.${i}`)),
  flood('opaque directories', { countMax: ENTRIES / 2 }, (i) => file(`${i}/.wh..wh..opq`)),
  flood('names that change their kind', {}, (i) =>
    i % 2 === 0 ? directory(`${i >> 2}`) : file(`${i >> 2}`),
  ),
  flood('devices', {}, (i) => [tarHeader({ name: `${i}`, type: '3', major: i % 256, minor: 1 })]),
];

/** Joins many small parts into few large ones, which are cheaper to write. */
export function* inBatches(parts: Iterable<Buffer>): Generator<Buffer> {
  let batch: Buffer[] = [];
  let length = 0;
  for (const part of parts) {
    batch.push(part);
    length += part.length;
    if (length < 1 << 20) continue;
    yield Buffer.concat(batch);
    batch = [];
    length = 0;
  }
  yield Buffer.concat(batch);
}
