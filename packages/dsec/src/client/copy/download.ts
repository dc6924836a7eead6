/** From a sandbox to this machine. What a sandbox says of its files is a stranger's word. */
import { once } from 'node:events';
import { type FileEntry, type Files, NotFoundError } from '@dsec/libdsec';
import { DsecError } from '@dsec/std';
import { staysBelow } from './link-target.ts';
import type { LocalDirectory } from './local-directory.ts';
import { baseName, joinPath } from './place.ts';
import { createPool, type Pool } from './pool.ts';
import type { Tally } from './tally.ts';

interface Download {
  readonly files: Files;
  readonly tally: Tally;
  readonly signal: AbortSignal;
  readonly pool: Pool;
}

/** Deeper trees end the copy: each level holds a descriptor. */
const DEPTH_MAX = 256;
const TRANSFERS_MAX = 8;
const MODE_MASK = 0o777;

/** Puts what is at `path`, a file or a directory with all below it, into a directory under a name. */
export async function download(
  files: Files,
  path: Buffer,
  target: { readonly directory: LocalDirectory; readonly name: Buffer },
  { tally, signal }: { readonly tally: Tally; readonly signal: AbortSignal },
): Promise<void> {
  const entry = await files.stat(path, { signal });
  const pool = createPool(TRANSFERS_MAX);
  const job = { files, tally, signal, pool };
  try {
    await takeEntry(job, { path, name: target.name, entry, depth: 0 }, target.directory);
    await pool.finish();
  } finally {
    await pool.settle();
  }
}

interface Source {
  readonly path: Buffer;
  readonly name: Buffer;
  readonly entry: FileEntry;
  /** Directories of the copy above it. */
  readonly depth: number;
}

async function takeEntry(job: Download, source: Source, into: LocalDirectory): Promise<void> {
  const { tally, pool } = job;
  const { path, name, entry, depth } = source;
  switch (entry.kind) {
    case 'file':
      return pool.add(() => orVanished(job, source, takeFile(job, source, into)));
    case 'directory':
      return orVanished(job, source, takeDirectory(job, source, into));
    case 'symlink': {
      const target = bytesOf(entry.symlinkTarget, entry.symlinkTargetBase64);
      if (!staysBelow(target, depth - 1)) {
        return tally.skip(path, 'a link that leads out of what is copied');
      }
      await into.link(name, target);
      return tally.link();
    }
    default:
      return tally.skip(path, `a ${entry.kind}`);
  }
}

/** What was listed and is gone: a sandbox goes on while it is copied. The root of the copy must be there. */
async function orVanished(job: Download, source: Source, work: Promise<void>): Promise<void> {
  const { files, tally, signal } = job;
  try {
    await work;
  } catch (thrown) {
    if (source.depth === 0 || !(thrown instanceof NotFoundError)) throw thrown;
    // Throws where it is the sandbox that is gone.
    await files.exists(source.path, { signal });
    tally.skip(source.path, 'it was removed meanwhile');
  }
}

async function takeFile(
  { files, tally, signal }: Download,
  { path, name, entry }: Source,
  into: LocalDirectory,
): Promise<void> {
  const { mode, mtimeSeconds, mtimeNanoseconds } = entry;
  const mtimeMs = mtimeSeconds * 1000 + mtimeNanoseconds / 1e6;
  await into.write(name, { mode: mode & MODE_MASK, mtimeMs }, async (file) => {
    for await (const bytes of files.stream(path, { signal })) {
      await file.writeFile(bytes);
      tally.bytes(bytes.byteLength);
    }
  });
  tally.file();
}

async function takeDirectory(job: Download, source: Source, into: LocalDirectory): Promise<void> {
  const { files, tally, signal, pool } = job;
  const { path, name, entry, depth } = source;
  if (depth >= DEPTH_MAX) {
    throw new DsecError('too-large', `directories lie more than ${DEPTH_MAX} deep in each other`);
  }
  // Ours to write until it is filled.
  const directory = await into.make(name, (entry.mode & MODE_MASK) | 0o700);
  tally.directory();
  try {
    for await (const child of files.list(path, { signal })) {
      const childName = bytesOf(child.name, child.nameBase64);
      const childPath = joinPath(path, childName);
      const next = { path: childPath, name: childName, entry: child, depth: depth + 1 };
      await takeEntry(job, next, directory);
    }
  } finally {
    // Its files are written through its descriptor.
    await pool.settle();
    await directory.close();
  }
}

/** A file to standard output. */
export async function downloadToStdout(
  files: Files,
  path: Buffer,
  { tally, signal }: { readonly tally: Tally; readonly signal: AbortSignal },
): Promise<void> {
  for await (const bytes of files.stream(path, { signal })) {
    if (!process.stdout.write(bytes)) await once(process.stdout, 'drain', { signal });
    tally.bytes(bytes.byteLength);
  }
  tally.file();
}

function bytesOf(text = '', base64?: string): Buffer {
  return base64 === undefined ? Buffer.from(text) : Buffer.from(base64, 'base64');
}

/** Where a download goes: into a directory that is there under the name of the source, else as named. */
export function targetName(source: Buffer, isDirectory: boolean, target: Buffer) {
  return isDirectory
    ? { parent: target, name: baseName(source) }
    : { parent: parentOf(target), name: baseName(target) };
}

/** The directory that a path lies in. */
export function parentOf(path: Buffer): Buffer {
  const text = path.toString('latin1').replace(/\/+$/, '');
  const at = text.lastIndexOf('/');
  return Buffer.from(at === -1 ? '.' : text.slice(0, Math.max(at, 1)), 'latin1');
}
