import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

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
 * Where state lives: the option, else `DSEC_STATE`, else `/var/lib/dsec` for root and the XDG data directory for others.
 */
export function resolveStatePaths(stateOption: string | undefined): StatePaths {
  const root = resolve(stateOption ?? process.env.DSEC_STATE ?? defaultRoot());
  return {
    root,
    store: join(root, 'store'),
    node: join(root, 'node'),
    cache: join(root, 'cache'),
  };
}

/** Creates a state directory with mode 0700. */
export function makeStateDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
}

function defaultRoot(): string {
  if (process.getuid?.() === 0) return '/var/lib/dsec';
  return join(process.env.XDG_DATA_HOME ?? join(homedir(), '.local', 'share'), 'dsec');
}
