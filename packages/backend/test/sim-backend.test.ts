import { setImmediate as nextTurn } from 'node:timers/promises';
import { createManualClock, createSeededRandom, systemClock, systemRandom } from '@dsec/std';
import { describe, expect, test } from 'vitest';
import type { SandboxExit, SandboxPlan } from '../src/backend.ts';
import { createFollower, execFields, run } from '../src/conformance/command-run.ts';
import { type Backend, connectAgent } from '../src/index.ts';
import { createSimBackend, createSimWorld, type SimWorldOptions } from '../src/sim/index.ts';
import { createPlanner } from './sim-harness.ts';

const LONG = process.env.DSEC_TEST_LONG === '1';

function open(options: Partial<SimWorldOptions> = {}) {
  const random = createSeededRandom(7);
  const world = createSimWorld({ clock: systemClock, random, ...options });
  return { world, backend: createSimBackend(world), plan: createPlanner(8) };
}

function connect(backend: Backend, { key }: SandboxPlan, helloMs = 5000) {
  return connectAgent({
    dial: (signal) => backend.dial(key, signal),
    sandboxId: key.id,
    epoch: 1,
    random: systemRandom,
    clock: systemClock,
    limits: { helloMs },
  });
}

describe('faults', () => {
  test('a step of create that fails undoes those before it', async () => {
    const { world, backend, plan } = open({ faults: { 'create-fails': 0.3 } });
    const outcomes = new Set<string>();
    for (let round = 0; round < 100; round += 1) {
      const each = plan();
      const outcome = await backend.create(each).then(
        () => 'made',
        (error) => String(error.details.step),
      );
      outcomes.add(outcome);
      if (outcome === 'made') await backend.stop(each.key);
      expect(world.leftovers()).toEqual([]);
    }
    expect(outcomes.size).toBeGreaterThan(5);
  });

  test('an agent that never says hello is given up', async () => {
    const { world, backend, plan } = open();
    world.faults.arm('agent-silent');
    const giveUp = new AbortController();
    const creating = backend.create(plan(), giveUp.signal);
    await nextTurn();
    giveUp.abort();
    await expect(creating).rejects.toMatchObject({ code: 'cancelled' });
    expect(world.leftovers()).toEqual([]);
  });

  test('an agent that dies is told once', async () => {
    const { world, backend, plan } = open();
    world.faults.arm('agent-dies');
    const exits: SandboxExit[] = [];
    const ended = new Promise<void>((resolve) =>
      backend.onExit((exit) => {
        exits.push(exit);
        resolve();
      }),
    );
    const { key } = plan();
    await backend.create({ ...plan(), key });
    await ended;
    expect(exits).toMatchObject([{ key, reason: 'agent' }]);
    await backend.stop(key);
  });

  test('connections that are refused, half open, slow, cut or spoilt', async () => {
    const { world, backend, plan } = open();
    const each = plan();
    await backend.create(each);
    world.faults.arm('dial-refused');
    await expect(connect(backend, each)).rejects.toMatchObject({ code: 'unavailable' });
    world.faults.arm('link-half-open');
    await expect(connect(backend, each, 50)).rejects.toMatchObject({ code: 'agent-lost' });
    world.faults.arm('link-slow');
    const slow = await connect(backend, each);
    expect((await run(slow, ['count', '10'])).stdoutBytes).toBe(21);
    for (const fault of ['link-cut', 'frames-malformed'] as const) {
      world.faults.arm(fault);
      const link = await connect(backend, each).catch((error) => error);
      if (link instanceof Error) continue;
      await link
        .open()
        .send('exec-start', execFields(['yes', '2000000']))
        .catch(() => {});
      const command = run(link, ['yes', '2000000'], { windowBytes: 1024 * 1024 });
      const error = await command.catch((thrown) => thrown);
      expect(['unavailable', 'protocol']).toContain(error.code);
    }
    expect((await run(await connect(backend, each), ['exit', '1'])).exitCode).toBe(1);
    await backend.stop(each.key);
  });

  test('what is left or stuck is done by the next stop', async () => {
    const { world, backend, plan } = open();
    for (const fault of ['create-fails', 'create-leaves', 'stop-stuck'] as const) {
      world.faults.arm(fault);
    }
    const { key } = plan();
    const failed = backend.create({ ...plan(), key });
    await expect(failed).rejects.toMatchObject({ details: { leftover: true } });
    expect(world.leftovers()).not.toEqual([]);
    await expect(backend.stop(key)).rejects.toMatchObject({ code: 'deadline-exceeded' });
    await backend.stop(key);
    expect(world.leftovers()).toEqual([]);
  });

  test('a sandbox that does not freeze runs on', async () => {
    const { world, backend, plan } = open();
    const each = plan();
    await backend.create(each);
    world.faults.arm('freeze-stuck');
    await expect(backend.pause(each.key)).rejects.toMatchObject({ code: 'freeze-timeout' });
    expect((await run(await connect(backend, each), ['exit', '6'])).exitCode).toBe(6);
    await backend.stop(each.key);
  });

  test('an end that nobody was told of is found by recover', async () => {
    const { world, backend, plan } = open();
    const each = plan();
    const runtime = await backend.create(each);
    const exits: SandboxExit[] = [];
    backend.onExit((exit) => exits.push(exit));
    world.faults.arm('exit-lost');
    await world.endSandbox(each.key, 'oom');
    expect(exits).toEqual([]);
    backend.crash();
    const report = await createSimBackend(world).recover([{ plan: each, runtime }]);
    expect(report.sandboxes).toMatchObject([{ running: false, exit: { reason: 'oom' } }]);
    expect(world.leftovers()).toEqual([]);
  });
});

describe('a backend that is killed', () => {
  test('at any moment of create: the next one leaves nothing', async () => {
    for (let seed = 1; seed <= (LONG ? 500 : 40); seed += 1) {
      const { world, backend, plan } = open({
        random: createSeededRandom(seed),
        latencyMs: { createStep: 2 },
      });
      const each = plan();
      const state = { settled: false };
      const creating = backend.create(each).then(() => {
        state.settled = true;
      });
      await Promise.race([creating, systemClock.sleep(seed % 10)]);
      backend.crash();
      const next = createSimBackend(world);
      const isClaimed = seed % 2 === 0;
      const report = await next.recover(isClaimed ? [{ plan: each }] : []);
      expect(report.sandboxes).toHaveLength(isClaimed ? 1 : 0);
      expect(report.sandboxes.every(({ running }) => !running)).toBe(true);
      await systemClock.sleep(5);
      expect(world.leftovers()).toEqual([]);
    }
  });
});

describe('virtual time', () => {
  test('a timeout of an hour, and a frozen day that does not count', async () => {
    const clock = createManualClock();
    const { backend, plan } = open({ clock });
    const each = plan();
    await backend.create(each);
    const link = await connect(backend, each);
    const fields = execFields(['sleep', '999999999'], { timeoutMs: 3_600_000 });
    const follower = createFollower(fields);
    const stream = follower.open(link);
    await stream.send('exec-start', fields);
    const ending = follower.toEnd(stream);
    await link.ping();
    await backend.freeze(each.key);
    clock.advance(86_400_000);
    await backend.thaw(each.key);
    await link.ping();
    clock.advance(3_599_000);
    await link.ping();
    clock.advance(1000);
    const result = await ending;
    expect([result.timedOut, result.signal, result.runningMs]).toEqual([true, 9, 3_600_000]);
    await backend.stop(each.key);
  });

  test('a seed repeats a run', async () => {
    const outcomes = async () => {
      const { backend, plan } = open({ faults: { 'create-fails': 0.1 } });
      const codes: string[] = [];
      for (let round = 0; round < 30; round += 1) {
        const each = plan();
        codes.push(
          await backend.create(each).then(
            () => 'made',
            (error) => error.details.step,
          ),
        );
        await backend.stop(each.key);
      }
      return codes;
    };
    expect(await outcomes()).toEqual(await outcomes());
  });
});
