import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SandboxKey } from '@dsec/backend';
import {
  type Agents,
  type CommandLimits,
  createAgents,
  createExecServices,
  type ExecServices,
  JOURNAL_TABLES,
  type Journal,
  openEventLog,
  openIdempotency,
  openJournal,
  type RequireRunningOptions,
  type SandboxEntry,
  type Sandboxes,
  type SandboxHooks,
} from '@dsec/edge';
import type { Event, ExecSpec } from '@dsec/protocol';
import {
  type Digest,
  DsecError,
  type PrincipalId,
  type ProjectId,
  type SandboxId,
  type SandboxState,
  systemClock,
  systemRandom,
} from '@dsec/std';
import { connectUnix } from '@dsec/transport';
import { afterAll, beforeAll } from 'vitest';
import { type Aether, startAether } from './aether-peer.ts';

type Changing<T> = { -readonly [K in keyof T]: T[K] };

/** A sandbox whose agent is an aether of this host. */
export type TestEntry = Changing<SandboxEntry>;

export const SANDBOX_ID = 'sb-s1-e1-aaaaaaaaaaaaaaaa' as SandboxId;
const caller = { project: 'p1' as ProjectId, principal: 'u1' as PrincipalId };

/** What a lifecycle would be for one sandbox that is there already. */
export interface TestSandboxes extends Sandboxes {
  readonly entry: TestEntry;
  /** Uses that have not ended, and commands that came back. */
  readonly touched: { holds: number; commands: number };
  moveTo(state: SandboxState): void;
  forget(): void;
}

/** Goes on through restarts, as an edge's does. */
let sequence = 0;

export function createTestSandboxes(): TestSandboxes {
  const hooks: SandboxHooks[] = [];
  const touched = { holds: 0, commands: 0 };
  const entry = {
    ...{ id: SANDBOX_ID, generation: 1, key: { id: SANDBOX_ID, generation: 1 }, ...caller },
    ...{ state: 'running', inGrace: false, endReason: undefined, endedAtMs: undefined },
    defaults: { env: { PATH: process.env.PATH ?? '', HOME: '/' }, user: 'root', cwd: '/' },
  } as unknown as TestEntry;
  let isThere = true;
  const find = (id: SandboxId) => (isThere && id === entry.id ? entry : undefined);
  return {
    entry,
    touched,
    find,
    get(id: SandboxId) {
      const found = find(id);
      if (found === undefined) throw new DsecError('not-found', 'no such sandbox');
      return found;
    },
    async requireRunning(_: SandboxId, options: RequireRunningOptions = {}) {
      if (entry.state !== 'running' || (options.startsCommand && entry.inGrace)) {
        throw new DsecError('state-conflict', `the sandbox is ${entry.state}`);
      }
      return entry;
    },
    nextSequence() {
      sequence += 1;
      return sequence;
    },
    touch: () => {},
    hold() {
      touched.holds += 1;
      return () => {
        touched.holds -= 1;
      };
    },
    noteFirstCommand() {
      touched.commands += 1;
    },
    hook: (hook: SandboxHooks) => void hooks.push(hook),
    moveTo(state: SandboxState) {
      const from = entry.state;
      entry.state = state;
      if (state === 'stopped') entry.endedAtMs = 1;
      for (const hook of hooks) {
        if (state === 'running') hook.running?.(entry, from);
        if (state === 'stopped') hook.ended?.(entry);
      }
    },
    forget() {
      isThere = false;
      for (const hook of hooks) hook.forgotten?.(entry.id);
    },
    // What only the routes of the lifecycle ask for is not there.
  } satisfies Partial<TestSandboxes> as unknown as TestSandboxes;
}

/** The commands of an edge on a state root of its own, without the rest of an edge. */
export interface TestEdge extends ExecServices {
  readonly sandboxes: TestSandboxes;
  readonly entry: TestEntry;
  readonly journal: Journal;
  readonly agents: Agents;
  readonly faults: string[];
  /** What its event log holds. */
  eventsOf(type: Event['type']): Promise<Event[]>;
  /** Runs a command and waits for its end. */
  run(
    what: string | string[] | ExecSpec,
    more?: ExecSpec,
  ): ReturnType<ExecServices['execs']['start']>;
  /** Lets go as a killed edge does: nothing is said to anybody. */
  close(): void;
}

export interface TestEdgeOptions {
  readonly limits?: Partial<CommandLimits>;
  readonly sandboxes?: TestSandboxes;
  readonly dial?: (key: SandboxKey) => Promise<import('node:stream').Duplex>;
  readonly reconnectMs?: number;
}

export function openTestEdge(
  root: string,
  aetherPath: () => string,
  options: TestEdgeOptions = {},
): TestEdge {
  const clock = systemClock;
  const random = systemRandom;
  const journal = openJournal(root, { clock, random, tables: JOURNAL_TABLES });
  const sandboxes = options.sandboxes ?? createTestSandboxes();
  const spoolRoot = join(root, 'spool');
  mkdirSync(spoolRoot, { recursive: true });
  const faults: string[] = [];
  const agents = createAgents({
    ...{ epoch: journal.epoch, random, clock },
    reconnectMs: options.reconnectMs ?? 2000,
    dial: options.dial ?? (() => dialUnix(aetherPath())),
    onFault: (_, reason) => void faults.push(reason),
  });
  const events = openEventLog(journal, clock);
  const services = createExecServices({
    ...{ journal, sandboxes, agents, clock, random, spoolRoot, events },
    idempotency: openIdempotency(journal, clock),
    oomKills: async () => 0,
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  });
  services.recover();
  return {
    ...services,
    ...{ sandboxes, entry: sandboxes.entry, journal, agents, faults },
    async eventsOf(type) {
      const found: Event[] = [];
      const cursor = `${journal.id}-0`;
      const { signal } = new AbortController();
      for await (const event of events.follow({ cursor, signal, quietMs: 1 })) {
        if (event === undefined) return found;
        if (event.type === type) found.push(event);
      }
      return found;
    },
    run(what, more = {}) {
      const spec =
        typeof what === 'string' ? { shell: what } : Array.isArray(what) ? { argv: what } : what;
      const request = { waitMs: 60_000, ...spec, ...more };
      return services.execs.start(sandboxes.entry, request, context());
    },
    close() {
      if (!journal.db.open) return;
      agents.close();
      journal.close();
    },
  };
}

export function dialUnix(path: string): Promise<import('node:net').Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectUnix(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', (cause) => reject(new DsecError('unavailable', 'no agent', { cause })));
  });
}

export function context(key?: string, signal = new AbortController().signal) {
  return {
    ...{ caller, signal, idempotencyKey: key },
    traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`,
    requestDigest: `sha256:${'0'.repeat(64)}` as Digest,
  };
}

export interface ExecWorld {
  readonly aether: Aether;
  readonly root: string;
  edge: TestEdge;
  /** As a crash and a new start of the edge would be. */
  restart(options?: TestEdgeOptions): TestEdge;
}

/** An aether and an edge's commands for the tests of a block. */
export function useExecWorld(options: TestEdgeOptions = {}): () => ExecWorld {
  let world: ExecWorld;
  beforeAll(async () => {
    const aether = await startAether({ pidNamespace: process.getuid?.() === 0 });
    const root = mkdtempSync(join(tmpdir(), 'dsec-exec-'));
    const open = (again: TestEdgeOptions = options) => openTestEdge(root, () => aether.path, again);
    world = {
      ...{ aether, root, edge: open() },
      restart(again = options) {
        world.edge.close();
        world.edge = open(again);
        return world.edge;
      },
    };
  });
  afterAll(async () => {
    world.edge.close();
    await world.aether.stop();
    rmSync(world.root, { recursive: true, force: true });
  });
  return () => world;
}

/** All output of a command that is kept, read as a client would. */
export async function outputOf(
  edge: TestEdge,
  exec: { id: string },
  stream: 'stdout' | 'stderr' = 'stdout',
): Promise<Buffer> {
  const query = { stream, follow: true };
  const reply = await edge.readOutput(edge.entry, exec.id as never, query, context());
  const parts: Uint8Array[] = [];
  for await (const part of reply.body) parts.push(part);
  return Buffer.concat(parts);
}
