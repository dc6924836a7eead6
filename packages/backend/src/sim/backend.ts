import type { Duplex } from 'node:stream';
import type { Protection, SandboxLimits } from '@dsec/protocol';
import { asDsecError, createCleanupStack, DsecError, KIB } from '@dsec/std';
import { abortError } from '@dsec/transport';
import type {
  Backend,
  BackendPolicies,
  BackendReport,
  SandboxExit,
  SandboxKey,
  SandboxPlan,
  SandboxRuntime,
  SandboxStats,
} from '../backend.ts';
import { createSimAgent } from './agent.ts';
import type { AgentContext } from './agent-context.ts';
import { createBytePipe } from './byte-pipe.ts';
import { createSimFiles, type SimFiles } from './files.ts';
import { serveHostile } from './hostile-agent.ts';
import { createMangledPipe } from './mangled-pipe.ts';
import { createProcessTable } from './processes.ts';
import { recoverWorld } from './recovery.ts';
import { createRunningTime, unlessAborted } from './running-time.ts';
import { keyText, SIM_STEPS, type SimSandbox, type SimStep, type SimWorld } from './world.ts';

/** A backend whose sandboxes are objects in memory. It passes the conformance suite of every backend. */
export interface SimBackend extends Backend {
  /** Stops where it is, as a process that is killed: nothing is undone, what was under way never settles. */
  crash(): void;
}

const SLOW_READ_MS = 20;
const CUT_BYTES_MAX = 256 * KIB;
const UPPER_DRIVER = 'memory';
const PROTECTIONS: readonly Protection[] = [{ name: 'simulated', state: 'enforced' }];

interface State {
  readonly world: SimWorld;
  readonly listeners: Set<(exit: SandboxExit) => void>;
  readonly creating: Set<string>;
  isLost: boolean;
}

/** `world` is the node: pass the same one to the next backend to simulate a restart. */
export function createSimBackend(world: SimWorld): SimBackend {
  const state: State = { world, listeners: new Set(), creating: new Set(), isLost: false };
  const onEnd: SimWorld['onEnd'] = (sandbox, exit) => {
    // Of a sandbox that is still being made its `create` tells.
    if (state.creating.has(keyText(sandbox.key))) return;
    for (const listener of state.listeners) listener(exit);
  };
  const leave = () => {
    state.isLost = true;
    if (world.onEnd === onEnd) world.onEnd = undefined;
  };
  const freeze = async (key: SandboxKey) => {
    const { time } = running(world, key).context;
    if (world.faults.happens('freeze-stuck')) {
      throw new DsecError('freeze-timeout', 'a process does not freeze');
    }
    time.freeze();
  };
  const thaw = async (key: SandboxKey) => running(world, key).context.time.thaw();
  world.onEnd = onEnd;
  return {
    kind: 'container',
    probe: async () => reportOf(world),
    create: (plan, signal) => create(state, plan, signal),
    dial: (key, signal) => dial(state, key, signal),
    stop: async (key) => {
      const sandbox = world.sandboxes.get(keyText(key));
      if (sandbox === undefined) return;
      if (world.faults.happens('stop-stuck')) {
        throw new DsecError('deadline-exceeded', 'a process does not end');
      }
      await destroy(world, sandbox);
    },
    async update(key, limits) {
      update(running(world, key), limits);
    },
    ...(world.policies ? { policies: policiesOf(world) } : {}),
    freeze,
    thaw,
    pause: freeze,
    resume: thaw,
    stats: async (key) => statsOf(running(world, key)),
    recover: (claims) => recoverWorld(world, claims, (sandbox) => destroy(world, sandbox)),
    onExit: (listener) => void state.listeners.add(listener),
    close: async () => leave(),
    crash: leave,
  };
}

function reportOf({ slotsMax }: SimWorld): BackendReport {
  return {
    kind: 'container',
    protections: PROTECTIONS,
    upperDrivers: [UPPER_DRIVER],
    slotsMax,
  };
}

/** Keeps what it is told, for tests to look at. */
const policiesOf = (world: SimWorld): BackendPolicies => ({
  facts: {
    ...{ landlockAbi: 7, hasAppArmor: false, deviceRules: 'none' },
    hasSessionCapabilities: true,
  },
  rulesOf: ({ capabilities, landlock }) => ({
    ...{ capabilities, handledAccess: landlock?.handledAccess ?? 0 },
    trees: (landlock?.rules ?? []).map(({ path, access }) => ({ path: Buffer.from(path), access })),
  }),
  async apply(key, policy) {
    const sandbox = running(world, key);
    if (world.faults.happens('freeze-stuck')) {
      throw new DsecError('freeze-timeout', 'a process does not freeze');
    }
    sandbox.policy = policy;
  },
});

function running(world: SimWorld, key: SandboxKey): SimSandbox {
  const sandbox = world.sandboxes.get(keyText(key));
  if (sandbox === undefined) throw new DsecError('not-found', `there is no ${keyText(key)}`);
  if (sandbox.end !== undefined || !sandbox.made.has('agent')) {
    throw new DsecError('state-conflict', `${keyText(key)} does not run`);
  }
  return sandbox;
}

async function create(
  state: State,
  plan: SandboxPlan,
  signal: AbortSignal | undefined,
): Promise<SandboxRuntime> {
  const { world, creating } = state;
  const name = keyText(plan.key);
  checkPlan(world, plan);
  const sandbox = newSandbox(world, plan);
  const undo = createCleanupStack();
  world.sandboxes.set(name, sandbox);
  world.slots.add(plan.slot);
  creating.add(name);
  undo.push('sandbox', () => destroy(world, sandbox));
  try {
    for (const step of SIM_STEPS) {
      await takeStep(state, sandbox, step, signal);
      sandbox.made.add(step);
    }
  } catch (thrown) {
    // A backend that was killed undoes nothing, and says nothing any more.
    if (state.isLost) return await new Promise<never>(() => {});
    if (world.faults.happens('create-leaves')) throw leftover(thrown);
    await undo.run();
    throw asDsecError(thrown);
  } finally {
    creating.delete(name);
  }
  undo.release();
  if (world.faults.happens('agent-dies')) {
    void world.clock
      .sleep(world.random.int(20))
      .then(() => world.endSandbox(plan.key, 'agent', 'the agent ended by itself'));
  }
  return { record: { slot: plan.slot }, protections: PROTECTIONS, upperDriver: UPPER_DRIVER };
}

function leftover(thrown: unknown): DsecError {
  const { code, message, details } = asDsecError(thrown);
  return new DsecError(code, message, { cause: thrown, details: { ...details, leftover: true } });
}

function checkPlan(world: SimWorld, plan: SandboxPlan): void {
  if (plan.tools !== undefined) {
    throw new DsecError('unsupported', 'simulated sandboxes have nothing at /.dsec');
  }
  const name = keyText(plan.key);
  if (world.sandboxes.has(name)) throw new DsecError('already-exists', `${name} exists`);
  if (world.slots.has(plan.slot) || plan.slot >= world.slotsMax) {
    throw new DsecError('invalid-argument', `slot ${plan.slot} is in use, or none`);
  }
  const known = new Set(PROTECTIONS.map((protection) => protection.name));
  const absent = plan.requireProtections.filter((protection) => !known.has(protection));
  if (plan.policy !== undefined && !world.policies) {
    throw new DsecError('unsupported', 'this backend enforces no policies');
  }
  if (absent.length > 0) throw new DsecError('unsupported', `absent here: ${absent.join(', ')}`);
}

function newSandbox(world: SimWorld, plan: SandboxPlan): SimSandbox {
  const { clock, random, programs, ports } = world;
  const { limits } = plan;
  const time = createRunningTime(clock);
  // Most sandboxes of a large simulation never touch a file.
  let files: SimFiles | undefined;
  const context: AgentContext = {
    clock,
    random,
    time,
    programs,
    ports,
    isHeld: false,
    rules: undefined,
    processes: createProcessTable({
      time,
      memoryBytesMax: limits.memoryBytes,
      pidsMax: limits.pidsMax,
    }),
    get files() {
      const { diskBytes: bytesMax, inodesMax } = limits;
      files ??= createSimFiles({ clock, bytesMax, inodesMax });
      return files;
    },
  };
  const agent = createSimAgent(context);
  const startedMs = time.nowMs();
  return {
    key: plan.key,
    plan,
    made: new Set(),
    context,
    agent,
    startedMs,
    end: undefined,
    policy: plan.policy,
  };
}

async function takeStep(
  state: State,
  sandbox: SimSandbox,
  step: SimStep,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { world } = state;
  if (signal?.aborted) throw abortError(signal);
  if (world.faults.happens('create-fails')) {
    throw new DsecError('unavailable', `the step ${step} failed`, { details: { step } });
  }
  if (step === 'agent' && world.faults.happens('agent-silent')) {
    await unlessAborted(new Promise<never>(() => {}), signal);
  }
  const { createStep } = world.latencyMs;
  if (createStep > 0) await world.clock.sleep(world.random.int(createStep) + 1, signal);
  if (state.isLost) throw new DsecError('cancelled', 'the backend is gone');
  if (sandbox.end !== undefined) {
    throw new DsecError('agent-lost', `it ended while it was made: ${sandbox.end.detail}`);
  }
}

async function destroy(world: SimWorld, sandbox: SimSandbox): Promise<void> {
  sandbox.end ??= { key: sandbox.key, reason: 'killed', detail: 'stopped' };
  sandbox.agent.end();
  sandbox.context.time.thaw();
  await sandbox.context.processes.killAll();
  sandbox.made.clear();
  if (world.sandboxes.delete(keyText(sandbox.key))) world.slots.delete(sandbox.plan.slot);
}

async function dial(
  { world }: State,
  key: SandboxKey,
  signal: AbortSignal | undefined,
): Promise<Duplex> {
  const sandbox = running(world, key);
  const { faults, random, clock, latencyMs } = world;
  if (latencyMs.dial > 0) await clock.sleep(random.int(latencyMs.dial) + 1, signal);
  if (faults.happens('dial-refused')) throw new DsecError('unavailable', 'nobody answers');
  const pipe = createBytePipe(clock, {
    isHalfOpen: faults.happens('link-half-open'),
    ...(faults.happens('link-slow') && { readDelayMs: SLOW_READ_MS }),
    ...(faults.happens('link-cut') && { cutAfterBytes: random.int(CUT_BYTES_MAX) }),
  });
  if (world.hostile !== undefined) {
    serveHostile(pipe.agent, world.hostile, random);
    return pipe.host;
  }
  const isMangled = faults.happens('frames-malformed');
  sandbox.agent.accept(isMangled ? createMangledPipe(pipe.agent, random) : pipe.agent);
  return pipe.host;
}

function update({ context }: SimSandbox, limits: SandboxLimits): void {
  const { memoryBytes, pidsMax, diskBytes, inodesMax } = limits;
  context.processes.limit({
    ...(memoryBytes !== undefined && { memoryBytesMax: memoryBytes }),
    ...(pidsMax !== undefined && { pidsMax }),
  });
  context.files.limit({
    ...(diskBytes !== undefined && { bytesMax: diskBytes }),
    ...(inodesMax !== undefined && { inodesMax }),
  });
}

function statsOf({ context, startedMs }: SimSandbox): SandboxStats {
  const { processes, files, time } = context;
  return {
    // Of its running time a thousandth.
    cpuUs: Math.round(time.nowMs() - startedMs),
    memoryBytes: processes.memoryBytes,
    memoryPeakBytes: processes.memoryPeakBytes,
    diskBytes: files.usedBytes,
    inodes: files.usedInodes,
    pids: processes.count + 1,
    oomKills: processes.oomKills,
  };
}
