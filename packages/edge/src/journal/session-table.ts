import type { SandboxId } from '@dsec/std';
import type { SettledSession } from '../exec/settled-spec.ts';
import type { Journal } from './database.ts';
import type { JournalTable } from './schema.ts';

/** Persistent shells. A row is there before the agent hears of the session. */
export const SESSION_TABLE: JournalTable = {
  name: 'sessions',
  migrations: [
    `CREATE TABLE sessions (
      id TEXT NOT NULL PRIMARY KEY,
      sandbox TEXT NOT NULL,
      generation INTEGER NOT NULL,
      sequence INTEGER NOT NULL,   -- among all operations of the sandbox
      instance TEXT NOT NULL,      -- of the agent that has it
      spec TEXT NOT NULL,          -- settled; JSON
      state TEXT NOT NULL,
      created_at_ms INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX sessions_of_sandbox ON sessions (sandbox, sequence)`,
  ],
};

export interface SessionRow {
  readonly id: string;
  readonly sandbox: SandboxId;
  readonly generation: number;
  readonly sequence: number;
  readonly instance: string;
  readonly spec: SettledSession;
  readonly state: 'opening' | 'open' | 'closed';
  readonly createdAtMs: number;
}

export interface SessionTable {
  insert(row: SessionRow): void;
  setState(id: string, state: SessionRow['state']): void;
  /** Whether it was open until now. */
  close(id: string): boolean;
  /** Those of the sandbox whose shells are not known to have ended. */
  listOpen(sandbox: SandboxId): SessionRow[];
  find(sandbox: SandboxId, id: string): SessionRow | undefined;
  /** In the order of their making, behind `after`. */
  list(sandbox: SandboxId, after: number, limit: number): SessionRow[];
  removeAll(sandbox: SandboxId): void;
  sandboxes(): SandboxId[];
}

type Stored = Omit<SessionRow, 'spec' | 'createdAtMs'> & {
  readonly spec: string;
  readonly created_at_ms: number;
};

export function createSessionTable({ db }: Journal): SessionTable {
  const insert = db.prepare('INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?)');
  const setState = db.prepare('UPDATE sessions SET state = ? WHERE id = ?');
  const close = db.prepare("UPDATE sessions SET state = 'closed' WHERE id = ? AND state = 'open'");
  const listOpen = db.prepare<[string], Stored>(
    "SELECT * FROM sessions WHERE sandbox = ? AND state = 'open' ORDER BY sequence",
  );
  const find = db.prepare<[string, string], Stored>(
    'SELECT * FROM sessions WHERE id = ? AND sandbox = ?',
  );
  const list = db.prepare<[string, number, number], Stored>(
    'SELECT * FROM sessions WHERE sandbox = ? AND sequence > ? ORDER BY sequence LIMIT ?',
  );
  const removeAll = db.prepare('DELETE FROM sessions WHERE sandbox = ?');
  const sandboxes = db.prepare<[], SandboxId>('SELECT DISTINCT sandbox FROM sessions').pluck();
  return {
    insert(row) {
      const { id, sandbox, generation, sequence, instance, spec, state, createdAtMs } = row;
      insert.run(
        ...[id, sandbox, generation, sequence, instance],
        ...[JSON.stringify(spec), state, createdAtMs],
      );
    },
    setState: (id, state) => void setState.run(state, id),
    close: (id) => close.run(id).changes > 0,
    listOpen: (sandbox) => listOpen.all(sandbox).map(rowOf),
    find(sandbox, id) {
      const stored = find.get(id, sandbox);
      return stored && rowOf(stored);
    },
    list: (sandbox, after, limit) => list.all(sandbox, after, limit).map(rowOf),
    removeAll: (sandbox) => void removeAll.run(sandbox),
    sandboxes: () => sandboxes.all(),
  };
}

function rowOf({ created_at_ms: createdAtMs, spec, ...rest }: Stored): SessionRow {
  return { ...rest, createdAtMs, spec: JSON.parse(spec) as SettledSession };
}
