import type { Clock, Random } from '@dsec/std';
import type { PlannedPolicy, SandboxExit, SandboxKey, SandboxPlan } from '../backend.ts';
import type { SimAgent } from './agent.ts';
import type { AgentContext } from './agent-context.ts';
import { createSimFaults, type SimFault, type SimFaults } from './faults.ts';
import type { HostileMode } from './hostile-agent.ts';
import { echoServer, type PortTable } from './ports.ts';
import type { ProgramTable } from './program.ts';
import { SIM_PROGRAMS } from './programs.ts';

/** What `create` makes, in this order, and `stop` removes in the other one. */
export const SIM_STEPS = ['slot', 'cgroup', 'layers', 'upper', 'processes', 'agent'] as const;
export type SimStep = (typeof SIM_STEPS)[number];

/** A sandbox as the node has it, whatever any backend knows. */
export interface SimSandbox {
  readonly key: SandboxKey;
  readonly plan: SandboxPlan;
  /** What exists of it. */
  readonly made: Set<SimStep>;
  readonly context: AgentContext;
  readonly agent: SimAgent;
  /** In its running time. */
  readonly startedMs: number;
  /** Its agent has ended. */
  end: SandboxExit | undefined;
  /** The last that was applied. */
  policy: PlannedPolicy | undefined;
}

/**
 * The node of simulated backends: what lives in it outlives each of them. It can be passed to the next
 * backend, as a node is there for the next edge.
 */
export interface SimWorld {
  readonly clock: Clock;
  readonly random: Random;
  readonly faults: SimFaults;
  readonly programs: ProgramTable;
  readonly ports: PortTable;
  readonly latencyMs: SimLatency;
  readonly slotsMax: number;
  /** Policies are taken and kept; nothing enforces them. */
  readonly policies: boolean;
  /** When set, every agent is of this kind. */
  readonly hostile: HostileMode | undefined;
  readonly sandboxes: Map<string, SimSandbox>;
  /** Those in use. */
  readonly slots: Set<number>;
  /** Told of each end; the backend in charge listens. */
  onEnd: ((sandbox: SimSandbox, exit: SandboxExit) => void) | undefined;
  /** What exists, one line each: processes, mounts, slots. Empty when nothing is left. */
  leftovers(): readonly string[];
  /** Ends a sandbox as something outside of the backend would. */
  endSandbox(key: SandboxKey, reason: SandboxExit['reason'], detail?: string): Promise<void>;
}

export interface SimLatency {
  /** Each step of `create` takes up to this long. */
  readonly createStep: number;
  readonly dial: number;
}

export interface SimWorldOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly faults?: Partial<Record<SimFault, number>>;
  /** Beside the usual ones. */
  readonly programs?: ProgramTable;
  readonly ports?: PortTable;
  readonly latencyMs?: Partial<SimLatency>;
  readonly slotsMax?: number;
  readonly policies?: boolean;
  readonly hostile?: HostileMode;
}

const ECHO_PORT = 7;

export function createSimWorld(options: SimWorldOptions): SimWorld {
  const { clock, random } = options;
  const sandboxes = new Map<string, SimSandbox>();
  const world: SimWorld = {
    clock,
    random,
    faults: createSimFaults(random, options.faults),
    programs: { ...SIM_PROGRAMS, ...options.programs },
    ports: { [ECHO_PORT]: echoServer, ...options.ports },
    latencyMs: { createStep: 0, dial: 0, ...options.latencyMs },
    slotsMax: options.slotsMax ?? 1024,
    policies: options.policies ?? false,
    hostile: options.hostile,
    sandboxes,
    slots: new Set(),
    onEnd: undefined,
    leftovers: () => [
      ...[...sandboxes.values()].flatMap(linesOf),
      ...[...world.slots].map((slot) => `slot ${slot}`),
    ],
    async endSandbox(key, reason, detail = reason) {
      const sandbox = sandboxes.get(keyText(key));
      if (sandbox === undefined || sandbox.end !== undefined) return;
      await endSandbox(world, sandbox, { key, reason, detail });
    },
  };
  return world;
}

async function endSandbox(world: SimWorld, sandbox: SimSandbox, exit: SandboxExit): Promise<void> {
  sandbox.end = exit;
  sandbox.agent.end();
  sandbox.context.time.thaw();
  await sandbox.context.processes.killAll();
  if (!world.faults.happens('exit-lost')) world.onEnd?.(sandbox, exit);
}

export function keyText({ id, generation }: SandboxKey): string {
  return `${id}.${generation}`;
}

function linesOf({ key, made, context }: SimSandbox): string[] {
  const lines = [...made].map((step) => `${keyText(key)}: ${step}`);
  if (context.processes.count > 0) lines.push(`processes ${context.processes.count}`);
  return lines;
}
