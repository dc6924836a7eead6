/** From this machine to a sandbox. */
import type { FileHandle } from 'node:fs/promises';
import type { Files } from '@dsec/libdsec';
import { DsecError, KIB } from '@dsec/std';
import type { LocalDirectory } from './local-directory.ts';
import { joinPath } from './place.ts';
import { createPool, type Pool } from './pool.ts';
import type { Tally } from './tally.ts';

interface Upload {
  readonly files: Files;
  readonly tally: Tally;
  readonly signal: AbortSignal;
  readonly pool: Pool;
}

const DEPTH_MAX = 256;
const TRANSFERS_MAX = 8;
const PIECE_BYTES = 256 * KIB;
const MODE_MASK = 0o777;

/** Puts a file, or a directory with all below it, at a path of the sandbox. */
export async function upload(
  files: Files,
  source: { readonly directory: LocalDirectory; readonly name: Buffer },
  path: Buffer,
  { tally, signal }: { readonly tally: Tally; readonly signal: AbortSignal },
): Promise<void> {
  const pool = createPool(TRANSFERS_MAX);
  const job = { files, tally, signal, pool };
  try {
    await giveEntry(job, { from: source.directory, name: source.name, path, depth: 0 });
    await pool.finish();
  } finally {
    await pool.settle();
  }
}

interface Source {
  readonly from: LocalDirectory;
  readonly name: Buffer;
  readonly path: Buffer;
  readonly depth: number;
}

async function giveEntry(job: Upload, source: Source): Promise<void> {
  const { signal, tally, pool } = job;
  const { from, name, path } = source;
  signal.throwIfAborted();
  const stat = await from.stat(name);
  if (stat.isFile()) return pool.add(() => giveFile(job, source, stat.mode & MODE_MASK));
  if (stat.isDirectory()) return giveDirectory(job, source, stat.mode & MODE_MASK);
  tally.skip(path, stat.isSymbolicLink() ? 'links are not uploaded' : 'neither file nor directory');
}

async function giveFile(job: Upload, { from, name, path }: Source, mode: number): Promise<void> {
  const { files, tally, signal } = job;
  const file = await from.read(name);
  let counted = 0;
  const body = () => {
    // Of an attempt that was lost.
    tally.bytes(-counted);
    counted = 0;
    return piecesOf(file, (bytes) => {
      counted += bytes;
      tally.bytes(bytes);
    });
  };
  try {
    await files.write(path, body, { mode, createParents: false, signal });
  } finally {
    await file.close();
  }
  tally.file();
}

/** From its beginning at each call. */
async function* piecesOf(
  file: FileHandle,
  onSent: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    const { bytesRead } = await file.read(piece, 0, PIECE_BYTES, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield piece.subarray(0, bytesRead);
    onSent(bytesRead);
  }
}

async function giveDirectory(job: Upload, source: Source, mode: number): Promise<void> {
  const { files, tally, signal, pool } = job;
  const { from, name, path, depth } = source;
  if (depth >= DEPTH_MAX) {
    throw new DsecError('too-large', `directories lie more than ${DEPTH_MAX} deep in each other`);
  }
  const directory = await from.enter(name);
  try {
    await files.mkdir(path, { mode: mode | 0o700, createParents: true, signal });
    tally.directory();
    for await (const child of directory.names()) {
      const next = { from: directory, name: child, path: joinPath(path, child), depth: depth + 1 };
      await giveEntry(job, next);
    }
  } finally {
    // Its files are read through its descriptor.
    await pool.settle();
    await directory.close();
  }
}

/** Standard input as a file. */
export async function uploadStdin(
  files: Files,
  path: Buffer,
  { tally, signal }: { readonly tally: Tally; readonly signal: AbortSignal },
): Promise<void> {
  async function* body(): AsyncGenerator<Uint8Array> {
    for await (const piece of process.stdin) {
      yield piece as Buffer;
      tally.bytes((piece as Buffer).byteLength);
    }
  }
  await files.write(path, body(), { createParents: false, signal });
  tally.file();
}
