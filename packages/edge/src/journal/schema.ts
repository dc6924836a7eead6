import { DsecError } from '@dsec/std';
import type Database from 'better-sqlite3';

/**
 * The tables of one module. Its schema is brought up to date one migration after another, each applied once
 * and never changed after a release; the version of a table is the number of those that were applied.
 */
export interface JournalTable {
  readonly name: string;
  readonly migrations: readonly string[];
}

/**
 * Applies what is missing of every table, all or nothing. Throws `unsupported` for a journal of a newer
 * version: an older edge must not guess what its rows mean.
 */
export function migrate(db: Database.Database, tables: readonly JournalTable[]): void {
  db.exec(
    'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, version INTEGER NOT NULL)',
  );
  const find = db
    .prepare<[string], number>('SELECT version FROM migrations WHERE name = ?')
    .pluck();
  const save = db.prepare('INSERT OR REPLACE INTO migrations (name, version) VALUES (?, ?)');
  for (const { name, migrations } of tables) {
    const version = find.get(name) ?? 0;
    if (version > migrations.length) {
      throw new DsecError('unsupported', `the journal's ${name} are of a newer version of DSec`);
    }
    for (const migration of migrations.slice(version)) db.exec(migration);
    if (version < migrations.length) save.run(name, migrations.length);
  }
}
