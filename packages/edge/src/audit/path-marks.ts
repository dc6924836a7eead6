/**
 * How files look, for those who want to know whether they were changed: of each what the agent says of it,
 * seen as root of the sandbox sees it, and of small files what is in them. Bounded, whatever is there.
 */
import { createHash } from 'node:crypto';
import type { FileAttributesFields } from '@dsec/protocol';
import { asDsecError, DsecError, KIB, MIB } from '@dsec/std';
import { broken } from '../files/file-agent.ts';
import { askAgent, type FileOperation, statFile } from '../files/file-operation.ts';
import { readFile } from '../files/read-file.ts';

export interface PathMark {
  readonly kind: string;
  readonly links: number;
  /** Owner and rights. */
  readonly rights: string;
  /** Size, time of the last change as far as it can be believed, target, digest. */
  readonly content: string;
}

export interface PathMarks {
  readonly marks: ReadonlyMap<string, PathMark>;
  /** There was more than is looked at. */
  readonly isCut: boolean;
}

export const MARKS_MAX = 512;
const FILE_BYTES_MAX = 256 * KIB;
const BYTES_MAX = 4 * MIB;
const PAGE_ENTRIES = 256;
/** Paths as bytes, one to one in characters. */
const bytesOf = (path: string) => Buffer.from(path, 'latin1');
export const pathText = (path: string): string =>
  Buffer.from(Buffer.from(path, 'latin1').toString('utf8').slice(0, 253)).toString('utf8');

interface Walk {
  readonly operation: FileOperation;
  readonly marks: Map<string, PathMark>;
  bytesLeft: number;
  isCut: boolean;
}

/** Paths and all that is below them. Throws when the agent cannot be asked; what is not there has no mark. */
export async function markPaths(
  operation: FileOperation,
  paths: readonly string[],
): Promise<PathMarks> {
  const walk: Walk = { operation, marks: new Map(), bytesLeft: BYTES_MAX, isCut: false };
  const todo = paths.map((path) => Buffer.from(path, 'utf8').toString('latin1'));
  for (let path = todo.shift(); path !== undefined; path = todo.shift()) {
    if (walk.marks.size >= MARKS_MAX) {
      walk.isCut = true;
      break;
    }
    const found = await orAbsent(statFile(operation, { path: bytesOf(path), user: '0' }, false));
    if (found === undefined) continue;
    walk.marks.set(path, await markOf(walk, path, found));
    if (found.kind === 'directory') todo.push(...(await namesIn(walk, path)));
  }
  return { marks: walk.marks, isCut: walk.isCut };
}

async function markOf(walk: Walk, path: string, found: FileAttributesFields): Promise<PathMark> {
  const { kind, mode, uid, gid, links, sizeBytes, mtimeSeconds, mtimeNanoseconds } = found;
  const target = found.symlinkTarget === undefined ? '' : Buffer.from(found.symlinkTarget);
  const digest = kind === 'file' ? await digestOf(walk, path, Number(sizeBytes)) : '';
  // A directory's entries have marks of their own, and its links are its directories.
  const isDirectory = kind === 'directory';
  return {
    ...{ kind, links: isDirectory ? 0 : links, rights: `${mode} ${uid}:${gid}` },
    content: isDirectory
      ? ''
      : `${sizeBytes} ${mtimeSeconds}.${mtimeNanoseconds} ${target.toString('base64')} ${digest}`,
  };
}

async function digestOf(walk: Walk, path: string, sizeBytes: number): Promise<string> {
  if (sizeBytes > FILE_BYTES_MAX || sizeBytes > walk.bytesLeft) return 'large';
  walk.bytesLeft -= sizeBytes;
  const { operation } = walk;
  const fields = { path: bytesOf(path), user: '0', trace: operation.trace };
  const hash = createHash('sha256');
  const range = { offset: 0, lengthBytes: FILE_BYTES_MAX };
  const read = async () => {
    const body = readFile(operation, { ...fields, ...range }, sizeBytes, operation.signal);
    for await (const bytes of body) hash.update(bytes);
    return hash.digest('hex');
  };
  return (await orAbsent(read())) ?? 'gone';
}

async function namesIn(walk: Walk, path: string): Promise<string[]> {
  const { operation } = walk;
  const names: string[] = [];
  for (let cursor: Uint8Array | undefined; ; ) {
    const fields = { path: bytesOf(path), user: '0', trace: operation.trace };
    const place = cursor === undefined ? {} : { cursor };
    const asked = { ...fields, ...place, entriesMax: PAGE_ENTRIES };
    const answer = await orAbsent(askAgent(operation, 'file-list', asked));
    if (answer === undefined) return names;
    if (answer.type !== 'file-entries') {
      throw broken(operation.link, `${answer.type} to file-list`);
    }
    for (const { name } of answer.fields.entries) {
      if (names.length >= MARKS_MAX) {
        walk.isCut = true;
        return names;
      }
      names.push(`${path === '/' ? '' : path}/${Buffer.from(name).toString('latin1')}`);
    }
    cursor = answer.fields.cursor;
    if (cursor === undefined) return names;
  }
}

/** What is not there, or has gone meanwhile, or lies behind a link in a loop. */
async function orAbsent<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (ABSENT.has(error.code)) return undefined;
    throw error instanceof DsecError ? error : thrown;
  }
}

const ABSENT: ReadonlySet<string> = new Set(['not-found', 'state-conflict', 'invalid-argument']);

/** What has happened between two looks, by path. */
export function differences(
  before: ReadonlyMap<string, PathMark>,
  after: ReadonlyMap<string, PathMark>,
): readonly { readonly path: string; readonly reason: string }[] {
  const found: { path: string; reason: string }[] = [];
  for (const [path, old] of before) {
    const now = after.get(path);
    const reason = now === undefined ? 'removed' : changeOf(old, now);
    if (reason !== undefined) found.push({ path, reason });
  }
  for (const path of after.keys()) if (!before.has(path)) found.push({ path, reason: 'added' });
  return found;
}

function changeOf(old: PathMark, now: PathMark): string | undefined {
  if (old.kind !== now.kind) return 'replaced';
  if (old.content !== now.content) return 'written';
  if (old.rights !== now.rights) return 'rights';
  return old.links === now.links ? undefined : 'linked';
}
