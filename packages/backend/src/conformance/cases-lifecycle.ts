import assert from 'node:assert/strict';
import type { SandboxId } from '@dsec/std';
import { type ConformanceTest, refused } from './bench.ts';
import { createFollower, execFields, run } from './command-run.ts';

export const lifecycleCases: Readonly<Record<string, ConformanceTest>> = {
  'create is ready: the agent says hello and runs a command': async (bench) => {
    const { link, runtime } = await bench.start();
    assert.equal((await run(link, bench.commands.exit(0))).exitCode, 0);
    assert.ok(JSON.stringify(runtime.record).length <= 16 * 1024);
    assert.notEqual((await bench.harness.leftovers()).length, 0);
  },

  'what is reported is what a sandbox gets': async (bench) => {
    const report = await bench.backend.probe();
    assert.equal(report.unavailable, undefined);
    assert.equal(report.kind, bench.backend.kind);
    const { runtime } = await bench.start();
    assert.ok(report.upperDrivers.includes(runtime.upperDriver));
    const names = runtime.protections.map((protection) => protection.name);
    assert.deepEqual(
      names,
      report.protections.map((protection) => protection.name),
    );
  },

  'a protection that nobody has is unsupported, and nothing is made': async (bench) => {
    const plan = bench.plan({ requireProtections: ['no-such-protection'] });
    await refused('unsupported', bench.backend.create(plan));
    assert.deepEqual(await bench.harness.leftovers(), []);
  },

  'a key that runs is not created twice': async (bench) => {
    const { plan, link } = await bench.start();
    const other = bench.plan({ key: plan.key });
    await refused('already-exists', bench.backend.create(other));
    assert.equal((await run(link, bench.commands.exit(3))).exitCode, 3);
  },

  'the next generation of an id is a sandbox of its own': async (bench) => {
    const { key } = await bench.start();
    const next = await bench.start({ key: { id: key.id, generation: key.generation + 1 } });
    await bench.backend.stop(key);
    assert.equal((await run(next.link, bench.commands.exit(4))).exitCode, 4);
  },

  'stop leaves nothing, tells nobody, and can be repeated': async (bench) => {
    const { key, link } = await bench.start();
    await run(link, bench.commands.holdOutputs(0));
    await Promise.all([bench.backend.stop(key), bench.backend.stop(key)]);
    await bench.backend.stop(key);
    assert.deepEqual(await bench.harness.leftovers(), []);
    await link.closed;
    await refused(['not-found', 'unavailable'], bench.backend.dial(key));
    assert.deepEqual(bench.exits, []);
  },

  'a key that is not known': async (bench) => {
    const key = { id: 'sb-a-b-aaaaaaaaaaaaaaaa' as SandboxId, generation: 1 };
    const { backend } = bench;
    await backend.stop(key);
    await refused(['not-found', 'unavailable'], backend.dial(key));
    await refused('not-found', backend.stats(key));
    await refused('not-found', backend.freeze(key));
    await refused('not-found', backend.thaw(key));
    await refused('not-found', backend.pause(key));
    await refused('not-found', backend.resume(key));
    await refused('not-found', backend.update(key, { pidsMax: 100 }));
  },

  'create that is given up at any moment leaves nothing': async (bench) => {
    const rounds = bench.isLong ? 200 : 12;
    for (let round = 0; round < rounds; round += 1) {
      const plan = bench.plan();
      const giveUp = new AbortController();
      const creating = bench.backend.create(plan, giveUp.signal);
      const delayMs = bench.random.int(20);
      const timer = setTimeout(() => giveUp.abort(), delayMs);
      const outcome = await creating.then(
        () => 'made',
        (error) => (error.details?.leftover === true ? 'leftover' : 'given up'),
      );
      clearTimeout(timer);
      if (outcome !== 'given up') await bench.backend.stop(plan.key);
      assert.deepEqual(await bench.harness.leftovers(), [], `given up after ${delayMs} ms`);
    }
  },

  'create that was given up before it began': async (bench) => {
    const plan = bench.plan();
    await refused('cancelled', bench.backend.create(plan, AbortSignal.abort()));
    assert.deepEqual(await bench.harness.leftovers(), []);
  },

  'stop during create': async (bench) => {
    const plan = bench.plan();
    const creating = bench.backend.create(plan).catch(() => undefined);
    await bench.backend.stop(plan.key);
    await creating;
    await bench.backend.stop(plan.key);
    assert.deepEqual(await bench.harness.leftovers(), []);
  },

  'a slot serves again after stop, with nothing of the life before': async (bench) => {
    const first = await bench.start();
    const { slot } = first.plan;
    await run(first.link, bench.commands.manyNames('/tmp', 5));
    const before = await bench.backend.stats(first.key);
    await bench.backend.stop(first.key);
    const second = await bench.start({ slot });
    assert.equal((await run(second.link, bench.commands.exit(0))).exitCode, 0);
    const after = await bench.backend.stats(second.key);
    assert.ok(after.inodes < before.inodes, `${after.inodes} inodes, ${before.inodes} before`);
  },

  'many sandboxes at a time, each with its own': async (bench) => {
    const count = bench.isLong ? 100 : 8;
    const started = await Promise.all(Array.from({ length: count }, () => bench.start()));
    const codes = await Promise.all(
      started.map(async ({ link }, i) => (await run(link, bench.commands.exit(i))).exitCode),
    );
    assert.deepEqual(
      codes,
      started.map((_, i) => i),
    );
    await Promise.all(started.map(({ key }) => bench.backend.stop(key)));
    assert.deepEqual(await bench.harness.leftovers(), []);
  },

  'stats are those of the sandbox': async (bench) => {
    const { key, link } = await bench.start();
    const before = await bench.backend.stats(key);
    await run(link, bench.commands.manyNames('/tmp', 50));
    await run(link, bench.commands.holdOutputs(0));
    await bench.until(async () => (await bench.backend.stats(key)).pids > before.pids);
    const after = await bench.backend.stats(key);
    assert.ok(after.inodes >= before.inodes + 50, `${after.inodes} after ${before.inodes}`);
    assert.ok(after.cpuUs >= before.cpuUs);
    assert.ok(after.memoryBytes > 0 && after.memoryPeakBytes >= after.memoryBytes);
  },

  'two creates of one key at a time: one of them makes it': async (bench) => {
    const plan = bench.plan();
    const other = bench.plan({ key: plan.key });
    const results = await Promise.allSettled([
      bench.backend.create(plan),
      bench.backend.create(other),
    ]);
    const refusals = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason.code] : [],
    );
    assert.deepEqual(refusals, ['already-exists']);
    const link = await bench.connect(plan);
    assert.equal((await run(link, bench.commands.exit(2))).exitCode, 2);
  },

  'stop ends what heeds no signal': async (bench) => {
    const { key, link } = await bench.start();
    const fields = execFields(bench.commands.tree());
    const follower = createFollower(fields);
    const stream = follower.open(link);
    await stream.send('exec-start', fields);
    const ending = follower.toEnd(stream).catch(() => {});
    await bench.until(() => follower.text.includes('grown'));
    await bench.backend.stop(key);
    await ending;
    assert.deepEqual(await bench.harness.leftovers(), []);
  },

  'the limit on processes holds, and can be changed while it runs': async (bench) => {
    const { key, link } = await bench.start();
    const crowd = async () => {
      const commands = Array.from({ length: 30 }, () =>
        run(link, bench.commands.sleep(200)).then(
          ({ exitCode }) => exitCode === 0,
          () => false,
        ),
      );
      return (await Promise.all(commands)).filter((isDone) => !isDone).length;
    };
    await bench.backend.update(key, { pidsMax: 8 });
    assert.notEqual(await crowd(), 0);
    await bench.backend.update(key, { pidsMax: 512 });
    await bench.backend.update(key, {});
    assert.equal(await crowd(), 0);
  },
};
