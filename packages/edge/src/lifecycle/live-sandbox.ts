import type { SandboxState } from '@dsec/std';
import type { FixedRecord, MovingRecord, SandboxRow } from '../journal/sandbox-table.ts';
import type { SandboxEntry } from '../sandboxes.ts';
import { createLane, type Lane } from './lane.ts';
import { newResumeBudget, type ResumeBudget } from './resume-limit.ts';

/** A sandbox as the lifecycle keeps it. Only the registry changes `state`, `revision` and `moving`. */
export interface LiveSandbox extends SandboxEntry {
  state: SandboxState;
  revision: number;
  moving: MovingRecord;
  readonly fixed: FixedRecord;
  readonly lane: Lane;
  /** When its request came; absent after a restart. */
  requestedMonotonicMs: number | undefined;
  /** Settles when its creation has ended, well or badly; absent after a restart. */
  born: Promise<void> | undefined;
  /** Its end, which nothing stops: resolves when nothing of it is left. */
  ending: Promise<void> | undefined;
  /** Held as long as something of it may exist. */
  slot: number | undefined;
  /** The edge's revision at the last change. */
  changedAt: number;
  sequence: number;
  sequenceReserved: number;
  lastUsedBootMs: number;
  lastUsedSavedBootMs: number;
  /** Uses that have not ended. */
  holds: number;
  readonly resumes: ResumeBudget;
  readonly waiters: Set<() => void>;
}

export function liveSandboxOf(row: SandboxRow, slot: number | undefined): LiveSandbox {
  const { id, fixed } = row;
  const live: LiveSandbox = {
    ...{ id, fixed, slot, state: row.state, revision: row.revision, moving: row.moving },
    ...{ project: fixed.project, principal: fixed.principal, job: fixed.job, spec: fixed.spec },
    ...{ layers: fixed.layers, plan: fixed.plan, defaults: fixed.defaults },
    createdAtMs: fixed.createdAtMs,
    ...{
      lane: createLane(),
      born: undefined,
      requestedMonotonicMs: undefined,
      ending: undefined,
      changedAt: 0,
    },
    sequence: row.sequenceReserved,
    sequenceReserved: row.sequenceReserved,
    lastUsedBootMs: row.lastUsedBootMs,
    lastUsedSavedBootMs: row.lastUsedBootMs,
    holds: 0,
    resumes: newResumeBudget(),
    waiters: new Set(),
    get generation() {
      return live.moving.generation;
    },
    get key() {
      return { id, generation: live.moving.generation };
    },
    get endReason() {
      return live.moving.endReason;
    },
    get error() {
      return live.moving.error;
    },
    get runtime() {
      return live.moving.runtime;
    },
    get ttl() {
      return live.moving.ttl;
    },
    get timings() {
      return live.moving.timings;
    },
    get inGrace() {
      return live.moving.graceEndsBootMs !== undefined;
    },
    get endedAtMs() {
      return live.moving.endedAtMs;
    },
  };
  return live;
}
