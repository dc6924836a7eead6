/**
 * Whether anything is left of commits that were cut: no object of theirs is there, loose, packed or as a
 * plain file, no repository has anything but what `cutHistory` writes, and a text that only they had is
 * nowhere.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { inflateSync } from 'node:zlib';
import { DsecError, MIB } from '@dsec/std';
import { type Git, openGit } from './git.ts';
import type { HistoryFile } from './history-files.ts';

export interface HistoryQuestion {
  /** Ids of objects that must not be there. */
  readonly removed: readonly string[];
  /** A text that must not be there, in whatever form it is stored. */
  readonly canary?: string | undefined;
}

export interface HistoryProblem {
  readonly path: string;
  readonly problem: string;
}

export interface HistoryReport {
  readonly files: number;
  readonly objects: number;
  /** Empty: nothing was found. At most `PROBLEMS_MAX`. */
  readonly problems: readonly HistoryProblem[];
}

const PROBLEMS_MAX = 1000;
const INFLATED_BYTES_MAX = 256 * MIB;
const LOOSE_BYTES_MAX = 64 * MIB;
const PACK_MAGIC = Buffer.from('PACK');
const ZLIB_FIRST = 0x78;
/** What `cutHistory` leaves in a repository. */
const EXPECTED =
  /^(HEAD|config|index|shallow|refs\/heads\/[^/].*|objects\/pack\/pack-[0-9a-f]+\.(pack|idx|rev))$/;
const IN_GIT = /(^|\/)\.git\/(.+)$/;

/** `invalid-argument` for ids that are none. */
export async function checkHistory(
  files: AsyncIterable<HistoryFile>,
  { removed, canary }: HistoryQuestion,
): Promise<HistoryReport> {
  const length = removed[0]?.length ?? 40;
  if (removed.some((id) => id.length !== length || !/^[0-9a-f]+$/.test(id))) {
    throw new DsecError('invalid-argument', 'removed objects are whole ids of one kind, in hex');
  }
  const format = length === 64 ? 'sha256' : 'sha1';
  const scratch = await mkdtemp(join(tmpdir(), 'dsec-check-'));
  const git = await openGit({ format });
  const problems: HistoryProblem[] = [];
  const note = (path: string, problem: string) => {
    if (problems.length < PROBLEMS_MAX) problems.push({ path, problem });
  };
  const text = canary === undefined || canary === '' ? undefined : Buffer.from(canary);
  const look: Look = { ids: new Set(removed), text, format, git, scratch, note };
  let count = 0;
  try {
    for await (const file of files) {
      count += 1;
      await checkFile(file, look);
    }
    return { files: count, objects: await checkObjects(look), problems };
  } finally {
    await git.remove();
    await rm(scratch, { recursive: true, force: true });
  }
}

interface Look {
  readonly ids: ReadonlySet<string>;
  readonly text: Buffer | undefined;
  readonly format: 'sha1' | 'sha256';
  /** Where the packs that are found are opened. */
  readonly git: Git;
  readonly scratch: string;
  readonly note: (path: string, problem: string) => void;
}

async function checkFile(file: HistoryFile, look: Look): Promise<void> {
  const { path, sizeBytes } = file;
  const inGit = IN_GIT.exec(path)?.[2];
  if (inGit !== undefined && !EXPECTED.test(inGit))
    look.note(path, 'is no part of a cut repository');
  const hash = createHash(look.format).update(`blob ${sizeBytes}\0`);
  const search = createSearch(look.text);
  let first: Buffer | undefined;
  for await (const chunk of file.chunks()) {
    first ??= chunk.subarray(0, PACK_MAGIC.length);
    hash.update(chunk);
    search.add(chunk);
  }
  if (look.ids.has(hash.digest('hex'))) look.note(path, 'is a file of a removed commit');
  if (search.found) look.note(path, 'has the text');
  if (first === undefined) return;
  if (first.equals(PACK_MAGIC)) await openPack(file, look);
  else if (first[0] === ZLIB_FIRST && sizeBytes <= LOOSE_BYTES_MAX) await openLoose(file, look);
}

/** A pack that git cannot read whole may hide anything. */
async function openPack(file: HistoryFile, { git, scratch, note }: Look): Promise<void> {
  const copy = join(scratch, 'pack');
  await pipeline(Readable.from(file.chunks()), createWriteStream(copy));
  try {
    const index = join(git.directory, 'objects', 'pack');
    const name = createHash('sha1').update(file.path).digest('hex');
    await git.run(['index-pack', '-o', join(scratch, 'index'), copy]);
    await mkdir(index, { recursive: true });
    await rename(copy, join(index, `pack-${name}.pack`));
    await rename(join(scratch, 'index'), join(index, `pack-${name}.idx`));
  } catch (thrown) {
    note(
      file.path,
      `is a pack that cannot be read: ${String((thrown as Error).message).slice(0, 200)}`,
    );
  }
}

/** Compressed by zlib: a loose object, or something else in which the text may be. */
async function openLoose(file: HistoryFile, look: Look): Promise<void> {
  const parts: Buffer[] = [];
  for await (const chunk of file.chunks()) parts.push(chunk);
  let content: Buffer;
  try {
    content = inflateSync(Buffer.concat(parts), { maxOutputLength: INFLATED_BYTES_MAX });
  } catch {
    // Not compressed, whatever its first byte; it was searched as it is.
    return;
  }
  if (look.text !== undefined && content.includes(look.text)) look.note(file.path, 'has the text');
  if (look.ids.has(createHash(look.format).update(content).digest('hex'))) {
    look.note(file.path, 'is an object of a removed commit');
  }
}

/** What the packs hold. */
async function checkObjects({ git, ids, text, note }: Look): Promise<number> {
  let objects = 0;
  const list = ['cat-file', '--batch-all-objects', '--batch-check=%(objectname)', '--unordered'];
  for await (const id of git.lines(list)) {
    objects += 1;
    if (ids.has(id)) note('(packs)', `hold ${id}, an object of a removed commit`);
  }
  if (text === undefined || objects === 0) return objects;
  const search = createSearch(text);
  for await (const chunk of git.read([
    'cat-file',
    '--batch',
    '--batch-all-objects',
    '--unordered',
  ])) {
    search.add(chunk);
  }
  if (search.found) note('(packs)', 'have the text');
  return objects;
}

/** Over the borders of chunks. */
function createSearch(text: Buffer | undefined) {
  let rest = Buffer.alloc(0);
  return {
    found: false,
    add(chunk: Buffer): void {
      if (text === undefined || this.found) return;
      const window = Buffer.concat([rest, chunk]);
      this.found = window.includes(text);
      rest = Buffer.from(window.subarray(Math.max(0, window.length - text.length + 1)));
    },
  };
}
