/**
 * A file with the output of one channel of a command: its head, then a ring with its tail.
 *
 *     0   u32  magic
 *     4   u32  version
 *     8   u64  headBytesMax
 *     16  u64  tailBytesMax
 *     24  u64  total, once the ring has come round
 *     32  the head; then the ring of `tailBytesMax + WRITE_BYTES_MAX` bytes
 *
 * Until the ring is full the file grows like a log and its length says the total, so that a killed edge
 * leaves nothing half-known. Later the total is written after each write; a write that it does not cover yet
 * has overwritten only the `WRITE_BYTES_MAX` bytes of the ring that do not count as kept. Page cache is
 * enough: the command dies with the host as well (I5).
 */
import { fstatSync, readSync, writeSync, writevSync } from 'node:fs';
import { assert, DsecError, KIB } from '@dsec/std';

const MAGIC = 0x70537344;
const VERSION = 1;
const HEADER_BYTES = 32;
/** Most bytes of one write. */
export const WRITE_BYTES_MAX = 256 * KIB;

export interface SpoolLayout {
  readonly headBytesMax: number;
  readonly tailBytesMax: number;
}

/** Half of what is kept is the beginning. */
export function layoutOf(keptBytesMax: number): SpoolLayout {
  const headBytesMax = Math.floor(keptBytesMax / 2);
  return { headBytesMax, tailBytesMax: keptBytesMax - headBytesMax };
}

/** Bytes that the file can hold before the oldest of the tail are overwritten. */
export function capacityOf({ headBytesMax, tailBytesMax }: SpoolLayout): number {
  return headBytesMax + tailBytesMax + WRITE_BYTES_MAX;
}

/** The largest layout that fits in `bytes`. */
export function layoutWithin(bytes: number): SpoolLayout {
  return layoutOf(Math.max(0, bytes - WRITE_BYTES_MAX));
}

export interface SpoolState {
  readonly layout: SpoolLayout;
  readonly totalBytes: number;
}

/** Reads back what a file holds. Throws `data-loss` when it is no spool file. */
export function readSpoolState(fd: number): SpoolState {
  const header = Buffer.alloc(HEADER_BYTES);
  const size = fstatSync(fd).size;
  if (readSync(fd, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) {
    throw new DsecError('data-loss', 'a spool file is shorter than its header');
  }
  if (header.readUInt32LE(0) !== MAGIC || header.readUInt32LE(4) !== VERSION) {
    throw new DsecError('data-loss', 'a spool file has another header than ours');
  }
  const layout = {
    headBytesMax: Number(header.readBigUInt64LE(8)),
    tailBytesMax: Number(header.readBigUInt64LE(16)),
  };
  const heldBytes = size - HEADER_BYTES;
  const isRound = heldBytes >= capacityOf(layout);
  const noted = Number(header.readBigUInt64LE(24));
  return { layout, totalBytes: isRound ? Math.max(noted, heldBytes) : heldBytes };
}

export function writeSpoolHeader(fd: number, state: SpoolState): void {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(MAGIC, 0);
  header.writeUInt32LE(VERSION, 4);
  header.writeBigUInt64LE(BigInt(state.layout.headBytesMax), 8);
  header.writeBigUInt64LE(BigInt(state.layout.tailBytesMax), 16);
  header.writeBigUInt64LE(BigInt(state.totalBytes), 24);
  writeAll(fd, [header], 0);
}

/**
 * Puts buffers of at most `WRITE_BYTES_MAX` bytes at an absolute offset, and notes the new total where the
 * length of the file does not say it.
 */
export function writeSpoolBytes(
  fd: number,
  state: SpoolState,
  buffers: readonly Uint8Array[],
): void {
  const bytes = buffers.reduce((sum, buffer) => sum + buffer.byteLength, 0);
  assert(bytes <= WRITE_BYTES_MAX, 'a spool is written in bounded pieces');
  const { layout, totalBytes } = state;
  const capacity = capacityOf(layout);
  const place = placeOf(layout, totalBytes);
  const first = Math.min(bytes, capacity - place);
  const [before, after] = first === bytes ? [buffers, []] : splitBuffers(buffers, first);
  writeAll(fd, before, HEADER_BYTES + place);
  if (after.length > 0) writeAll(fd, after, HEADER_BYTES + layout.headBytesMax);
  if (totalBytes + bytes > capacity) {
    writeSpoolHeader(fd, { layout, totalBytes: totalBytes + bytes });
  }
}

/** Fills `into` from an absolute offset on; the caller knows that the bytes are kept. */
export function readSpoolBytes(
  fd: number,
  layout: SpoolLayout,
  offset: number,
  into: Uint8Array,
): void {
  for (let done = 0; done < into.byteLength; ) {
    const place = placeOf(layout, offset + done);
    const most = Math.min(into.byteLength - done, capacityOf(layout) - place);
    const bytes = readSync(fd, into, done, most, HEADER_BYTES + place);
    if (bytes === 0) throw new DsecError('data-loss', 'a spool file ends before its total');
    done += bytes;
  }
}

/** Where in head and ring the byte of an absolute offset is. */
function placeOf(layout: SpoolLayout, offset: number): number {
  const { headBytesMax, tailBytesMax } = layout;
  if (offset < headBytesMax) return offset;
  return headBytesMax + ((offset - headBytesMax) % (tailBytesMax + WRITE_BYTES_MAX));
}

function writeAll(fd: number, buffers: readonly Uint8Array[], position: number): void {
  const bytes = buffers.reduce((sum, buffer) => sum + buffer.byteLength, 0);
  const [only] = buffers;
  let written =
    buffers.length === 1 && only !== undefined
      ? writeSync(fd, only, 0, bytes, position)
      : writevSync(fd, buffers, position);
  while (written < bytes) {
    const [, rest] = splitBuffers(buffers, written);
    written += writevSync(fd, rest, position + written);
  }
}

/** Views of the first `at` bytes, and of those behind them. */
export function splitBuffers(
  buffers: readonly Uint8Array[],
  at: number,
): [Uint8Array[], Uint8Array[]] {
  const before: Uint8Array[] = [];
  const after: Uint8Array[] = [];
  let left = at;
  for (const buffer of buffers) {
    const bytes = Math.min(left, buffer.byteLength);
    if (bytes > 0) before.push(buffer.subarray(0, bytes));
    if (bytes < buffer.byteLength) after.push(buffer.subarray(bytes));
    left -= bytes;
  }
  return [before, after];
}
