import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JOURNAL_TABLES, type Journal, type JournalTable, openJournal } from '@dsec/edge';
import { createSeededRandom, DsecError, systemClock } from '@dsec/std';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';

const TABLE: JournalTable = {
  name: 'words',
  migrations: ['CREATE TABLE words (word TEXT UNIQUE)'],
};

function temporaryRoot(): string {
  const root = mkdtempSync(join(tmpdir(), 'dsec-journal-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

function open(root: string, tables: readonly JournalTable[] = [TABLE], seed = 1): Journal {
  const random = createSeededRandom(seed);
  const journal = openJournal(root, { clock: systemClock, random, tables });
  onTestFinished(() => {
    if (journal.db.open) journal.close();
  });
  return journal;
}

const words = ({ db }: Journal) => db.prepare('SELECT word FROM words').pluck().all();
const add = ({ db }: Journal, word: string) => db.prepare('INSERT INTO words VALUES (?)').run(word);

it('begins an epoch with every opening, and stays the same journal', () => {
  const root = temporaryRoot();
  const first = open(root);
  first.close();
  const second = open(root, [TABLE], 2);
  expect([first.epoch, second.epoch]).toEqual([1, 2]);
  expect(second.id).toBe(first.id);
  expect(second.bootId).toBe(readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
});

it('has one writer', () => {
  const root = temporaryRoot();
  const first = open(root);
  expect(() => open(root)).toThrow(expect.objectContaining({ code: 'conflict' }));
  first.close();
  expect(open(root).epoch).toBe(2);
});

it('does a transaction whole or not at all, and tells of it afterwards', () => {
  const journal = open(temporaryRoot());
  const told: string[] = [];
  const failing = () =>
    journal.transaction(() => {
      add(journal, 'a');
      journal.afterCommit(() => told.push('a'));
      throw new DsecError('overloaded', 'no');
    });
  expect(failing).toThrow(expect.objectContaining({ code: 'overloaded' }));
  const result = journal.transaction(() => {
    journal.transaction(() => add(journal, 'b'));
    journal.afterCommit(() => told.push(`b ${journal.db.inTransaction}`));
    return told.length;
  });
  expect(result).toBe(0);
  expect(told).toEqual(['b false']);
  expect(words(journal)).toEqual(['b']);
  journal.afterCommit(() => told.push('at once'));
  expect(told).toContain('at once');
});

it('applies each migration once, and refuses those that it does not know', () => {
  const root = temporaryRoot();
  const first = open(root);
  add(first, 'kept');
  first.close();
  const newer = {
    ...TABLE,
    migrations: [...TABLE.migrations, 'ALTER TABLE words ADD size INTEGER'],
  };
  const second = open(root, [newer]);
  expect(second.db.prepare('SELECT * FROM words').all()).toEqual([{ word: 'kept', size: null }]);
  second.close();
  expect(() => open(root)).toThrow(expect.objectContaining({ code: 'unsupported' }));
});

it('leaves the files of others as they are', () => {
  const root = temporaryRoot();
  const path = join(root, 'journal.db');
  const foreign = new Database(path);
  foreign.exec('CREATE TABLE theirs (x)');
  foreign.close();
  const before = readFileSync(path);
  expect(() => open(root)).toThrow(expect.objectContaining({ code: 'unsupported' }));
  expect(readFileSync(path)).toEqual(before);
  writeFileSync(path, 'no database at all, and rather long for one');
  expect(() => open(root)).toThrow(expect.objectContaining({ code: 'data-loss' }));
});

it('knows every table of an edge', () => {
  const journal = open(temporaryRoot(), JOURNAL_TABLES);
  const names = journal.db.prepare('SELECT name FROM migrations').pluck().all();
  expect(names).toEqual(['meta', ...JOURNAL_TABLES.map(({ name }) => name)].sort());
});
