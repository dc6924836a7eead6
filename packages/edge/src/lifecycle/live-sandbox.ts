import type { SandboxNetwork } from '@dsec/protocol';
import type { SandboxId, SandboxState } from '@dsec/std';
import type { FixedRecord, MovingRecord, SandboxRow } from '../journal/sandbox-table.ts';
import type { NetworkedSandbox } from '../network/network.ts';
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

/** As the network knows it; `undefined` for one that has loopback only. */
export function networkedOf({ key, network }: LiveSandbox): NetworkedSandbox | undefined {
  return network && { key, ...network };
}

export function liveSandboxOf(row: SandboxRow, slot: number | undefined): LiveSandbox {
  const { id, fixed, state, revision, moving, sequenceReserved, lastUsedBootMs } = row;
  const { project, principal, job, spec, layers, plan, defaults, createdAtMs } = fixed;
  const { generation, key, endReason, error, runtime, ttl, timings, inGrace, endedAtMs } = shownOf(
    id,
    moving,
  );
  const network = networkOf(fixed, moving);
  const stage = stageOf(fixed, moving);
  return {
    // One by one: what is spread is slow to make, and there are very many of these.
    id,
    fixed,
    slot,
    state,
    revision,
    moving,
    project,
    principal,
    job,
    spec,
    layers,
    plan,
    defaults,
    createdAtMs,
    generation,
    key,
    endReason,
    error,
    runtime,
    ttl,
    timings,
    inGrace,
    endedAtMs,
    network,
    stage,
    lane: createLane(),
    born: undefined,
    requestedMonotonicMs: undefined,
    ending: undefined,
    changedAt: 0,
    sequence: sequenceReserved,
    sequenceReserved,
    lastUsedBootMs,
    lastUsedSavedBootMs: lastUsedBootMs,
    holds: 0,
    resumes: newResumeBudget(),
    waiters: new Set(),
  };
}

/** What of the record others see as fields of the sandbox. */
type Shown = Pick<
  SandboxEntry,
  | 'generation'
  | 'key'
  | 'endReason'
  | 'error'
  | 'runtime'
  | 'ttl'
  | 'timings'
  | 'inGrace'
  | 'endedAtMs'
>;

/** The record of a sandbox from now on. */
export function setMoving(sandbox: LiveSandbox, moving: MovingRecord): void {
  sandbox.moving = moving;
  const network = networkOf(sandbox.fixed, moving);
  const stage = stageOf(sandbox.fixed, moving);
  Object.assign(sandbox, shownOf(sandbox.id, moving), { network, stage });
}

const stageOf = ({ spec }: FixedRecord, { policy }: MovingRecord) =>
  policy === undefined ? spec.stage : policy.stage;

function networkOf(
  { plan, spec }: FixedRecord,
  { network }: MovingRecord,
): SandboxNetwork | undefined {
  if (plan.network === undefined) return undefined;
  const { address } = plan.network;
  const { version, rules } = network ?? { version: 1, rules: spec.network ?? [] };
  return { address, version, rules: [...rules] };
}

function shownOf(id: SandboxId, moving: MovingRecord): Shown {
  const { generation, endReason, error, runtime, ttl, timings, endedAtMs } = moving;
  const inGrace = moving.graceEndsBootMs !== undefined;
  const key = { id, generation };
  return { generation, key, endReason, error, runtime, ttl, timings, inGrace, endedAtMs };
}
