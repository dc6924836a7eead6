import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import type { SandboxLimits } from '@dsec/protocol';
import {
  createSeededRandom,
  DsecError,
  type ErrorCode,
  type Random,
  systemClock,
  systemRandom,
} from '@dsec/std';
import { type AgentLink, connectAgent } from '../agent/index.ts';
import type { Backend, SandboxExit, SandboxKey, SandboxPlan, SandboxRuntime } from '../backend.ts';
import type { BackendFactory, BackendHarness, ConformanceCommands } from './harness.ts';

/** A sandbox of a case, with a link to its agent. */
export interface Started {
  readonly plan: SandboxPlan;
  readonly key: SandboxKey;
  readonly runtime: SandboxRuntime;
  readonly link: AgentLink;
}

/** What a case works with. What it has started is stopped afterwards, and nothing may be left then. */
export interface Bench {
  readonly harness: BackendHarness;
  /** The present one; another after `reopen`. */
  readonly backend: Backend;
  readonly commands: ConformanceCommands;
  readonly random: Random;
  readonly isLong: boolean;
  /** Ends that the present and earlier backends have told. */
  readonly exits: readonly SandboxExit[];
  plan(changes?: Partial<SandboxPlan>): SandboxPlan;
  /** Limits that are not named are those of the harness. */
  start(changes?: Partial<SandboxPlan>, limits?: SandboxLimits): Promise<Started>;
  /** `cutAfterBytes`: the connection is lost when so many bytes have come. */
  connect(plan: SandboxPlan, options?: { cutAfterBytes?: number }): Promise<AgentLink>;
  reopen(): Promise<Backend>;
  /** Waits until it holds; `deadline-exceeded` when that takes too long. */
  until(check: () => boolean | Promise<boolean>): Promise<void>;
}

export type ConformanceTest = (bench: Bench) => Promise<void>;

export interface BenchOptions {
  readonly seed: number;
  readonly isLong: boolean;
  readonly patienceMs: number;
}

/** Runs a test on a backend of its own, and looks at what it leaves. */
export async function runOnBench(
  factory: BackendFactory,
  options: BenchOptions,
  test: ConformanceTest,
): Promise<void> {
  const harness = await factory();
  const plans: SandboxPlan[] = [];
  const exits: SandboxExit[] = [];
  let backend = harness.backend;
  backend.onExit((exit) => exits.push(exit));
  const bench: Bench = {
    harness,
    get backend() {
      return backend;
    },
    commands: harness.commands,
    random: createSeededRandom(options.seed),
    isLong: options.isLong,
    exits,
    plan(changes) {
      const plan = harness.plan(changes);
      plans.push(plan);
      return plan;
    },
    async start(changes, limits) {
      const usual = bench.plan(changes);
      const plan = { ...usual, limits: { ...usual.limits, ...limits } };
      const runtime = await backend.create(plan);
      return { plan, key: plan.key, runtime, link: await bench.connect(plan) };
    },
    connect: (plan, { cutAfterBytes } = {}) =>
      connectAgent({
        dial: async (signal) => cutting(await backend.dial(plan.key, signal), cutAfterBytes),
        sandboxId: plan.key.id,
        epoch: 1,
        random: systemRandom,
        clock: systemClock,
      }),
    async reopen() {
      backend = await harness.reopen();
      backend.onExit((exit) => exits.push(exit));
      return backend;
    },
    until: (check) => until(options.patienceMs, check),
  };
  try {
    await test(bench);
    for (const { key } of plans) await backend.stop(key);
    await bench.until(async () => (await harness.leftovers()).length === 0).catch(() => {});
    assert.deepEqual(await harness.leftovers(), []);
  } finally {
    await Promise.allSettled(plans.map(({ key }) => backend.stop(key)));
    await harness.close();
  }
}

function cutting(duplex: Duplex, afterBytes: number | undefined): Duplex {
  if (afterBytes === undefined) return duplex;
  let left = afterBytes;
  duplex.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left <= 0) duplex.destroy();
  });
  return duplex;
}

const POLL_MS = 10;

async function until(patienceMs: number, check: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = systemClock.monotonicMs() + patienceMs;
  while (!(await check())) {
    if (systemClock.monotonicMs() > endMs) {
      throw new DsecError('deadline-exceeded', `not within ${patienceMs} ms`);
    }
    await systemClock.sleep(POLL_MS);
  }
}

/** Expects a refusal with one of these codes and returns it. */
export async function refused(
  codes: ErrorCode | readonly ErrorCode[],
  work: Promise<unknown>,
): Promise<DsecError> {
  const expected: readonly string[] = typeof codes === 'string' ? [codes] : codes;
  const outcome = await work.then(
    (value) => ({ value }),
    (thrown: unknown) => ({ thrown }),
  );
  if (!('thrown' in outcome)) assert.fail(`expected a refusal with ${expected.join(' or ')}`);
  const { thrown } = outcome;
  assert.ok(thrown instanceof DsecError, `expected a DsecError, got ${String(thrown)}`);
  assert.ok(expected.includes(thrown.code), `${thrown.code} instead of ${expected.join(' or ')}`);
  return thrown;
}
