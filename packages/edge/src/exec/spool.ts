import { closeSync, existsSync, mkdirSync, openSync, unlinkSync } from 'node:fs';
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
  WRITE_BYTES_MAX,
  writeSpoolBytes,
  writeSpoolHeader,
} from './spool-file.ts';
import { createWakers } from './wakers.ts';

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
  /** Writes what waits. What it throws (`storage-full`) leaves it waiting, so that it can be tried again. */
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

/** A new spool, or what an earlier edge has left of it. The file appears with the first byte. */
export function openSpool(options: SpoolOptions): Spool {
  const spool = createSpool(options, layoutOf(options.keptBytesMax), 0);
  if (existsSync(options.path)) spool.adopt();
  return spool;
}

/** The spool of a command that has ended, as its row says. */
export function openEndedSpool(options: SpoolOptions, totals: OutputTotals): Spool {
  return createSpool(options, layoutOf(options.keptBytesMax), totals.totalBytes, totals);
}

function createSpool(
  { path, sandbox, budget }: SpoolOptions,
  planned: SpoolLayout,
  startBytes: number,
  fixed?: OutputTotals,
) {
  const wakers = createWakers();
  let layout = planned;
  let fd: number | undefined;
  let totalBytes = startBytes;
  let fileBytes = 0;
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  let ended = fixed !== undefined;
  let dropped = fixed !== undefined && fixed.headBytes === 0 && fixed.tailOffset === startBytes;

  const isAbsent = () => totalBytes === 0 || dropped;
  const openFile = (): number => {
    if (fd !== undefined) return fd;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    fd = openSync(path, totalBytes === 0 ? 'w+' : 'r+', 0o600);
    if (totalBytes === 0) writeSpoolHeader(fd, { layout, totalBytes });
    return fd;
  };
  /** Takes room for a longer file, or makes it a ring at the size that it has. */
  const reserve = (file: number, bytes: number) => {
    const wanted = Math.min(totalBytes + bytes, capacityOf(layout));
    const more = wanted - fileBytes;
    if (more <= 0) return;
    if (budget.charge(sandbox, more)) fileBytes = wanted;
    else if (wanted <= KEPT_BYTES_FLOOR) {
      budget.force(sandbox, more);
      fileBytes = wanted;
    } else {
      layout = layoutWithin(fileBytes);
      writeSpoolHeader(file, { layout, totalBytes });
    }
  };
  const totals = (): OutputTotals => {
    if (fixed !== undefined && !dropped) return fixed;
    const keptMax = layout.headBytesMax + layout.tailBytesMax;
    const truncated = dropped ? totalBytes > 0 : totalBytes > keptMax;
    const headBytes = dropped ? 0 : truncated ? layout.headBytesMax : totalBytes;
    const tailOffset = truncated && !dropped ? totalBytes - layout.tailBytesMax : totalBytes;
    return { totalBytes, headBytes, tailOffset, truncated, ended };
  };

  return {
    /** Goes on where the file ends. */
    adopt() {
      fd = openSync(path, 'r+');
      const state = readSpoolState(fd);
      ({ layout, totalBytes } = state);
      fileBytes = Math.min(totalBytes, capacityOf(layout));
      budget.force(sandbox, fileBytes);
    },
    push(data: Uint8Array) {
      pending.push(data);
      pendingBytes += data.byteLength;
      return pendingBytes >= WRITE_BYTES_MIN;
    },
    flush() {
      if (pendingBytes === 0) return;
      const file = openFile();
      reserve(file, pendingBytes);
      writeSpoolBytes(file, { layout, totalBytes }, pending);
      totalBytes += pendingBytes;
      pending = [];
      pendingBytes = 0;
      wakers.wakeAll();
    },
    get totalBytes() {
      return totalBytes;
    },
    get receivedBytes() {
      return totalBytes + pendingBytes;
    },
    end() {
      assert(pendingBytes === 0, 'a spool ends when all of it is written');
      ended = true;
      if (fd !== undefined) closeSync(fd);
      fd = undefined;
      wakers.wakeAll();
    },
    get ended() {
      return ended;
    },
    totals,
    read(offset: number, bytesMax: number): SpoolPiece {
      const { headBytes, tailOffset, truncated } = totals();
      const from = truncated && offset >= headBytes ? Math.max(offset, tailOffset) : offset;
      const upTo = truncated && from < headBytes ? headBytes : totalBytes;
      const bytes = Math.max(0, Math.min(bytesMax, READ_BYTES_MAX, upTo - from));
      const data = Buffer.allocUnsafe(bytes);
      if (bytes > 0) readFrom(path, fd, from, data);
      return { offset: from, data };
    },
    async waitBeyond(offset: number, signal?: AbortSignal) {
      while (totalBytes <= offset && !ended) await wakers.wait(signal);
    },
    drop() {
      if (isAbsent()) return;
      unlinkSync(path);
      budget.release(sandbox, keptOnDisk(fixed, fileBytes));
      dropped = true;
    },
  };

  function readFrom(file: string, open: number | undefined, from: number, data: Uint8Array) {
    const reader = open ?? openSync(file, 'r');
    try {
      const held = open === undefined ? readSpoolState(reader).layout : layout;
      readSpoolBytes(reader, held, from, data);
    } finally {
      if (open === undefined) closeSync(reader);
    }
  }
}

/** Bytes of the file of a command that has ended. */
export function keptOnDisk(totals: OutputTotals | undefined, fileBytes: number): number {
  if (totals === undefined) return fileBytes;
  const keptBytes = totals.headBytes + totals.totalBytes - totals.tailOffset;
  return totals.truncated ? keptBytes + WRITE_BYTES_MAX : keptBytes;
}

/** Throws `output-lost`, with where to go on, unless the piece begins where it was asked for. */
export function assertKept(piece: SpoolPiece, offset: number): void {
  if (piece.offset === offset) return;
  throw new DsecError('output-lost', `output from ${offset} to ${piece.offset} is not kept`, {
    details: { offset: piece.offset },
  });
}
