import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JOURNAL_TABLES, openJournal } from '@dsec/edge';
import { createManualClock, MIB, systemRandom } from '@dsec/std';
import { expect, it, onTestFinished } from 'vitest';

const LOOK_MS = 100;
/** A longer log does not wait for a quiet moment. */
const LOG_MIB_MAX = 60;

function opened() {
  const root = mkdtempSync(join(tmpdir(), 'dsec-checkpoints-'));
  const clock = createManualClock(1_700_000_000_000);
  const journal = openJournal(root, { clock, random: systemRandom, tables: JOURNAL_TABLES });
  onTestFinished(() => {
    journal.close();
    rmSync(root, { recursive: true, force: true });
  });
  const insert = journal.db.prepare('INSERT INTO events VALUES (?, 0, ?)');
  let rows = 0;
  /** Adds about so many bytes to the log. */
  const commit = (bytes: number) =>
    journal.transaction(() => {
      rows += 1;
      insert.run(rows, 'x'.repeat(bytes));
    });
  const look = async () => {
    clock.advance(LOOK_MS);
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  const logBytes = () => statSync(join(root, 'journal.db-wal')).size;
  return { commit, look, logBytes };
}

it('leaves a short log alone, and empties a long one in a quiet moment', async () => {
  const { commit, look, logBytes } = opened();
  commit(MIB);
  await look();
  await look();
  expect(logBytes()).toBeGreaterThan(MIB);
  commit(4 * MIB);
  while (logBytes() > 0) await look();
});

it('waits while there are commits, but not for ever', async () => {
  const { commit, look, logBytes } = opened();
  // Between two looks there is always a commit.
  const lookWhileBusy = async () => {
    const looked = look();
    commit(1);
    await looked;
  };
  for (let megabytes = 2; megabytes < LOG_MIB_MAX; megabytes += 2) {
    commit(2 * MIB);
    expect(logBytes()).toBeGreaterThan(megabytes * MIB);
    await lookWhileBusy();
  }
  commit(4 * MIB);
  while (logBytes() > MIB) await lookWhileBusy();
});
