/** The daemon of a node: it owns its sandboxes and their state. */
export { CRASH_POINTS, type CrashPoint } from './crash-point.ts';
export { type Journal, type JournalOptions, openJournal } from './journal/database.ts';
export type { JournalTable } from './journal/schema.ts';
export { JOURNAL_TABLES } from './journal/tables.ts';
export type {
  Changes,
  ChangesQuery,
  ProcessDefaults,
  RequireRunningOptions,
  SandboxEntry,
  Sandboxes,
  SandboxHooks,
} from './sandboxes.ts';
