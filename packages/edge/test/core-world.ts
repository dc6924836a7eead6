/** An edge without commands and routes, on a simulated node that outlives it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Backend } from '@dsec/backend';
import {
  createSimBackend,
  createSimWorld,
  type SimBackend,
  type SimWorld,
} from '@dsec/backend/sim';
import {
  type AgentConnector,
  defaultNodePolicy,
  type EdgeCore,
  type EdgeCoreOptions,
  type HostSample,
  openEdgeCore,
} from '@dsec/edge';
import type { SandboxCreate } from '@dsec/protocol';
import {
  type Clock,
  createSeededRandom,
  type Digest,
  DsecError,
  digestOfHex,
  parseEdgeId,
  parsePrincipalId,
  parseProjectId,
  parseShardId,
  type Random,
  type SandboxId,
  systemClock,
} from '@dsec/std';
import { onTestFinished } from 'vitest';

export const LAYER = digestOfHex('a'.repeat(64));
export const BOOT_ID = '11111111-1111-4111-8111-111111111111';
export const CREATE: SandboxCreate = { layers: ['base/test:1.0.0'] };
export const CALLER = { project: parseProjectId('p'), principal: parsePrincipalId('someone') };

export const HOST: HostSample = {
  ...{ cpuCount: 4, memoryTotalBytes: 2 ** 36, memoryAvailableBytes: 2 ** 35 },
  ...{ diskTotalBytes: 2 ** 40, diskAvailableBytes: 2 ** 39, pidMax: 4_194_304, pidsUsed: 100 },
  ...{ cpuPressurePct: 1, memoryPressurePct: 0, ioPressurePct: 0 },
};

export const ENVIRONMENTS: EdgeCoreOptions['environments'] = {
  async layersOf(name) {
    if (name === 'known') return ['base/test:1.0.0'];
    throw new DsecError('not-found', `there is no environment ${name}`);
  },
  resolve: async (refs) => ({
    layers: refs.map((ref) => ({ requested: ref, ref, kind: 'base', layerId: LAYER })),
    image: null,
  }),
};

export interface CoreWorld {
  readonly stateRoot: string;
  readonly world: SimWorld;
  /** Opens an edge; the one before must be closed or crashed. */
  open(changes?: Partial<EdgeCoreOptions>): Promise<OpenedCore>;
}

export interface OpenedCore {
  readonly core: EdgeCore;
  readonly backend: SimBackend;
  /** As kill -9: the journal's lock is free, and nothing is undone. */
  crash(): void;
}

export interface CoreWorldOptions {
  readonly clock?: Clock;
  readonly random?: Random;
  readonly createStepMs?: number;
  /** Of the node: taken and kept. */
  readonly policies?: boolean;
  /** Stands between the edge and the simulated backend. */
  readonly wrap?: (backend: SimBackend) => Backend;
}

export function createCoreWorld(options: CoreWorldOptions = {}): CoreWorld {
  const {
    clock = systemClock,
    random = createSeededRandom(7),
    wrap = (backend) => backend,
  } = options;
  const stateRoot = mkdtempSync(join(tmpdir(), 'dsec-edge-'));
  onTestFinished(() => rmSync(stateRoot, { recursive: true, force: true }));
  const latencyMs = { createStep: options.createStepMs ?? 0 };
  const world = createSimWorld({
    ...{ clock, random, latencyMs },
    policies: options.policies ?? false,
  });
  let last: EdgeCore | undefined;
  onTestFinished(async () => {
    if (last?.journal.db.open) await last.close();
  });
  const open = async (changes: Partial<EdgeCoreOptions> = {}) => {
    const backend = createSimBackend(world);
    const time = timeOfLife(clock);
    const core = await openEdgeCore({
      ...{ stateRoot, clock: time.clock, random, bootId: BOOT_ID, environments: ENVIRONMENTS },
      ...{ edgeId: parseEdgeId('e1'), shardId: parseShardId('s1') },
      openBackend: async () => wrap(backend),
      openAgents: agentsOf,
      policy: defaultNodePolicy(HOST),
      probe: () => HOST,
      log: { info: () => undefined, warn: () => undefined },
      ...changes,
    });
    last = core;
    await core.recover(new AbortController().signal);
    const crash = () => {
      time.end();
      backend.crash();
      core.journal.close();
    };
    return { core, backend, crash };
  };
  return { stateRoot, world, open };
}

/** The clock of a process: who slept when that was killed never wakes, and is not kept. */
function timeOfLife(clock: Clock): { readonly clock: Clock; end(): void } {
  const life = new AbortController();
  const sleep: Clock['sleep'] = (ms, signal) =>
    new Promise((resolve, reject) => {
      const signals = signal === undefined ? [life.signal] : [life.signal, signal];
      clock.sleep(ms, AbortSignal.any(signals)).then(resolve, (thrown) => {
        if (!life.signal.aborted) reject(thrown);
      });
    });
  return { clock: { ...clock, sleep }, end: () => life.abort() };
}

/** Connected once the agent can be dialled. */
export function agentsOf(backend: Backend): AgentConnector {
  return {
    connect: async (key, signal) => (await backend.dial(key, signal)).destroy(),
    drop: () => undefined,
    close: () => undefined,
  };
}

export interface ContextChanges {
  readonly key?: string;
  readonly digest?: Digest;
  readonly signal?: AbortSignal;
  readonly sandboxId?: SandboxId;
}

export function context({ key, digest, signal, sandboxId }: ContextChanges = {}) {
  return {
    ...{ caller: CALLER, sandboxId, idempotencyKey: key },
    signal: signal ?? new AbortController().signal,
    traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-00`,
    requestDigest: digest ?? digestOfHex('b'.repeat(64)),
  };
}

/** Resolves when `condition` holds; looks again with every turn of the event loop. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
}
