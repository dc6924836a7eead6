import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcView } from './proc-views.ts';
import { type SandboxViews, VIEWS_DIRECTORY } from './spawn-spec.ts';

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
    // A left one may be bound: it is replaced, never written again.
    rmSync(path, { force: true });
    writeFileSync(path, content(), { flag: 'wx', mode: READABLE_MODE });
  };

  const putShared = (view: ProcView) => {
    if (!shared.delete(view.name)) put(view);
    shared.add(view.name);
    const [oldest] = shared;
    if (shared.size <= SHARED_MAX || oldest === undefined) return;
    shared.delete(oldest);
    rmSync(join(directory, oldest), { force: true });
  };

  return {
    open() {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      for (const name of readdirSync(directory)) rmSync(join(directory, name), { force: true });
      shared.clear();
    },
    write(views) {
      for (const view of views.shared) putShared(view);
      put(views.own);
    },
    drop: ({ own }) => rmSync(join(directory, own.name), { force: true }),
  };
}
