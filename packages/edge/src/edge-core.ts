/**
 * The part of an edge that owns its sandboxes: journal, lifecycle, events and what an edge says of itself.
 * Commands, files, ports and routes are built on it (`edge.ts`).
 */
import type { Backend, BackendReport } from '@dsec/backend';
import type { EdgeState, QueryOf, ROUTES } from '@dsec/protocol';
import {
  type Clock,
  createCleanupStack,
  DsecError,
  type EdgeId,
  MINUTE_MS,
  type Random,
  SECOND_MS,
  type ShardId,
} from '@dsec/std';
import { ADMISSION_DEFAULTS, type AdmissionLimits, createAdmission } from './admission.ts';
import { type AuditLog, createAuditLog } from './audit/audit-log.ts';
import type { HostProbe } from './host-probes.ts';
import { type Journal, openJournal } from './journal/database.ts';
import { type EventLog, openEventLog } from './journal/event-log.ts';
import { type Idempotency, openIdempotency } from './journal/idempotency.ts';
import { openSandboxTable } from './journal/sandbox-table.ts';
import { JOURNAL_TABLES } from './journal/tables.ts';
import type { EnvironmentSource } from './lifecycle/creation.ts';
import { createLifecycle, type Lifecycle } from './lifecycle/lifecycle.ts';
import { type AgentConnector, LIFECYCLE_TIMES, type LifecycleTimes } from './lifecycle/parts.ts';
import type { Recovery } from './lifecycle/recover.ts';
import { createRegistry } from './lifecycle/registry.ts';
import { openSlots } from './lifecycle/slots.ts';
import { tellDenials } from './network/denied-events.ts';
import { type NodeNetwork, withoutNetwork } from './network/network.ts';
import { createNodePolicies } from './policy/node-policies.ts';
import type { Sandboxes } from './sandboxes.ts';
import type { NodePolicy } from './settle-spec.ts';
import { createTimerWheel, type TimerWheel } from './timer-wheel.ts';

/** Of the daemon's log, what the edge says when there is no caller to tell. */
export interface EdgeLog {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

export interface EdgeCoreOptions {
  /** Exists, with mode 0700. */
  readonly stateRoot: string;
  readonly edgeId: EdgeId;
  readonly shardId: ShardId;
  /** Called once, with the epoch of the journal (I2). */
  readonly openBackend: (epoch: number) => Promise<Backend>;
  readonly openAgents: (backend: Backend, epoch: number) => AgentConnector;
  /** Called once; absent: sandboxes have loopback only. */
  readonly openNetwork?: (backend: Backend, report: BackendReport) => NodeNetwork;
  readonly environments: EnvironmentSource;
  readonly policy: NodePolicy;
  readonly probe: HostProbe;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: EdgeLog;
  readonly admission?: Partial<AdmissionLimits>;
  readonly times?: Partial<LifecycleTimes>;
  /** Default: the kernel's. */
  readonly bootId?: string;
}

export interface EdgeCore {
  readonly backend: Backend;
  readonly journal: Journal;
  readonly events: EventLog;
  readonly idempotency: Idempotency;
  readonly sandboxes: Sandboxes;
  readonly lifecycle: Lifecycle;
  readonly audit: AuditLog;
  /** Makes true what the journal says, before anything is served. */
  recover(signal: AbortSignal): Promise<Recovery>;
  state(query: QueryOf<(typeof ROUTES)['getEdgeState']>): EdgeState;
  /** Lets what is in work come to its end, for some seconds. Sandboxes run on. */
  close(): Promise<void>;
}

const EXPIRE_EVERY_MS = MINUTE_MS;
const CLOSE_PATIENCE_MS = 10 * SECOND_MS;
const BACKEND_PATIENCE_MS = 10 * SECOND_MS;
const BACKEND_LOOK_MS = 20;

/**
 * Opens the journal and what is in it; nothing runs or is watched before `recover`. Throws `conflict` while
 * another edge has the root, and what the backend says when it can run nothing here.
 */
export async function openEdgeCore(options: EdgeCoreOptions): Promise<EdgeCore> {
  const { stateRoot, clock, random, bootId } = options;
  const boot = bootId === undefined ? {} : { bootId };
  const journal = openJournal(stateRoot, { clock, random, tables: JOURNAL_TABLES, ...boot });
  const opened = createCleanupStack();
  opened.push('journal', journal.close);
  try {
    const backend = await options.openBackend(journal.epoch);
    opened.push('backend', () => backend.close());
    return compose(options, journal, backend, await reportOf(backend, clock));
  } catch (thrown) {
    await opened.run();
    throw thrown;
  }
}

/** One that needs another process, which may be starting, is waited for. */
async function reportOf(backend: Backend, clock: Clock): Promise<BackendReport> {
  const endMs = clock.monotonicMs() + BACKEND_PATIENCE_MS;
  for (;;) {
    const report = await backend.probe();
    if (report.unavailable === undefined) return report;
    if (report.unavailable.code !== 'unavailable' || clock.monotonicMs() >= endMs) {
      throw report.unavailable;
    }
    await clock.sleep(BACKEND_LOOK_MS);
  }
}

function compose(
  options: EdgeCoreOptions,
  journal: Journal,
  backend: Backend,
  report: BackendReport,
): EdgeCore {
  const { edgeId, clock, log } = options;
  const closing = new AbortController();
  const table = openSandboxTable(journal);
  const events = openEventLog(journal, clock);
  const wheel = createTimerWheel(clock);
  const idempotency = openIdempotency(journal, { ...clock, bootMs: wheel.nowMs });
  const slotsMax = Math.min(report.slotsMax, options.admission?.slotsMax ?? Infinity);
  const limits = { ...ADMISSION_DEFAULTS, ...options.admission, slotsMax };
  const admission = createAdmission(limits, options.probe, clock);
  const agents = options.openAgents(backend, journal.epoch);
  const registry = createRegistry({ edgeId, clock, journal, table, events, wheel });
  const network = openNetwork(options, backend, report);
  const policies = createNodePolicies(backend.policies);
  const audit = createAuditLog({ registry, events, clock, untold: (id) => network.untold(id) });
  tellDenials({ network, registry, audit });
  const lifecycle = createLifecycle(
    {
      ...{ clock, journal, table, registry, wheel, backend, network, admission, agents },
      policies,
      slots: openSlots(journal, table, slotsMax),
      times: { ...LIFECYCLE_TIMES, ...options.times },
      closing: closing.signal,
      report: (what, error, sandbox) => log.warn({ err: error, sandbox }, `${what} failed`),
    },
    { ...options, idempotency, report, network, policies },
  );
  const { requireRunning, fail } = lifecycle;
  return {
    ...{ backend, journal, events, idempotency, lifecycle, audit },
    sandboxes: { ...registry, requireRunning, fail },
    async recover(signal) {
      const recovery = await lifecycle.recover(signal);
      expireKeys(wheel, idempotency);
      log.info({ ...recovery, epoch: journal.epoch }, 'sandboxes are as the journal says');
      return recovery;
    },
    state: (query) => ({
      ...{ edge: edgeId, bootId: journal.bootId, events: events.cursor() },
      ...{ load: admission.load(), backends: [report.kind] },
      ...withoutUndefined(registry.changes(query)),
    }),
    async close() {
      closing.abort(new DsecError('unavailable', 'the edge is closing'));
      await withPatience(lifecycle.idle(), clock);
      events.close();
      wheel.close();
      agents.close();
      await network.close();
      await backend.close();
      journal.close();
    },
  };
}

function openNetwork(
  options: EdgeCoreOptions,
  backend: Backend,
  report: BackendReport,
): NodeNetwork {
  if (report.network === undefined || options.openNetwork === undefined) {
    return withoutNetwork('its backend links none');
  }
  const { unavailable } = report.network;
  if (unavailable !== undefined) return withoutNetwork(unavailable.message);
  return options.openNetwork(backend, report);
}

async function withPatience(work: Promise<void>, clock: Clock): Promise<void> {
  const done = new AbortController();
  const sleep = clock.sleep(CLOSE_PATIENCE_MS, done.signal).catch(() => undefined);
  await Promise.race([work, sleep]);
  done.abort();
}

function expireKeys(wheel: TimerWheel, idempotency: Idempotency): void {
  wheel.at(wheel.nowMs() + EXPIRE_EVERY_MS, () => {
    try {
      idempotency.expire();
    } catch {
      // A full disk, say: they expire later.
    }
    expireKeys(wheel, idempotency);
  });
}

function withoutUndefined({ cursor, ...rest }: ReturnType<Sandboxes['changes']>) {
  return cursor === undefined ? rest : { ...rest, cursor };
}
