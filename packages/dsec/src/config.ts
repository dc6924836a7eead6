import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { makeDirectories } from '@dsec/linux';
import { DsecError } from '@dsec/std';

export interface StatePaths {
  /** Everything DSec keeps on this machine is below this directory. */
  readonly root: string;
  /** The layer store (layers, blobs, refs). */
  readonly store: string;
  /** What belongs to this node alone: checked copies of layer metadata, mount points. */
  readonly node: string;
  /** Archives that can be made again. */
  readonly cache: string;
}

/**
 * Where state lives: the option, else `DSEC_STATE`, else `/var/lib/dsec` for root and the XDG data
 * directory for others. An empty variable counts as none. `invalid-argument` for an empty option, which
 * would mean the working directory.
 */
export function resolveStatePaths(stateOption: string | undefined): StatePaths {
  if (stateOption === '') throw new DsecError('invalid-argument', '--state takes a directory');
  const root = resolve(stateOption ?? (process.env.DSEC_STATE || defaultStateRoot()));
  return {
    root,
    store: join(root, 'store'),
    node: join(root, 'node'),
    cache: join(root, 'cache'),
  };
}

/**
 * Creates a state directory with mode 0700, and what is missing above it. `permission-denied` when one is
 * there that others may write to.
 */
export function makeStateDirectory(path: string): void {
  makeDirectories(path, 0o700);
  checkStateDirectory(path);
}

/** The same for the state directory and the layer store in it. */
export function makeStateDirectories(paths: StatePaths): void {
  for (const path of [paths.root, paths.store]) makeStateDirectory(path);
}

/** Throws `permission-denied` when others may write where DSec keeps its state; absent ones pass. */
export function checkStateDirectories(paths: StatePaths): void {
  for (const path of [paths.root, paths.store]) checkStateDirectory(path);
}

/** Whoever can put files there decides what runs in every sandbox. */
function checkStateDirectory(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  const mode = (found.mode & 0o7777).toString(8).padStart(4, '0');
  if (found.uid === process.geteuid?.() && (found.mode & 0o022) === 0) return;
  throw new DsecError(
    'permission-denied',
    `${path} has mode ${mode} and belongs to user ${found.uid}; state belongs to the user who runs dsec ` +
      'and nobody else may write to it: chmod go-w or chown it, or name another directory with --state',
  );
}

/** `/var/lib/dsec` for root, else below the XDG data directory. */
export function defaultStateRoot(): string {
  if (process.getuid?.() === 0) return '/var/lib/dsec';
  // The XDG specification has a value that is not absolute ignored.
  const data = process.env.XDG_DATA_HOME ?? '';
  return join(isAbsolute(data) ? data : join(homedir(), '.local', 'share'), 'dsec');
}
