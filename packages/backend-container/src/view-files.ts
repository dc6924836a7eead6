import { mkdirSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcView } from './proc-views.ts';
import type { SandboxViews } from './spawn-spec.ts';
import { VIEWS_DIRECTORY } from './spec-parts.ts';

/** The views of /proc as files, for the time in which a sandbox is made: its mounts keep them after that. */
export interface ViewFiles {
  /** Starts anew; called whenever a launcher has made the directory that they lie in. */
  open(): void;
  write(views: SandboxViews): void;
  /** Removes the file that is the sandbox's own. */
  drop(views: SandboxViews): void;
}

/** Different limits that have files at one time. */
const SHARED_MAX = 512;
const READABLE_MODE = 0o444;

/** Nothing here waits: the files are small and in memory (a tmpfs that the launcher mounts). */
export function createViewFiles(stateRoot: string): ViewFiles {
  const directory = join(stateRoot, VIEWS_DIRECTORY);
  /** In the order in which they were last needed. */
  const shared = new Set<string>();

  const put = ({ name, content }: ProcView) => {
    const path = join(directory, name);
    const write = () => writeFileSync(path, content(), { flag: 'wx', mode: READABLE_MODE });
    try {
      write();
    } catch {
      // A left one may be bound: it is replaced, never written again.
      remove(path);
      write();
    }
  };

  const putShared = (view: ProcView) => {
    if (!shared.delete(view.name)) put(view);
    shared.add(view.name);
    const [oldest] = shared;
    if (shared.size <= SHARED_MAX || oldest === undefined) return;
    shared.delete(oldest);
    remove(join(directory, oldest));
  };

  return {
    open() {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      for (const name of readdirSync(directory)) remove(join(directory, name));
      shared.clear();
    },
    write(views) {
      for (const view of views.shared) putShared(view);
      put(views.own);
    },
    drop: ({ own }) => remove(join(directory, own.name)),
  };
}

/** One call to the kernel, as this is done for each sandbox; `rmSync` looks first. */
function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') throw thrown;
  }
}
