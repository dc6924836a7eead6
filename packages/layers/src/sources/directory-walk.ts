import { type BigIntStats, closeSync, constants, fstatSync } from 'node:fs';
import type { ByteString } from '@dsec/erofs';
import { directoryNames, errnoOf, O_PATH, openAt } from '@dsec/linux';
import { assert, DsecError } from '@dsec/std';
import { shown } from './member-path.ts';

/** Directories on the way that are held open; those above are found again through `..`. */
const OPEN_DIRECTORIES_MAX = 32;

export interface WalkedEntry {
  /** Relative to the root; empty for the root itself. */
  readonly path: ByteString;
  /** An O_PATH descriptor of exactly this inode, valid until the walk goes on. */
  readonly fd: number;
  readonly stat: BigIntStats;
}

export interface WalkOptions {
  /** Paths that are left out with everything below them. */
  readonly excluded: ReadonlySet<ByteString>;
  /** A directory of another file system is an entry, but what is in it is not. */
  readonly oneFileSystem: boolean;
  readonly entriesMax: number;
}

interface Frame {
  readonly path: ByteString;
  readonly dev: bigint;
  readonly ino: bigint;
  readonly names: readonly ByteString[];
  next: number;
  fd: number | undefined;
}

/**
 * Every entry below a directory, parents first, names in byte order, so that the same tree always comes in
 * the same order. No symbolic link is followed and no path is built: each step is one name in an open
 * directory, so neither length nor depth nor a rename by somebody else leads astray. Memory holds the names
 * of the directories on the way. What vanishes or is moved while it is looked at is `conflict`.
 */
export function* walkDirectory(rootFd: number, options: WalkOptions): Generator<WalkedEntry> {
  const stack: Frame[] = [];
  let listed = 0;

  const enter = (fd: number, path: ByteString, { dev, ino }: BigIntStats) => {
    const names: ByteString[] = [];
    for (const name of namesIn(fd)) {
      listed += 1;
      if (listed > options.entriesMax) {
        throw new DsecError('import-limit', `more than ${options.entriesMax} entries`);
      }
      names.push(name);
    }
    stack.push({ path, dev, ino, names: names.sort(), next: 0, fd });
    const far = stack.at(-1 - OPEN_DIRECTORIES_MAX);
    // The root's descriptor is the caller's.
    if (far?.fd !== undefined && far !== stack[0]) {
      closeSync(far.fd);
      far.fd = undefined;
    }
  };
  const leave = (frame: Frame) => {
    stack.pop();
    const parent = stack.at(-1);
    if (parent === undefined) return;
    assert(frame.fd !== undefined, 'the directory walked in is open');
    try {
      parent.fd ??= reopenParent(frame.fd, parent);
    } finally {
      closeSync(frame.fd);
    }
  };

  try {
    const rootStat = fstatSync(rootFd, { bigint: true });
    yield { path: '', fd: rootFd, stat: rootStat };
    enter(rootFd, '', rootStat);
    for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
      const name = frame.names[frame.next];
      frame.next += 1;
      if (name === undefined) {
        leave(frame);
        continue;
      }
      const path = frame.path === '' ? name : `${frame.path}/${name}`;
      if (options.excluded.has(path)) continue;
      assert(frame.fd !== undefined, 'the directory walked in is open');
      const fd = openEntry(frame.fd, name, path);
      let entered = false;
      try {
        const stat = fstatSync(fd, { bigint: true });
        yield { path, fd, stat };
        if (stat.isDirectory() && (stat.dev === rootStat.dev || !options.oneFileSystem)) {
          enter(fd, path, stat);
          entered = true;
        }
      } finally {
        if (!entered) closeSync(fd);
      }
    }
  } finally {
    for (const { fd } of stack.slice(1)) if (fd !== undefined) closeSync(fd);
  }
}

function* namesIn(pathFd: number): Generator<ByteString> {
  const fd = openAt('.', { dirFd: pathFd, flags: constants.O_RDONLY | constants.O_DIRECTORY });
  try {
    yield* directoryNames(fd);
  } finally {
    closeSync(fd);
  }
}

function openEntry(dirFd: number, name: ByteString, path: ByteString): number {
  try {
    const flags = O_PATH | constants.O_NOFOLLOW;
    return openAt(Buffer.from(name, 'latin1'), { dirFd, flags });
  } catch (thrown) {
    if (errnoOf(thrown) === 'ENOENT') throw changed(path);
    throw thrown;
  }
}

function reopenParent(fd: number, parent: Frame): number {
  const above = openAt('..', { dirFd: fd, flags: O_PATH | constants.O_DIRECTORY });
  const { dev, ino } = fstatSync(above, { bigint: true });
  if (dev === parent.dev && ino === parent.ino) return above;
  closeSync(above);
  throw changed(parent.path);
}

export function changed(path: ByteString): DsecError {
  return new DsecError('conflict', `${shown(path)} changed while it was read`);
}
