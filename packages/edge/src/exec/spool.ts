import { closeSync, existsSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { OutputTotals } from '@dsec/protocol';
import { assert, DsecError, KIB, MIB, type SandboxId } from '@dsec/std';
import type { SpoolBudget } from './spool-budget.ts';
import {
  capacityOf,
  layoutOf,
  layoutWithin,
  readSpoolBytes,
  readSpoolState,
  type SpoolLayout,
  type SpoolState,
  splitBuffers,
  WRITE_BYTES_MAX,
  writeSpoolBytes,
  writeSpoolHeader,
} from './spool-file.ts';
import { createWakers, type Wakers } from './wakers.ts';

/** Written at once when so much waits; the longest frame fits behind it. */
const WRITE_BYTES_MIN = WRITE_BYTES_MAX - 64 * KIB;
/** What a channel may keep even when the budget is used up. */
const KEPT_BYTES_FLOOR = MIB;
/** Of one answer to a reader. */
export const READ_BYTES_MAX = 256 * KIB;

export interface SpoolPiece {
  readonly offset: number;
  readonly data: Uint8Array;
}

/**
 * The output of one channel of a command, kept outside the process: bounded, with absolute offsets. Writes
 * are gathered and go to the file in few, large calls. Nothing counts as there before it is in the file.
 */
export interface Spool {
  /**
   * Takes data that belongs to the spool from now on, at `receivedBytes`. True when `flush` is due at once;
   * else it may wait until the end of the turn.
   */
  push(data: Uint8Array): boolean;
  /** Writes what waits. What it throws (`storage-full`) leaves the rest waiting, to be tried again. */
  flush(): void;
  /** In the file, or counted there: may be acknowledged. */
  readonly totalBytes: number;
  /** With what waits to be written. */
  readonly receivedBytes: number;
  /** No more comes. The file is closed; reading opens it again. */
  end(): void;
  readonly ended: boolean;
  totals(): OutputTotals;
  /**
   * What is kept from `offset` on, at most `bytesMax`: a piece at that offset, or behind it where bytes are
   * lost, empty at the end of what is there.
   */
  read(offset: number, bytesMax: number): SpoolPiece;
  /** Resolves when there are bytes behind `offset`, or no more come. Rejects with the signal's error. */
  waitBeyond(offset: number, signal?: AbortSignal): Promise<void>;
  /** Removes the file: everything that was kept is lost, the total stays. */
  drop(): void;
}

export interface SpoolOptions {
  readonly path: string;
  readonly sandbox: SandboxId;
  readonly keptBytesMax: number;
  readonly budget: SpoolBudget;
}

interface SpoolRecord {
  readonly path: string;
  readonly sandbox: SandboxId;
  readonly budget: SpoolBudget;
  readonly wakers: Wakers;
  layout: SpoolLayout;
  fd: number | undefined;
  totalBytes: number;
  /** What the budget has been charged. */
  fileBytes: number;
  pending: Uint8Array[];
  pendingBytes: number;
  ended: boolean;
  dropped: boolean;
  /** Of a command that has ended, by its row. */
  readonly fixed: OutputTotals | undefined;
}

/** A new spool. Its file appears with the first byte. */
export function newSpool(options: SpoolOptions): Spool {
  return createSpool(recordOf(options, undefined));
}

/** What an earlier edge has left of a spool, which may be nothing. */
export function openSpool(options: SpoolOptions): Spool {
  const record = recordOf(options, undefined);
  if (existsSync(options.path)) adopt(record);
  return createSpool(record);
}

/** The spool of a command that has ended, as its row says. */
export function openEndedSpool(options: SpoolOptions, totals: OutputTotals): Spool {
  return createSpool(recordOf(options, totals));
}

function recordOf(
  { path, sandbox, keptBytesMax, budget }: SpoolOptions,
  fixed: OutputTotals | undefined,
): SpoolRecord {
  return {
    path,
    sandbox,
    budget,
    fixed,
    wakers: createWakers(),
    layout: layoutOf(keptBytesMax),
    fd: undefined,
    fileBytes: 0,
    pending: [],
    pendingBytes: 0,
    totalBytes: fixed?.totalBytes ?? 0,
    ended: fixed !== undefined,
    dropped: fixed !== undefined && keptOnDisk(fixed, 0) === 0,
  };
}

function createSpool(record: SpoolRecord): Spool {
  const { wakers } = record;
  return {
    push(data) {
      record.pending.push(data);
      record.pendingBytes += data.byteLength;
      return record.pendingBytes >= WRITE_BYTES_MIN;
    },
    flush: () => flush(record),
    get totalBytes() {
      return record.totalBytes;
    },
    get receivedBytes() {
      return record.totalBytes + record.pendingBytes;
    },
    end() {
      assert(record.pendingBytes === 0, 'a spool ends when all of it is written');
      record.ended = true;
      if (record.fd !== undefined) closeSync(record.fd);
      record.fd = undefined;
      // The file of a spool that keeps nothing only carries its total through a crash.
      if (keptOnDisk(totalsOf(record), 0) === 0) drop(record);
      wakers.wakeAll();
    },
    get ended() {
      return record.ended;
    },
    totals: () => totalsOf(record),
    read(offset, bytesMax) {
      const { headBytes, tailOffset, truncated } = totalsOf(record);
      const from = truncated && offset >= headBytes ? Math.max(offset, tailOffset) : offset;
      const upTo = truncated && from < headBytes ? headBytes : record.totalBytes;
      const bytes = Math.max(0, Math.min(bytesMax, READ_BYTES_MAX, upTo - from));
      const data = Buffer.allocUnsafe(bytes);
      if (bytes > 0) readFrom(record, from, data);
      return { offset: from, data };
    },
    async waitBeyond(offset, signal) {
      while (record.totalBytes <= offset && !record.ended) await wakers.wait(signal);
    },
    drop: () => drop(record),
  };
}

/**
 * Goes on where the file of an earlier edge ends. One that died before its header is begun anew; so is a
 * damaged one, and the agent then says whether it still has the bytes.
 */
function adopt(record: SpoolRecord): void {
  const fd = openSync(record.path, 'r+');
  const state = stateOf(fd);
  if (state === undefined) {
    closeSync(fd);
    rmSync(record.path);
    return;
  }
  const { layout, totalBytes } = state;
  record.fd = fd;
  record.layout = layout;
  record.totalBytes = totalBytes;
  record.fileBytes = Math.min(totalBytes, capacityOf(layout));
  record.budget.force(record.sandbox, record.fileBytes);
}

function drop(record: SpoolRecord): void {
  const { path, budget, sandbox, fixed, fileBytes, totalBytes, dropped } = record;
  if (totalBytes === 0 || dropped) return;
  rmSync(path, { force: true });
  budget.release(sandbox, keptOnDisk(fixed, fileBytes));
  record.dropped = true;
}

function stateOf(fd: number): SpoolState | undefined {
  try {
    return readSpoolState(fd);
  } catch (thrown) {
    if (thrown instanceof DsecError && thrown.code === 'data-loss') return undefined;
    throw thrown;
  }
}

function flush(record: SpoolRecord): void {
  if (record.pendingBytes === 0) return;
  const fd = openForWriting(record);
  reserve(record, fd);
  try {
    while (record.pendingBytes > 0) writePiece(record, fd);
  } finally {
    record.wakers.wakeAll();
  }
}

/** Much waits when nothing could be written for a while: it goes piece by piece. */
function writePiece(record: SpoolRecord, fd: number): void {
  const { layout, totalBytes, pending, pendingBytes } = record;
  const [piece, rest] =
    pendingBytes <= WRITE_BYTES_MAX ? [pending, []] : splitBuffers(pending, WRITE_BYTES_MAX);
  writeSpoolBytes(fd, { layout, totalBytes }, piece);
  const bytes = Math.min(pendingBytes, WRITE_BYTES_MAX);
  record.totalBytes += bytes;
  record.pending = rest;
  record.pendingBytes -= bytes;
}

function openForWriting(record: SpoolRecord): number {
  if (record.fd !== undefined) return record.fd;
  const { path, layout, totalBytes } = record;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const fd = openSync(path, 'w+', 0o600);
  try {
    writeSpoolHeader(fd, { layout, totalBytes });
  } catch (thrown) {
    closeSync(fd);
    throw thrown;
  }
  record.fd = fd;
  return fd;
}

/** Takes room for a longer file, or makes it a ring at the size that it has. */
function reserve(record: SpoolRecord, fd: number): void {
  const { budget, sandbox, layout, totalBytes, pendingBytes, fileBytes } = record;
  const wanted = Math.min(totalBytes + pendingBytes, capacityOf(layout));
  const more = wanted - fileBytes;
  if (more <= 0) return;
  if (wanted > KEPT_BYTES_FLOOR && !budget.charge(sandbox, more)) {
    record.layout = layoutWithin(fileBytes);
    writeSpoolHeader(fd, { layout: record.layout, totalBytes });
    return;
  }
  if (wanted <= KEPT_BYTES_FLOOR) budget.force(sandbox, more);
  record.fileBytes = wanted;
}

function totalsOf({ fixed, dropped, layout, totalBytes, ended }: SpoolRecord): OutputTotals {
  if (dropped) {
    const truncated = totalBytes > 0;
    return { totalBytes, headBytes: 0, tailOffset: totalBytes, truncated, ended };
  }
  if (fixed !== undefined) return fixed;
  const { headBytesMax, tailBytesMax } = layout;
  if (totalBytes <= headBytesMax + tailBytesMax) {
    return { totalBytes, headBytes: totalBytes, tailOffset: totalBytes, truncated: false, ended };
  }
  const tailOffset = totalBytes - tailBytesMax;
  return { totalBytes, headBytes: headBytesMax, tailOffset, truncated: true, ended };
}

function readFrom({ path, fd, layout }: SpoolRecord, from: number, data: Uint8Array): void {
  const reader = fd ?? openSync(path, 'r');
  try {
    const held = fd === undefined ? readSpoolState(reader).layout : layout;
    readSpoolBytes(reader, held, from, data);
  } finally {
    if (fd === undefined) closeSync(reader);
  }
}

/** Bytes of the file of a command that has ended. */
export function keptOnDisk(totals: OutputTotals | undefined, fileBytes: number): number {
  if (totals === undefined) return fileBytes;
  const keptBytes = totals.headBytes + totals.totalBytes - totals.tailOffset;
  return totals.truncated && keptBytes > 0 ? keptBytes + WRITE_BYTES_MAX : keptBytes;
}

/** Throws `output-lost`, with where to go on, unless the piece begins where it was asked for. */
export function assertKept(piece: SpoolPiece, offset: number): void {
  if (piece.offset === offset) return;
  throw new DsecError('output-lost', `output from ${offset} to ${piece.offset} is not kept`, {
    details: { offset: piece.offset },
  });
}
