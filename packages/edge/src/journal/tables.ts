import { EVENT_TABLE } from './event-log.ts';
import { EXEC_TABLE } from './exec-table.ts';
import { IDEMPOTENCY_TABLE } from './idempotency.ts';
import { SANDBOX_TABLE } from './sandbox-table.ts';
import type { JournalTable } from './schema.ts';
import { SESSION_TABLE } from './session-table.ts';

/** Every table of an edge's journal. One that refers to another's rows comes after it. */
export const JOURNAL_TABLES: readonly JournalTable[] = [
  SANDBOX_TABLE,
  EVENT_TABLE,
  IDEMPOTENCY_TABLE,
  EXEC_TABLE,
  SESSION_TABLE,
];
