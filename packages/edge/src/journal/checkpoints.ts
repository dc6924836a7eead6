import { statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { type Clock, MIB } from '@dsec/std';
import type Database from 'better-sqlite3';

/** Moves what was committed from the write-ahead log into the journal's file, while nothing is committed. */
export interface Checkpoints {
  /** There is more in the log. Costs an addition. */
  committed(): void;
  close(): void;
}

const LOOK_MS = 100;
/** A shorter log is left as it is. */
const LOG_BYTES_MIN = 4 * MIB;
/** A longer one does not wait for a quiet moment. */
const LOG_BYTES_MAX = 64 * MIB;

/**
 * A checkpoint waits for the disk, so that an edge in full work should not make any: it is made when a look
 * at the log finds it grown and nothing was committed since the last look. Nobody looks while nothing is
 * committed.
 */
export function createCheckpoints(
  db: Database.Database,
  logPath: string,
  clock: Pick<Clock, 'sleep'>,
): Checkpoints {
  const closing = new AbortController();
  let commits = 0;
  let isLooking = false;

  const lookOn = async () => {
    isLooking = true;
    try {
      for (let seen = 0; seen !== commits; ) {
        seen = commits;
        await clock.sleep(LOOK_MS, closing.signal);
        const bytes = statSync(logPath, { throwIfNoEntry: false })?.size ?? 0;
        const limit = seen === commits ? LOG_BYTES_MIN : LOG_BYTES_MAX;
        if (bytes < limit) continue;
        await writeOut(logPath);
        db.pragma('wal_checkpoint(TRUNCATE)');
      }
    } catch {
      // Closed; or a full disk, and the next look tries again.
    } finally {
      isLooking = false;
    }
  };
  return {
    committed() {
      commits += 1;
      if (!isLooking) void lookOn();
    },
    close: () => closing.abort(),
  };
}

/** Beside the event loop, so that SQLite, which waits for the same before it goes on, finds it done. */
async function writeOut(logPath: string): Promise<void> {
  const log = await open(logPath, 'r');
  try {
    await log.datasync();
  } finally {
    await log.close();
  }
}
