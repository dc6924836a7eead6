import { describe, expect, test } from 'vitest';
import type { Backend, SandboxExit } from '../src/backend.ts';
import { type BackendHarness, backendConformance } from '../src/conformance/conformance.ts';
import { openSimHarness } from './sim-harness.ts';

type Defect = (backend: Backend) => Partial<Backend>;

/** Backends that are wrong in one thing, and the case that has to see it. */
const DEFECTS: readonly (readonly [string, string, Defect])[] = [
  [
    'a stop that does nothing',
    'stop leaves nothing, tells nobody, and can be repeated',
    () => ({ stop: async () => {} }),
  ],
  [
    'an end that is told twice',
    'the end of an agent is told once, with its reason',
    (backend) => ({
      onExit: (listener: (exit: SandboxExit) => void) =>
        backend.onExit((exit) => {
          listener(exit);
          listener(exit);
        }),
    }),
  ],
  [
    'an end that nobody is told of',
    'what recover keeps is watched again',
    () => ({ onExit: () => {}, recover: async () => ({ sandboxes: [], destroyed: [] }) }),
  ],
  [
    'a key that is taken twice',
    'a key that runs is not created twice',
    (backend) => {
      const made = new Map<string, ReturnType<Backend['create']>>();
      return {
        create(plan, signal) {
          const runtime = made.get(plan.key.id) ?? backend.create(plan, signal);
          made.set(plan.key.id, runtime);
          return runtime;
        },
      };
    },
  ],
  [
    'a create that cannot be given up',
    'create that is given up at any moment leaves nothing',
    (backend) => ({
      create: async (plan, signal) => {
        const runtime = await backend.create(plan);
        signal?.throwIfAborted();
        return runtime;
      },
    }),
  ],
  [
    'a recover that destroys nothing',
    'recover destroys what nobody claims',
    () => ({ recover: async () => ({ sandboxes: [], destroyed: [] }) }),
  ],
  [
    'limits that are not changed',
    'the limit on processes holds, and can be changed while it runs',
    () => ({ update: async () => {} }),
  ],
  [
    'usage that is made up',
    'stats are those of the sandbox',
    () => ({
      stats: async () => ({
        cpuUs: 1,
        memoryBytes: 1,
        memoryPeakBytes: 1,
        diskBytes: 1,
        inodes: 1,
        pids: 1000,
      }),
    }),
  ],
  [
    'an unknown key that is taken for a known one',
    'a key that is not known',
    () => ({ freeze: async () => {} }),
  ],
  [
    'bytes that are not those of the agent',
    'a stream is whole over connections that are lost anywhere',
    (backend) => ({
      async dial(key, signal) {
        const duplex = await backend.dial(key, signal);
        const { emit } = duplex;
        duplex.emit = (event: string | symbol, ...args: unknown[]) => {
          const [chunk] = args;
          if (event === 'data' && chunk instanceof Buffer && chunk.length > 10_000) {
            chunk[9000] = 0x78;
          }
          return emit.call(duplex, event, ...args);
        };
        return duplex;
      },
    }),
  ],
];

async function openDefect(defect: Defect): Promise<BackendHarness> {
  const harness = await openSimHarness();
  const wrong = (backend: Backend): Backend => ({ ...backend, ...defect(backend) });
  return {
    ...harness,
    backend: wrong(harness.backend),
    reopen: async () => wrong(await harness.reopen()),
  };
}

describe('the suite sees', () => {
  test.each(DEFECTS)(
    '%s',
    async (_, name, defect) => {
      const cases = backendConformance(() => openDefect(defect), { patienceMs: 500 });
      const found = cases.find((each) => each.name === name);
      await expect(found?.run()).rejects.toThrow();
    },
    60_000,
  );
});
