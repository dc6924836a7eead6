import assert from 'node:assert/strict';
import type { SandboxClaim } from '../backend.ts';
import { type Bench, type ConformanceTest, refused, type Started } from './bench.ts';
import { createFollower, execFields, run, sha256 } from './command-run.ts';

/** An agent looks at its running clock each second, and counts up to 1.5 s of a freeze. */
const PAUSE_MS = 4500;

export const recoveryCases: Readonly<Record<string, ConformanceTest>> = {
  'the end of an agent is told once, with its reason': async (bench) => {
    const { key, link } = await bench.start();
    const other = await bench.start();
    await bench.harness.killAgent(key);
    await bench.until(() => bench.exits.length > 0);
    await link.closed;
    await refused(['state-conflict', 'not-found'], bench.backend.freeze(key));
    // The other one still runs, and by then a second report would have come.
    assert.equal((await run(other.link, bench.commands.exit(0))).exitCode, 0);
    await bench.backend.stop(key);
    assert.equal(bench.exits.length, 1);
    assert.deepEqual(bench.exits[0]?.key, key);
    assert.ok(['killed', 'agent'].includes(bench.exits[0]?.reason ?? ''));
    await refused(['unavailable', 'not-found', 'state-conflict'], bench.backend.dial(key));
  },

  'recover keeps what runs, with every byte of its commands': async (bench) => {
    const started = await bench.start();
    const { plan, link } = started;
    const input = bench.random.bytes(50_000);
    const fields = execFields(bench.commands.copyInput(), { input });
    const stream = createFollower(fields).open(link);
    await stream.send('exec-start', fields);
    assert.equal((await stream.receive()).type, 'exec-started');
    await reopen(bench, link);
    const report = await bench.backend.recover([claimOf(started)]);
    const found = { key: plan.key, running: true, frozen: false };
    assert.deepEqual(report, { sandboxes: [found], destroyed: [] });
    const next = await bench.connect(plan);
    const follower = createFollower(fields);
    const again = follower.open(next);
    await again.send('exec-start', fields);
    assert.equal((await follower.toEnd(again, input)).stdout.sha256, sha256(input));
  },

  'recover says what is frozen, and leaves it so': async (bench) => {
    const [frozen, paused, running] = [
      await bench.start(),
      await bench.start(),
      await bench.start(),
    ];
    await bench.backend.freeze(frozen.key);
    await bench.backend.pause(paused.key);
    const all = [frozen, paused, running];
    for (const { link } of all) link.close();
    await bench.reopen();
    const { sandboxes } = await bench.backend.recover(all.map(claimOf));
    const states = all.map(({ key }) => sandboxes.find((one) => one.key.id === key.id));
    assert.deepEqual(
      states.map((one) => one?.running === true && one.frozen),
      [true, true, false],
    );
    await bench.backend.thaw(frozen.key);
    const link = await bench.connect(frozen.plan);
    assert.equal((await run(link, bench.commands.exit(3))).exitCode, 3);
  },

  'what recover keeps is watched again': async (bench) => {
    const started = await bench.start();
    await reopen(bench, started.link);
    await bench.backend.recover([claimOf(started)]);
    await bench.harness.killAgent(started.key);
    await bench.until(() => bench.exits.length > 0);
    assert.deepEqual(
      bench.exits.map(({ key }) => key),
      [started.key],
    );
  },

  'recover says what has ended, and leaves nothing of it': async (bench) => {
    const started = await bench.start();
    await reopen(bench, started.link);
    await bench.harness.killAgent(started.key);
    const report = await bench.backend.recover([claimOf(started)]);
    const [recovery] = report.sandboxes;
    assert.deepEqual([recovery?.key, recovery?.running], [started.key, false]);
    assert.deepEqual(await bench.harness.leftovers(), []);
  },

  'recover destroys what nobody claims': async (bench) => {
    const kept = await bench.start();
    const unclaimed = await bench.start();
    await reopen(bench, kept.link);
    const report = await bench.backend.recover([claimOf(kept)]);
    assert.deepEqual(report.destroyed, [unclaimed.key]);
    const link = await bench.connect(kept.plan);
    assert.equal((await run(link, bench.commands.exit(2))).exitCode, 2);
    await refused(['not-found', 'unavailable'], bench.backend.dial(unclaimed.key));
  },

  'recover destroys what was being made': async (bench) => {
    const { plan, link, key } = await bench.start();
    await reopen(bench, link);
    const report = await bench.backend.recover([{ plan }]);
    const [recovery] = report.sandboxes;
    assert.deepEqual([recovery?.key, recovery?.running], [key, false]);
    assert.deepEqual(await bench.harness.leftovers(), []);
  },

  'recover of a claim of which nothing is there': async (bench) => {
    const started = await bench.start();
    await bench.backend.stop(started.key);
    await reopen(bench, started.link);
    const report = await bench.backend.recover([claimOf(started)]);
    const [recovery] = report.sandboxes;
    assert.deepEqual([recovery?.key, recovery?.running], [started.key, false]);
  },

  'frozen time is not running time': async (bench) => {
    const { key, link } = await bench.start();
    const timeoutMs = 4000;
    const fields = execFields(bench.commands.sleep(600_000), { timeoutMs });
    const follower = createFollower(fields);
    const stream = follower.open(link);
    await stream.send('exec-start', fields);
    const ending = follower.toEnd(stream);
    await link.ping();
    await bench.backend.freeze(key);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    await bench.backend.thaw(key);
    // The time while it was frozen is longer than its limit; it has not passed.
    assert.equal((await run(link, bench.commands.exit(8))).exitCode, 8);
    await stream.send('timeout', {});
    await link.ping();
    await stream.send('signal', { signal: 15, scope: 'leader' });
    const result = await ending;
    assert.deepEqual([result.timedOut, result.signal], [false, 15]);
    assert.ok(result.runningMs < timeoutMs, `${result.runningMs} ms`);
  },

  'pause and resume lose nothing': async (bench) => {
    const { key, link } = await bench.start();
    const input = bench.random.bytes(200_000);
    const copying = run(link, bench.commands.copyInput(), { input });
    await bench.backend.pause(key);
    await bench.backend.pause(key);
    await bench.backend.resume(key);
    await bench.backend.resume(key);
    assert.equal((await copying).stdout.sha256, sha256(input));
  },

  'a frozen sandbox can be stopped': async (bench) => {
    const { key, link } = await bench.start();
    await run(link, bench.commands.holdOutputs(0));
    await bench.backend.freeze(key);
    await bench.backend.stop(key);
    assert.deepEqual(await bench.harness.leftovers(), []);
  },
};

function claimOf({ plan, runtime }: Started): SandboxClaim {
  // As it comes out of a journal.
  return { plan, runtime: { ...runtime, record: JSON.parse(JSON.stringify(runtime.record)) } };
}

/** The connections of an edge that restarts are gone too. */
async function reopen(bench: Bench, link: Started['link']): Promise<void> {
  link.close();
  await bench.reopen();
}
