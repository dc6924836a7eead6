import type { Clock, ExecId } from '@dsec/std';
import type { OperationContext } from '../operation.ts';
import type { SandboxEntry } from '../sandboxes.ts';
import type { Commands } from './commands.ts';
import type { OutputQuery } from './exec-shapes.ts';
import { assertKept, READ_BYTES_MAX, type Spool } from './spool.ts';

export interface OutputReply {
  /** Of the first byte. */
  readonly offset: number;
  /** Known before the bytes: they are the last ones. With `follow` their end says it. */
  readonly end: boolean;
  /** From the spool, as fast as it is taken; the time between two bytes is the command's. */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Output of a command from an absolute offset on: with `follow` to its end, else what is there, with
 * `waitMs` after waiting for some. Throws `output-lost`, with the next offset that is kept in its details,
 * where bytes are missing: at the start, or on the way of a follower; without `follow` the body ends there.
 */
export async function readOutput(
  commands: Commands,
  clock: Clock,
  entry: SandboxEntry,
  id: ExecId,
  query: OutputQuery,
  { signal }: OperationContext,
): Promise<OutputReply> {
  const { stream = 'stdout', offset = 0, follow = false, waitMs = 0 } = query;
  const found = commands.find(entry, id);
  const spool = commands.spools(found)[stream];
  if (spool.totalBytes <= offset && !spool.ended && waitMs > 0) {
    await waitFor(spool, offset, clock, waitMs, signal);
  }
  assertKept(spool.read(offset, 0), offset);
  const { lengthBytes: most = Number.MAX_SAFE_INTEGER } = query;
  const upTo = Math.min(offset + most, follow ? Number.MAX_SAFE_INTEGER : endOfKept(spool, offset));
  const end = spool.ended && upTo >= spool.totalBytes;
  return { offset, end, body: piecesOf(spool, offset, upTo, signal) };
}

/** Of the stretch that `offset` is in: the head, or all up to the newest byte. */
function endOfKept(spool: Spool, offset: number): number {
  const { truncated, headBytes, totalBytes } = spool.totals();
  return truncated && offset < headBytes ? headBytes : totalBytes;
}

async function* piecesOf(
  spool: Spool,
  offset: number,
  upTo: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (let at = offset; at < upTo; ) {
    if (spool.totalBytes <= at) {
      if (spool.ended) return;
      await spool.waitBeyond(at, signal);
      continue;
    }
    const piece = spool.read(at, Math.min(upTo - at, READ_BYTES_MAX));
    assertKept(piece, at);
    at += piece.data.byteLength;
    yield piece.data;
  }
}

async function waitFor(
  spool: Spool,
  offset: number,
  clock: Clock,
  waitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const both = AbortSignal.any([signal, stop.signal]);
  const time = clock.sleep(waitMs, both).catch(() => {});
  await Promise.race([spool.waitBeyond(offset, both), time]).finally(() => stop.abort());
}
