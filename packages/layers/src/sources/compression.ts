import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fstatSync, read, readSync } from 'node:fs';
import { Socket } from 'node:net';
import { addAbortSignal, pipeline } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip } from 'node:zlib';
import { asDsecError, DsecError, formatBytes, KIB, MIB } from '@dsec/std';
import {
  type ByteSource,
  type BytesListener,
  createChunkSource,
  createFileSource,
  type FileRange,
} from './byte-source.ts';
import type { ImportLimits } from './limits.ts';
import type { Pace } from './pace.ts';

export type Compression = 'none' | 'gzip' | 'zstd';

const MAGIC_BYTES = 4;
const GZIP_MAGIC = 0x1f8b08;
const ZSTD_MAGIC = 0xfd2fb528;
/** A zstd stream may begin with a skippable frame, whose magic has 16 forms. */
const ZSTD_SKIPPABLE = 0x184d2a5;
const CHUNK_BYTES = 256 * KIB;
/** Writable memory that the zstd process needs beside its window: two buffers, one thread's stack. */
const ZSTD_EXTRA_BYTES = 64 * MIB;
const STDERR_BYTES_MAX = KIB;

/** What the first bytes say; names lie. */
export function compressionOf(first: Buffer): Compression {
  if (first.length < MAGIC_BYTES) return 'none';
  if (first.readUIntBE(0, 3) === GZIP_MAGIC) return 'gzip';
  const word = first.readUInt32LE(0);
  return word === ZSTD_MAGIC || word >>> 4 === ZSTD_SKIPPABLE ? 'zstd' : 'none';
}

export interface InputOptions {
  readonly limits: ImportLimits;
  readonly pace: Pace;
  /** Only a part of the file: a blob inside an archive. Default: all of it. */
  readonly range?: { readonly start: number; readonly end: number };
  /** Sees every byte that is read, in order: as stored, and after decompression. */
  readonly onStored?: BytesListener | undefined;
  readonly onContent?: BytesListener | undefined;
}

export interface Input {
  readonly compression: Compression;
  readonly source: ByteSource;
}

/**
 * Opens a regular file, pipe or socket and decompresses what it holds, if it does. Several gzip members or
 * zstd frames one after another are one stream, as for the tools. Decompression happens off this thread, and
 * output beyond `expansionMax` or `streamBytesMax` is `import-limit`; damaged input is `import-invalid`. A
 * pipe is made non-blocking and is closed with the source.
 */
export async function openInput(fd: number, options: InputOptions): Promise<Input> {
  const stat = fstatSync(fd);
  if (stat.isFile()) {
    const range = { fd, ...(options.range ?? { start: 0, end: stat.size }) };
    const compression = compressionOf(readStart(range));
    if (compression === 'none') {
      return { compression, source: createFileSource(range, options.pace, listenerOf(options)) };
    }
    return openChunks(compression, observed(readRange(range), options), options);
  }
  if (stat.isFIFO() || stat.isSocket()) {
    const chunks = observed(readStream(fd, options.pace), options);
    const first = await firstBytes(chunks);
    return openChunks(compressionOf(first), startingWith(first, chunks), options);
  }
  throw new DsecError('invalid-argument', 'the source is not a regular file, pipe or socket');
}

/** The bytes that tell the compression. */
export function readStart({ fd, start, end }: FileRange): Buffer {
  const first = Buffer.alloc(Math.min(MAGIC_BYTES, end - start));
  return first.subarray(0, readSync(fd, first, 0, first.length, start));
}

/** What is not compressed is content as it is stored. */
function listenerOf({ onStored, onContent }: InputOptions): BytesListener | undefined {
  if (onStored === undefined || onContent === undefined) return onStored ?? onContent;
  return (bytes) => {
    onStored(bytes);
    onContent(bytes);
  };
}

const readAt = promisify(read);

/**
 * Reads on Node's file threads. Not a ReadStream: one that is ended early closes a descriptor that is not its
 * own.
 */
async function* readRange({ fd, start, end }: FileRange): AsyncGenerator<Buffer> {
  for (let at = start; at < end; ) {
    const buffer = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, end - at));
    const { bytesRead } = await readAt(fd, buffer, 0, buffer.length, at);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}

async function* readStream(fd: number, { signal }: Pace): AsyncGenerator<Buffer> {
  const socket = new Socket({ fd, readable: true, writable: false });
  if (signal !== undefined) addAbortSignal(signal, socket);
  yield* socket;
}

async function* observed(
  chunks: AsyncGenerator<Buffer>,
  { pace, onStored }: InputOptions,
): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of chunks) {
      pace.count(chunk.length);
      onStored?.(chunk);
      yield chunk;
    }
  } catch (thrown) {
    throw inputError(thrown);
  }
}

async function firstBytes(chunks: AsyncGenerator<Buffer>): Promise<Buffer> {
  let first = Buffer.alloc(0);
  while (first.length < MAGIC_BYTES) {
    const { done, value } = await chunks.next();
    if (done === true) break;
    first = Buffer.concat([first, value]);
  }
  return first;
}

async function* startingWith(first: Buffer, chunks: AsyncGenerator<Buffer>) {
  if (first.length > 0) yield first;
  yield* chunks;
}

function openChunks(
  compression: Compression,
  stored: AsyncGenerator<Buffer>,
  options: InputOptions,
): Input {
  const counter = { stored: 0 };
  const counted = counting(stored, counter);
  const decoded = {
    none: () => counted,
    gzip: () => gunzip(counted),
    zstd: () => unzstd(counted, options.limits),
  }[compression]();
  const guarded = guard(decoded, counter, options);
  return { compression, source: createChunkSource(guarded, options.pace) };
}

async function* counting(chunks: AsyncGenerator<Buffer>, counter: { stored: number }) {
  for await (const chunk of chunks) {
    counter.stored += chunk.length;
    yield chunk;
  }
}

/** Stops what grows without measure, and gives every error its type. */
async function* guard(
  chunks: AsyncIterable<Buffer>,
  counter: { readonly stored: number },
  { limits, onContent }: InputOptions,
): AsyncGenerator<Buffer> {
  let decoded = 0;
  try {
    for await (const chunk of chunks) {
      decoded += chunk.length;
      if (decoded > limits.streamBytesMax) {
        throw limitError(`more than ${formatBytes(limits.streamBytesMax)} come out of the input`);
      }
      if (decoded > limits.expansionFreeBytes + counter.stored * limits.expansionMax) {
        throw limitError(`the input expands more than ${limits.expansionMax} times`);
      }
      onContent?.(chunk);
      yield chunk;
    }
  } catch (thrown) {
    throw inputError(thrown);
  }
}

async function* gunzip(stored: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decoder = createGunzip({ chunkSize: CHUNK_BYTES });
  // The decoder is destroyed with the error of either side and throws it below.
  pipeline(stored, decoder, () => {});
  yield* decoder;
}

/**
 * Node 20 has no zstd, and one path is better than one for each version: the distribution's `zstd`, in a
 * process of its own, which also keeps a hostile frame out of this one. It reads stdin, its memory is limited
 * (it would decode xz and gzip too, whose memory its own option does not bound), and it never outlives the
 * generator.
 */
async function* unzstd(
  stored: AsyncIterable<Buffer>,
  limits: ImportLimits,
): AsyncGenerator<Buffer> {
  const space = limits.zstdWindowBytesMax + ZSTD_EXTRA_BYTES;
  const command = ['zstd', '-dcq', `--memory=${limits.zstdWindowBytesMax}`];
  const child = spawn('prlimit', [`--data=${space}`, '--core=0', ...command], {
    env: { PATH: process.env.PATH },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit') as Promise<[code: number | null, killedBy: string | null]>;
  exited.catch(() => {});
  let inputFailure: unknown;
  pipeline(stored, child.stdin, (error) => {
    // When zstd gives up first its exit status says why.
    if (error && (error as NodeJS.ErrnoException).code !== 'EPIPE') inputFailure = error;
  });
  let complaint = '';
  child.stderr.setEncoding('latin1').on('data', (text: string) => {
    complaint = (complaint + text).slice(0, STDERR_BYTES_MAX);
  });
  try {
    yield* child.stdout as AsyncIterable<Buffer>;
    const [code, killedBy] = await exited;
    if (inputFailure !== undefined) throw inputFailure;
    if (code !== 0) throw zstdError(code, killedBy, complaint);
  } catch (thrown) {
    throw isMissing(thrown) ? noZstd() : thrown;
  } finally {
    child.kill('SIGKILL');
  }
}

/** prlimit's exit status when it cannot start what it was given. */
const COMMAND_NOT_FOUND = 127;

function zstdError(code: number | null, killedBy: string | null, complaint: string): DsecError {
  if (code === COMMAND_NOT_FOUND) return noZstd();
  if (/too much memory|not enough memory|allocation error/i.test(complaint)) {
    return limitError('a zstd frame asks for a larger window than the limit');
  }
  const why = complaint.trim().split('\n', 1)[0] || `zstd ended with ${killedBy ?? code}`;
  return new DsecError('import-invalid', `zstd cannot decode the input: ${why}`);
}

function noZstd(): DsecError {
  return new DsecError('unsupported', 'a zstd input needs the commands zstd and prlimit');
}

function isMissing(thrown: unknown): boolean {
  const { code, syscall } = thrown as NodeJS.ErrnoException;
  return code === 'ENOENT' && syscall?.startsWith('spawn') === true;
}

function inputError(thrown: unknown): DsecError {
  if (thrown instanceof DsecError) return thrown;
  const { code, name } = thrown as NodeJS.ErrnoException;
  if (code === 'ABORT_ERR' || name === 'AbortError') {
    return new DsecError('cancelled', 'the import was cancelled', { cause: thrown });
  }
  if (code?.startsWith('Z_')) {
    return new DsecError('import-invalid', 'the gzip stream is damaged or cut', { cause: thrown });
  }
  return asDsecError(thrown);
}

function limitError(message: string): DsecError {
  return new DsecError('import-limit', message);
}
