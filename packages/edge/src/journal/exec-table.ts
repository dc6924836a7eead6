/**
 * The commands of an edge. A row is there before the agent hears of the command, holds what is needed to
 * send it again, and gets exit and totals in one update before the agent may forget them (THREATS §2.3).
 */
import type { Exec, OutputTotals } from '@dsec/protocol';
import type { ErrorBody, ExecId, SandboxId } from '@dsec/std';
import type { SettledSpec } from '../exec/settled-spec.ts';
import type { Journal } from './database.ts';
import type { JournalTable } from './schema.ts';

export const EXEC_TABLE: JournalTable = {
  name: 'execs',
  migrations: [
    `CREATE TABLE execs (
      id TEXT NOT NULL PRIMARY KEY,
      sandbox TEXT NOT NULL,
      generation INTEGER NOT NULL,
      sequence INTEGER NOT NULL,   -- among all operations of the sandbox
      instance TEXT NOT NULL,      -- of the agent that was to run it
      spec TEXT NOT NULL,          -- settled; JSON
      kept_bytes_max INTEGER NOT NULL,
      stdin_end INTEGER,           -- offset of the end of stdin, once somebody has said it
      started_at_ms INTEGER NOT NULL,
      state TEXT,                  -- of a command that has ended; NULL before
      result TEXT,                 -- how it ended; JSON
      has_output INTEGER           -- of a command that has ended: 1 while some is kept
    );
    CREATE UNIQUE INDEX execs_of_sandbox ON execs (sandbox, sequence);
    CREATE INDEX execs_with_output ON execs (sandbox, sequence) WHERE has_output = 1`,
  ],
};

export interface ExecRow {
  readonly id: ExecId;
  readonly sandbox: SandboxId;
  readonly generation: number;
  readonly sequence: number;
  readonly instance: string;
  readonly spec: SettledSpec;
  readonly keptBytesMax: number;
  /** Where stdin ends, once somebody has said so. */
  readonly stdinEnd: number | undefined;
  readonly startedAtMs: number;
  /** Absent while it has not ended. */
  readonly outcome: ExecOutcome | undefined;
}

export interface ExecOutcome
  extends Pick<Exec, 'exit' | 'runningMs' | 'cpuUs' | 'memoryPeakBytes'> {
  readonly state: 'exited' | 'failed' | 'unknown';
  readonly error?: ErrorBody;
  readonly endedAtMs: number;
  readonly stdout: OutputTotals;
  readonly stderr: OutputTotals;
}

export interface ExecTable {
  insert(row: ExecRow): void;
  /** Once. False when the row has ended already or is gone. */
  end(id: ExecId, outcome: ExecOutcome): boolean;
  /** Noted before the end of stdin is sent: nothing may follow it. */
  endStdin(id: ExecId, offset: number): void;
  find(sandbox: SandboxId, id: ExecId): ExecRow | undefined;
  /** In the order of start, behind `after`. */
  list(sandbox: SandboxId, after: number, limit: number): ExecRow[];
  /** Those that have not ended, of all sandboxes. Reads the whole table, for a start. */
  open(): ExecRow[];
  count(sandbox: SandboxId): number;
  /** The oldest that has ended. */
  oldestEnded(sandbox: SandboxId): ExecRow | undefined;
  /** The oldest that has ended and of which some output is kept. */
  oldestWithOutput(sandbox: SandboxId): ExecRow | undefined;
  /** Ids of those that ended last, by their start. */
  newestEnded(sandbox: SandboxId, limit: number): ExecId[];
  /** All that have ended and of which some output is kept, one after the other. */
  withOutput(): IterableIterator<ExecRow>;
  /** Output that was given up. */
  replaceOutcome(id: ExecId, outcome: ExecOutcome): void;
  remove(id: ExecId): void;
  removeAll(sandbox: SandboxId): void;
  sandboxes(): SandboxId[];
}

interface Stored {
  readonly id: string;
  readonly sandbox: string;
  readonly generation: number;
  readonly sequence: number;
  readonly instance: string;
  readonly spec: string;
  readonly kept_bytes_max: number;
  readonly stdin_end: number | null;
  readonly started_at_ms: number;
  readonly state: ExecOutcome['state'] | null;
  readonly result: string | null;
}

export function createExecTable({ db }: Journal): ExecTable {
  const insert = db.prepare(
    `INSERT INTO execs (id, sandbox, generation, sequence, instance, spec, kept_bytes_max, started_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const end = db.prepare(
    'UPDATE execs SET state = ?, result = ?, has_output = ? WHERE id = ? AND state IS NULL',
  );
  const endStdin = db.prepare('UPDATE execs SET stdin_end = ? WHERE id = ?');
  const replace = db.prepare('UPDATE execs SET result = ?, has_output = 0 WHERE id = ?');
  const find = db.prepare<[string, string], Stored>(
    'SELECT * FROM execs WHERE id = ? AND sandbox = ?',
  );
  const list = db.prepare<[string, number, number], Stored>(
    'SELECT * FROM execs WHERE sandbox = ? AND sequence > ? ORDER BY sequence LIMIT ?',
  );
  const oldest = db.prepare<[string], Stored>(
    `SELECT * FROM execs WHERE sandbox = ? AND state IS NOT NULL ORDER BY sequence LIMIT 1`,
  );
  const oldestWithOutput = db.prepare<[string], Stored>(
    `SELECT * FROM execs WHERE sandbox = ? AND has_output = 1 ORDER BY sequence LIMIT 1`,
  );
  const newest = db
    .prepare<[string, number], ExecId>(
      `SELECT id FROM execs WHERE sandbox = ? AND state IS NOT NULL
       ORDER BY sequence DESC LIMIT ?`,
    )
    .pluck();
  const open = db.prepare<[], Stored>('SELECT * FROM execs WHERE state IS NULL ORDER BY sandbox');
  const withOutput = db.prepare<[], Stored>('SELECT * FROM execs WHERE has_output = 1');
  const count = db
    .prepare<[string], number>('SELECT count(*) FROM execs WHERE sandbox = ?')
    .pluck();
  const remove = db.prepare('DELETE FROM execs WHERE id = ?');
  const removeAll = db.prepare('DELETE FROM execs WHERE sandbox = ?');
  const sandboxes = db.prepare<[], SandboxId>('SELECT DISTINCT sandbox FROM execs').pluck();

  return {
    insert(row) {
      const { id, sandbox, generation, sequence, instance, keptBytesMax, startedAtMs } = row;
      const spec = JSON.stringify(row.spec);
      insert.run(id, sandbox, generation, sequence, instance, spec, keptBytesMax, startedAtMs);
    },
    end(id, outcome) {
      return (
        end.run(outcome.state, JSON.stringify(outcome), hasOutput(outcome) ? 1 : 0, id).changes ===
        1
      );
    },
    endStdin: (id, offset) => void endStdin.run(offset, id),
    find: (sandbox, id) => optionalRow(find.get(id, sandbox)),
    list: (sandbox, after, limit) => list.all(sandbox, after, limit).map(rowOf),
    open: () => open.all().map(rowOf),
    count: (sandbox) => count.get(sandbox) ?? 0,
    oldestEnded: (sandbox) => optionalRow(oldest.get(sandbox)),
    oldestWithOutput: (sandbox) => optionalRow(oldestWithOutput.get(sandbox)),
    newestEnded: (sandbox, limit) => newest.all(sandbox, limit),
    *withOutput() {
      for (const stored of withOutput.iterate()) yield rowOf(stored);
    },
    replaceOutcome: (id, outcome) => void replace.run(JSON.stringify(outcome), id),
    remove: (id) => void remove.run(id),
    removeAll: (sandbox) => void removeAll.run(sandbox),
    sandboxes: () => sandboxes.all(),
  };
}

function hasOutput({ stdout, stderr }: ExecOutcome): boolean {
  return keptBytes(stdout) + keptBytes(stderr) > 0;
}

function keptBytes({ headBytes, tailOffset, totalBytes }: OutputTotals): number {
  return headBytes + totalBytes - tailOffset;
}

function optionalRow(stored: Stored | undefined): ExecRow | undefined {
  return stored === undefined ? undefined : rowOf(stored);
}

function rowOf(stored: Stored): ExecRow {
  return {
    id: stored.id as ExecId,
    sandbox: stored.sandbox as SandboxId,
    generation: stored.generation,
    sequence: stored.sequence,
    instance: stored.instance,
    spec: JSON.parse(stored.spec) as SettledSpec,
    keptBytesMax: stored.kept_bytes_max,
    stdinEnd: stored.stdin_end ?? undefined,
    startedAtMs: stored.started_at_ms,
    outcome: stored.result === null ? undefined : (JSON.parse(stored.result) as ExecOutcome),
  };
}
