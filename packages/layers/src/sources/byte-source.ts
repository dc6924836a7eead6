import { readSync } from 'node:fs';
import { assert, DsecError, MIB } from '@dsec/std';
import type { Pace } from './pace.ts';

/** The most that `fill` can be asked for: one record of the largest size that the formats have. */
export const FILL_BYTES_MAX = MIB;

/**
 * Pulls one input in order. `fill` waits, `take` does not: a reader asks for what it needs and awaits only
 * when the buffer is empty, once in a MiB, so that small members cost no turn of the event loop.
 */
export interface ByteSource {
  /** Bytes taken or skipped so far. */
  readonly position: number;
  /** Bytes that `take` can give now. */
  readonly buffered: number;
  /**
   * Waits until `count` bytes (at most `FILL_BYTES_MAX`) are buffered or the input has ended; returns
   * `buffered`.
   */
  fill(count: number): Promise<number>;
  /** The next `count` buffered bytes, valid until the next `fill`, `skip` or `close`. */
  take(count: number): Buffer;
  /** As `take`, but they stay. */
  peek(count: number): Buffer;
  /** Passes over `count` bytes. `import-invalid` when the input ends before. */
  skip(count: number): Promise<void>;
  /** Stops whatever feeds the source. Descriptors stay open: they belong to who opened them. */
  close(): Promise<void>;
}

export function truncated(position: number): DsecError {
  return new DsecError('import-invalid', `the input ends too early, after byte ${position}`);
}

/** The next `count` bytes in one piece. `import-invalid` when the input ends before. */
export async function readExactly(source: ByteSource, count: number): Promise<Buffer> {
  if (source.buffered < count && (await source.fill(count)) < count) {
    throw truncated(source.position + source.buffered);
  }
  return source.take(count);
}

/** Gives the next `count` bytes to `write` in pieces as large as they come. */
export async function copyBytes(
  source: ByteSource,
  count: number,
  write: (piece: Buffer) => void,
): Promise<void> {
  for (let left = count; left > 0; ) {
    if (source.buffered === 0 && (await source.fill(1)) === 0) throw truncated(source.position);
    const piece = source.take(Math.min(left, source.buffered));
    write(piece);
    left -= piece.length;
  }
}

/**
 * Reads on to the end of the input, at most `FILL_BYTES_MAX`, and drops what comes: the padding of a last
 * record, whose writer would otherwise meet a pipe that nobody reads.
 */
export async function drain(source: ByteSource): Promise<void> {
  for (let left = FILL_BYTES_MAX; left > 0 && (await source.fill(1)) > 0; ) {
    left -= source.take(source.buffered).length;
  }
}

export interface FileRange {
  readonly fd: number;
  /** First byte and the one after the last. */
  readonly start: number;
  readonly end: number;
}

export type BytesListener = (bytes: Uint8Array) => void;

/**
 * A range of a regular file, read with large synchronous reads into one buffer: from the page cache this
 * costs one copy and nothing else. With `onBytes` every byte is read and shown, in order; without it `skip`
 * seeks.
 */
export function createFileSource(
  range: FileRange,
  pace: Pace,
  onBytes?: BytesListener,
): ByteSource {
  const buffer = Buffer.allocUnsafeSlow(
    Math.min(FILL_BYTES_MAX, Math.max(range.end - range.start, 1)),
  );
  let readAt = range.start;
  let from = 0;
  let to = 0;

  /** Reads until `count` bytes are buffered; moves the rest of the last read to the front first. */
  const readMore = (count: number) => {
    buffer.copyWithin(0, from, to);
    to -= from;
    from = 0;
    while (to < count && readAt < range.end) {
      const length = Math.min(buffer.length - to, range.end - readAt);
      const got = readSync(range.fd, buffer, to, length, readAt);
      if (got === 0) break;
      pace.count(got);
      onBytes?.(buffer.subarray(to, to + got));
      readAt += got;
      to += got;
    }
    return to;
  };

  const source: ByteSource = {
    get position() {
      return readAt - range.start - (to - from);
    },
    get buffered() {
      return to - from;
    },
    async fill(count) {
      assert(count <= FILL_BYTES_MAX, `fill asks for ${count} bytes`);
      if (to - from >= count) return to - from;
      const turn = pace.due();
      if (turn !== undefined) await turn;
      return readMore(count);
    },
    take(count) {
      const piece = source.peek(count);
      from += count;
      return piece;
    },
    peek(count) {
      assert(count <= to - from, 'peek goes past what is buffered');
      return buffer.subarray(from, from + count);
    },
    async skip(count) {
      const now = Math.min(count, to - from);
      from += now;
      if (now === count) return;
      if (onBytes !== undefined) return copyBytes(source, count - now, () => {});
      if (count - now > range.end - readAt) throw truncated(range.end - range.start);
      pace.count(count - now);
      readAt += count - now;
      from = to = 0;
    },
    async close() {},
  };
  return source;
}

/** Chunks from a stream or decoder. One chunk is held, beside a joined piece when a record spans several. */
export function createChunkSource(chunks: AsyncIterable<Uint8Array>, pace: Pace): ByteSource {
  const iterator = chunks[Symbol.asyncIterator]();
  let current: Buffer = Buffer.alloc(0);
  /** What remains of a chunk whose first bytes were joined to the chunks before. */
  let rest: Buffer | undefined;
  let received = 0;

  const nextChunk = async () => {
    if (rest !== undefined) return rest;
    const turn = pace.due();
    if (turn !== undefined) await turn;
    const { done, value } = await iterator.next();
    if (done === true) return undefined;
    received += value.length;
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  };

  const source: ByteSource = {
    get position() {
      return received - current.length - (rest?.length ?? 0);
    },
    get buffered() {
      return current.length;
    },
    async fill(count) {
      assert(count <= FILL_BYTES_MAX, `fill asks for ${count} bytes`);
      const parts = current.length === 0 ? [] : [current];
      let length = current.length;
      while (length < count) {
        const chunk = await nextChunk();
        if (chunk === undefined) break;
        // A record that spans chunks gets only the bytes it needs joined; a chunk alone is taken as it is.
        const part = length === 0 ? chunk : chunk.subarray(0, count - length);
        rest = part.length < chunk.length ? chunk.subarray(part.length) : undefined;
        if (part.length > 0) parts.push(part);
        length += part.length;
      }
      current = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
      return length;
    },
    take(count) {
      const piece = source.peek(count);
      current = current.subarray(count);
      return piece;
    },
    peek(count) {
      assert(count <= current.length, 'peek goes past what is buffered');
      return current.subarray(0, count);
    },
    skip: (count) => copyBytes(source, count, () => {}),
    async close() {
      await iterator.return?.();
    },
  };
  return source;
}
