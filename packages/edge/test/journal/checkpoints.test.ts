import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JOURNAL_TABLES, openJournal } from '@dsec/edge';
import { createManualClock, MIB, systemRandom } from '@dsec/std';
import { expect, it, onTestFinished } from 'vitest';

const LOOK_MS = 100;

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
  await look();
  expect(logBytes()).toBe(0);
});

it('waits while there are commits, but not for ever', async () => {
  const { commit, look, logBytes } = opened();
  let most = 0;
  for (let turn = 0; turn < 12; turn += 1) {
    commit(2 * MIB);
    const before = logBytes();
    // Between two looks there is always a commit.
    if (turn > 0 && turn < 5) expect(before).toBeGreaterThan(2 * turn * MIB);
    most = Math.max(most, before);
    const looked = look();
    commit(1);
    await looked;
  }
  expect(most).toBeGreaterThan(8 * MIB);
  expect(most).toBeLessThan(24 * MIB);
});
