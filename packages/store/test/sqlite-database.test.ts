import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { isBusy, openDatabase, sqliteError } from '../src/sqlite-database.ts';

it('puts the errors of SQLite in the terms of the seam', () => {
  const codeOf = (code: string) =>
    (sqliteError(new Database.SqliteError('message', code)) as { code: string }).code;
  expect(codeOf('SQLITE_BUSY_SNAPSHOT')).toBe('unavailable');
  expect(codeOf('SQLITE_FULL')).toBe('storage-full');
  expect(codeOf('SQLITE_IOERR_FSYNC')).toBe('unavailable');
  expect(codeOf('SQLITE_CORRUPT_INDEX')).toBe('data-loss');
  expect(codeOf('SQLITE_READONLY_DBMOVED')).toBe('permission-denied');
  expect(codeOf('SQLITE_MISUSE')).toBe('SQLITE_MISUSE');
  const other = new Error('other');
  expect(sqliteError(other)).toBe(other);
  expect(isBusy(other)).toBe(false);
});

it('makes a sound database once and opens it again', () => {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-store-'));
  const path = join(directory, 'store.db');
  for (let round = 0; round < 2; round += 1) {
    const db = openDatabase(path);
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
    expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
    db.close();
  }
  rmSync(directory, { recursive: true });
});
