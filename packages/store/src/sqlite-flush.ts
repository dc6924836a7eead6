/**
 * The flush that makes commits durable, off the thread that serves: SQLite itself writes the log at a commit
 * and leaves it to us to flush it (`synchronous = NORMAL`), which is what `FULL` would do within the commit.
 */
import { closeSync, fdatasync, fsyncSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { DsecError } from '@dsec/std';
import type { Sqlite } from './sqlite-database.ts';

export interface Flusher {
  /** Resolves when every commit of this process so far survives power loss. */
  flush(): Promise<void>;
  /** The same for all that an operation which has just ended may have seen, of other processes too. */
  flushSeen(): Promise<void>;
  /** Throws once a flush has failed. */
  assertWhole(): void;
  /** Waits for a flush that runs. */
  close(): Promise<void>;
}

const flushFile = promisify(fdatasync);
const BROKEN = 'the disk of the store could not be flushed; start again once the disk is in order';

/**
 * `path` is that of the database, which has been written to. After a flush that failed nobody can say what
 * is on the disk, and the next one would not tell: from then on everything is `unavailable`.
 */
export function createFlusher(
  db: Sqlite,
  path: string,
  flushLog: (fd: number) => Promise<void> = flushFile,
): Flusher {
  let log: number | undefined = openSync(`${path}-wal`, 'r');
  flushDirectory(dirname(path));
  const otherCommits = db.prepare<[], number>('PRAGMA data_version').pluck();
  let seenVersion: number | undefined;
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  let broken: DsecError | undefined;

  const assertWhole = () => {
    if (broken !== undefined) throw broken;
  };
  const start = async () => {
    assertWhole();
    try {
      if (log !== undefined) await flushLog(log);
    } catch (cause) {
      broken = new DsecError('unavailable', BROKEN, { cause });
      throw broken;
    } finally {
      running = undefined;
    }
  };
  const flush = (): Promise<void> => {
    // The one that runs may have begun before the commit.
    if (running !== undefined) {
      next ??= running
        .catch(() => undefined)
        .then(() => {
          next = undefined;
          return flush();
        });
      return next;
    }
    running = start();
    return running;
  };
  return {
    flush,
    assertWhole,
    async flushSeen() {
      assertWhole();
      const version = otherCommits.get();
      if (version === seenVersion) return running;
      await flush();
      seenVersion = version;
    },
    async close() {
      await (next ?? running)?.catch(() => undefined);
      if (log !== undefined) closeSync(log);
      log = undefined;
    },
  };
}

/** The names of files that have just been made. */
function flushDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
