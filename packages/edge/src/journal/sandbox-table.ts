/**
 * Sandboxes and the slots they hold. A row of `slots` means that something of the sandbox may exist on this
 * host: it is written with the intent and removed last, when the backend has said that nothing is left. So
 * the slots are what a restarted edge claims (I1).
 */
import type { SandboxPlan, SandboxRuntime } from '@dsec/backend';
import type { NetworkRule, Sandbox, SandboxSpec, Stage, Ttl } from '@dsec/protocol';
import {
  type DsecError,
  type EndReason,
  type ErrorBody,
  fromErrorBody,
  type JobId,
  type PrincipalId,
  type ProjectId,
  type SandboxId,
  type SandboxState,
  toErrorBody,
} from '@dsec/std';
import type { ProcessDefaults } from '../sandboxes.ts';
import type { Journal } from './database.ts';
import type { JournalTable } from './schema.ts';

export const SANDBOX_TABLE: JournalTable = {
  name: 'sandboxes',
  migrations: [
    `CREATE TABLE sandboxes (
      id TEXT PRIMARY KEY,
      boot_id TEXT NOT NULL,           -- in which the deadlines below mean something
      fixed TEXT NOT NULL,             -- FixedRecord, which never changes
      state TEXT NOT NULL,
      revision INTEGER NOT NULL,
      moving TEXT NOT NULL,            -- MovingRecord
      sequence_reserved INTEGER NOT NULL DEFAULT 0,
      last_used_boot_ms INTEGER NOT NULL
    );
    CREATE TABLE slots (
      slot INTEGER PRIMARY KEY,
      sandbox_id TEXT NOT NULL UNIQUE REFERENCES sandboxes (id)
    )`,
  ],
};

/** What is settled once, when the sandbox is made. */
export interface FixedRecord {
  readonly project: ProjectId;
  readonly principal: PrincipalId;
  readonly job: JobId | undefined;
  readonly spec: SandboxSpec;
  readonly layers: Sandbox['layers'];
  readonly plan: SandboxPlan;
  readonly defaults: ProcessDefaults;
  readonly createdAtMs: number;
}

/** What changes with the life of the sandbox. Deadlines are in milliseconds since boot. */
export interface MovingRecord {
  readonly generation: number;
  readonly endReason?: EndReason | undefined;
  readonly error?: DsecError | undefined;
  readonly runtime?: SandboxRuntime | undefined;
  readonly ttl: Ttl;
  readonly lifetimeEndsBootMs?: number | undefined;
  readonly graceEndsBootMs?: number | undefined;
  readonly endedAtMs?: number | undefined;
  readonly timings: Sandbox['timings'];
  /** Since its rules were changed; before, they are those of its spec, of version 1. */
  readonly network?:
    | { readonly version: number; readonly rules: readonly NetworkRule[] }
    | undefined;
  /** Since its stage was switched: the one whose rules hold, and the one that is being switched to. */
  readonly policy?: { readonly stage?: Stage; readonly next?: Stage } | undefined;
}

export interface SandboxRow {
  readonly id: SandboxId;
  readonly bootId: string;
  readonly fixed: FixedRecord;
  readonly state: SandboxState;
  readonly revision: number;
  readonly moving: MovingRecord;
  readonly sequenceReserved: number;
  readonly lastUsedBootMs: number;
}

export interface SlotRow {
  readonly slot: number;
  readonly id: SandboxId;
}

export interface SandboxTable {
  /** In the order of creation. */
  readAll(): SandboxRow[];
  /** Throws `already-exists`. */
  insert(row: SandboxRow): void;
  save(id: SandboxId, state: SandboxState, revision: number, moving: MovingRecord): void;
  reserveSequence(id: SandboxId, through: number): void;
  saveLastUsed(id: SandboxId, bootMs: number): void;
  /** With every row that refers to it. Its slot is free. */
  remove(id: SandboxId): void;
  readSlots(): SlotRow[];
  /** After the row of its sandbox. */
  takeSlot(row: SlotRow): void;
  freeSlot(slot: number): void;
}

interface StoredRow {
  readonly id: SandboxId;
  readonly boot_id: string;
  readonly fixed: string;
  readonly state: SandboxState;
  readonly revision: number;
  readonly moving: string;
  readonly sequence_reserved: number;
  readonly last_used_boot_ms: number;
}

export function openSandboxTable({ db }: Journal): SandboxTable {
  const readAll = db.prepare<[], StoredRow>('SELECT * FROM sandboxes ORDER BY rowid');
  const insert = db.prepare('INSERT INTO sandboxes VALUES (?, ?, ?, ?, ?, ?, ?, ?)');
  const save = db.prepare('UPDATE sandboxes SET state = ?, revision = ?, moving = ? WHERE id = ?');
  const reserve = db.prepare('UPDATE sandboxes SET sequence_reserved = ? WHERE id = ?');
  const saveUse = db.prepare('UPDATE sandboxes SET last_used_boot_ms = ? WHERE id = ?');
  const remove = db.prepare('DELETE FROM sandboxes WHERE id = ?');
  const readSlots = db.prepare<[], SlotRow>('SELECT slot, sandbox_id AS id FROM slots');
  const takeSlot = db.prepare('INSERT INTO slots VALUES (?, ?)');
  const freeSlot = db.prepare('DELETE FROM slots WHERE slot = ?');
  return {
    readAll: () => readAll.all().map(decodeRow),
    insert(row) {
      const { id, bootId, fixed, state, revision, moving, sequenceReserved, lastUsedBootMs } = row;
      const texts = [JSON.stringify(fixed), state, revision, encodeMoving(moving)];
      insert.run(id, bootId, ...texts, sequenceReserved, lastUsedBootMs);
    },
    save: (id, state, revision, moving) => {
      save.run(state, revision, encodeMoving(moving), id);
    },
    reserveSequence: (id, through) => {
      reserve.run(through, id);
    },
    saveLastUsed: (id, bootMs) => {
      saveUse.run(bootMs, id);
    },
    remove: (id) => {
      remove.run(id);
    },
    readSlots: () => readSlots.all(),
    takeSlot: ({ slot, id }) => {
      takeSlot.run(slot, id);
    },
    freeSlot: (slot) => {
      freeSlot.run(slot);
    },
  };
}

function encodeMoving(moving: MovingRecord): string {
  if (moving.error === undefined) return JSON.stringify(moving);
  return JSON.stringify({ ...moving, error: toErrorBody(moving.error) });
}

function decodeRow(row: StoredRow): SandboxRow {
  const { error, ...rest } = JSON.parse(row.moving) as Omit<MovingRecord, 'error'> & {
    error?: ErrorBody;
  };
  return {
    id: row.id,
    bootId: row.boot_id,
    fixed: JSON.parse(row.fixed) as FixedRecord,
    state: row.state,
    revision: row.revision,
    moving: error === undefined ? rest : { ...rest, error: fromErrorBody(error) },
    sequenceReserved: row.sequence_reserved,
    lastUsedBootMs: row.last_used_boot_ms,
  };
}
