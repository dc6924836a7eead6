import {
  createSeededRandom,
  digestOfHex,
  MIB,
  newSandboxId,
  parseEdgeId,
  parseShardId,
  systemClock,
} from '@dsec/std';
import type { BackendHarness, ConformanceCommands } from '../src/conformance/conformance.ts';
import type { SandboxPlan } from '../src/index.ts';
import { createSimBackend, createSimWorld, type SimWorldOptions } from '../src/sim/index.ts';

export const SIM_COMMANDS: ConformanceCommands = {
  exit: (code) => ['exit', String(code)],
  raise: (signal) => ['kill-self', String(signal)],
  copyInput: () => ['cat'],
  count: (last) => ['count', String(last)],
  fill: (bytes) => ['yes', String(bytes)],
  say: (text, channel) => [channel === 'stdout' ? 'echo' : 'stderr', text],
  environment: () => ['env'],
  directory: () => ['pwd'],
  sleep: (ms) => ['sleep', String(ms)],
  holdOutputs: (code) => ['spawn-background', String(code)],
  tree: () => ['tree', '4', '600000'],
  fillMemory: () => ['oom'],
  terminalSize: () => ['size'],
  endShellIn: (ms) => `end-in ${ms}`,
  manyNames: (directory, files) => ['many-files', directory, String(files)],
};

/** Plans of a simulated edge: new ids, and slots counted from 0. */
export function createPlanner(seed: number): (changes?: Partial<SandboxPlan>) => SandboxPlan {
  const random = createSeededRandom(seed);
  let slot = -1;
  return (changes = {}) => {
    slot += 1;
    return {
      key: { id: newSandboxId(parseShardId('s'), parseEdgeId('e'), random), generation: 1 },
      layers: [{ kind: 'base', layerId: digestOfHex('0'.repeat(64)) }],
      limits: {
        cpuMillicores: 1000,
        memoryBytes: 64 * MIB,
        pidsMax: 512,
        diskBytes: 256 * MIB,
        inodesMax: 100_000,
        openFilesMax: 1024,
      },
      slot,
      hostname: 'sandbox',
      isolationDomain: 'project',
      requireProtections: [],
      allowDegraded: false,
      ...changes,
    };
  };
}

/** A simulated node with one backend on it. */
export async function openSimHarness(
  options: Partial<SimWorldOptions> = {},
): Promise<BackendHarness> {
  const random = createSeededRandom(1);
  const world = createSimWorld({
    clock: systemClock,
    random,
    latencyMs: { createStep: 4 },
    ...options,
  });
  let backend = createSimBackend(world);
  return {
    backend,
    commands: SIM_COMMANDS,
    plan: createPlanner(2),
    leftovers: async () => world.leftovers(),
    async reopen() {
      backend.crash();
      backend = createSimBackend(world);
      return backend;
    },
    killAgent: (key) => world.endSandbox(key, 'killed', 'killed from outside'),
    close: () => backend.close(),
  };
}
