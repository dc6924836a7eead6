import { EVENT_TABLE } from './event-log.ts';
import { IDEMPOTENCY_TABLE } from './idempotency.ts';
import { SANDBOX_TABLE } from './sandbox-table.ts';
import type { JournalTable } from './schema.ts';

/** Every table of an edge's journal. One that refers to another's rows comes after it. */
export const JOURNAL_TABLES: readonly JournalTable[] = [
  SANDBOX_TABLE,
  EVENT_TABLE,
  IDEMPOTENCY_TABLE,
];
