import type { ByteString } from '@dsec/erofs';
import { DsecError } from '@dsec/std';

export const TAR_BLOCK_BYTES = 512;

/** Where the fields of a header block are: offset and length, from POSIX ustar and GNU tar's `tar.h`. */
const NAME = [0, 100] as const;
const MODE = [100, 8] as const;
const UID = [108, 8] as const;
const GID = [116, 8] as const;
const SIZE = [124, 12] as const;
const MTIME = [136, 12] as const;
const CHECKSUM = [148, 8] as const;
const TYPE_AT = 156;
const LINK_NAME = [157, 100] as const;
const MAGIC = [257, 6] as const;
const DEVICE_MAJOR = [329, 8] as const;
const DEVICE_MINOR = [337, 8] as const;
const PREFIX = [345, 155] as const;
/** star keeps times where the last bytes of the prefix would be, and signs at the end of the block. */
const STAR_PREFIX = [345, 131] as const;
const STAR_TRAILER = [508, 4] as const;

const USTAR_MAGIC = 'ustar\0';
const SPACE = 0x20;
const DIGIT_0 = 0x30;
const DIGIT_7 = 0x37;

export interface TarHeader {
  /** The type flag; `0` for the NUL of older tools. */
  readonly type: string;
  readonly name: ByteString;
  readonly linkName: ByteString;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Bytes of the body, as the header says. */
  readonly sizeBytes: number;
  readonly mtimeSec: number;
  /** 0 except in devices. */
  readonly deviceMajor: number;
  readonly deviceMinor: number;
}

/**
 * Decodes a header block; `undefined` for a block of zeros. `import-invalid` when checksum or a number is
 * wrong.
 */
export function parseTarHeader(block: Buffer): TarHeader | undefined {
  if (!checkSum(block)) return undefined;
  const flag = block[TYPE_AT] ?? 0;
  const type = flag === 0 ? '0' : String.fromCharCode(flag);
  const isDevice = type === '3' || type === '4';
  return {
    type,
    name: readName(block),
    linkName: readText(block, LINK_NAME),
    mode: readNumber(block, MODE, 'mode'),
    uid: readNumber(block, UID, 'uid'),
    gid: readNumber(block, GID, 'gid'),
    sizeBytes: readNumber(block, SIZE, 'size'),
    mtimeSec: readNumber(block, MTIME, 'mtime'),
    deviceMajor: isDevice ? readNumber(block, DEVICE_MAJOR, 'device major') : 0,
    deviceMinor: isDevice ? readNumber(block, DEVICE_MINOR, 'device minor') : 0,
  };
}

/** What the first block of some bytes could be: a header, a part of the end mark, or something else. */
export function tarBlockKind(bytes: Buffer): 'header' | 'zeros' | 'other' {
  if (bytes.length < TAR_BLOCK_BYTES) return 'other';
  try {
    return parseTarHeader(bytes.subarray(0, TAR_BLOCK_BYTES)) === undefined ? 'zeros' : 'header';
  } catch {
    return 'other';
  }
}

/** The checksum counts its own field as eight blanks. */
const CHECKSUM_OF_BLANKS = 8 * SPACE;

/** False for a block of zeros; `import-invalid` when the checksum is wrong. */
function checkSum(block: Buffer): boolean {
  const total = sumOf(block, 0, TAR_BLOCK_BYTES);
  if (total === 0) return false;
  const end = CHECKSUM[0] + CHECKSUM[1];
  const unsigned = total - sumOf(block, CHECKSUM[0], end) + CHECKSUM_OF_BLANKS;
  const expected = readNumber(block, CHECKSUM, 'checksum');
  // Some old tools summed signed characters; GNU tar and docker accept both.
  if (expected !== unsigned && expected !== unsigned - excessOfUnsigned(block)) {
    throw new DsecError('import-invalid', 'a header has a wrong checksum');
  }
  return true;
}

function sumOf(block: Buffer, start: number, end: number): number {
  let sum = 0;
  for (let i = start; i < end; i += 1) sum += block[i] as number;
  return sum;
}

/** By how much the sum of the bytes outside the checksum field is larger than that of signed characters. */
function excessOfUnsigned(block: Buffer): number {
  const isNegative = (byte: number, i: number) =>
    byte >= 0x80 && (i < CHECKSUM[0] || i >= CHECKSUM[0] + CHECKSUM[1]);
  return 256 * block.filter(isNegative).length;
}

type Field = readonly [offset: number, length: number];

/** Text up to the first NUL or the end of the field. */
export function readText(block: Buffer, [offset, length]: Field): ByteString {
  const nul = block.indexOf(0, offset);
  const end = nul === -1 || nul > offset + length ? offset + length : nul;
  return block.toString('latin1', offset, end);
}

function readName(block: Buffer): ByteString {
  const name = readText(block, NAME);
  // In GNU's older form of the header the place of the prefix holds something else.
  if (block.toString('latin1', MAGIC[0], MAGIC[0] + MAGIC[1]) !== USTAR_MAGIC) return name;
  const isStar = readText(block, STAR_TRAILER) === 'tar';
  const prefix = readText(block, isStar ? STAR_PREFIX : PREFIX);
  return prefix === '' ? name : `${prefix}/${name}`;
}

/**
 * A number in octal digits, or in base 256 (two's complement, most significant byte first) when its first bit
 * is set. A blank field is 0. Anything else is `import-invalid`, as is what a double cannot hold exactly.
 */
export function readNumber(block: Buffer, [offset, length]: Field, what: string): number {
  const first = block[offset] as number;
  const value =
    first >= 0x80 ? readBase256(block, offset, length) : readOctal(block, offset, length);
  if (!Number.isSafeInteger(value)) {
    throw new DsecError('import-invalid', `a header's ${what} is not a number or too large`);
  }
  return value;
}

function readOctal(block: Buffer, offset: number, length: number): number {
  const end = offset + length;
  let at = offset;
  while (at < end && block[at] === SPACE) at += 1;
  let value = 0;
  for (; at < end; at += 1) {
    const byte = block[at] as number;
    if (byte === 0 || byte === SPACE) break;
    if (byte < DIGIT_0 || byte > DIGIT_7) return Number.NaN;
    value = value * 8 + (byte - DIGIT_0);
  }
  return value;
}

function readBase256(block: Buffer, offset: number, length: number): number {
  const first = block[offset] as number;
  // The top bit is only the mark; the next one is the sign.
  let value = first & 0x40 ? (first | 0x80) - 256 : first & 0x7f;
  for (let at = offset + 1; at < offset + length; at += 1) {
    value = value * 256 + (block[at] as number);
  }
  return value;
}
