import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { WINDOW_BYTES_MAX, WINDOW_BYTES_MIN } from '@dsec/protocol';
import { DsecError, MIB } from '@dsec/std';
import type { SandboxPlan } from '../backend.ts';
import { type Bench, type ConformanceTest, refused } from './bench.ts';
import { createFollower, execFields, type Follower, type RunResult, run } from './command-run.ts';

export const streamCases: Readonly<Record<string, ConformanceTest>> = {
  '100 MiB without a newline, every byte in its place': async (bench) => {
    const { link } = await bench.start();
    const all = 100 * MIB;
    const some = (bench.isLong ? 100 : 8) * MIB;
    const rounds = [
      { windowBytes: WINDOW_BYTES_MIN, bytes: some },
      { windowBytes: 100_001, bytes: some },
      { windowBytes: WINDOW_BYTES_MAX, bytes: all },
    ];
    for (const { windowBytes, bytes } of rounds) {
      const hash = createHash('sha256').update(Buffer.alloc(bytes, 'x')).digest('hex');
      const result = await run(link, bench.commands.fill(bytes), { windowBytes });
      assert.deepEqual(
        [result.exitCode, result.stdoutBytes, result.stdout.sha256],
        [0, bytes, hash],
      );
    }
  },

  'a stream is whole over connections that are lost anywhere': async (bench) => {
    const { plan } = await bench.start();
    const last = bench.isLong ? 2_000_000 : 100_000;
    const rounds = bench.isLong ? 5 : 2;
    for (let round = 0; round < rounds; round += 1) {
      const fields = execFields(bench.commands.count(last), {
        windowBytes: WINDOW_BYTES_MIN + bench.random.int(WINDOW_BYTES_MIN),
      });
      const follower = createFollower(fields);
      const { result, losses } = await followThroughLosses(bench, plan, fields, follower);
      const wanted = createHash('sha256');
      for (let number = 1; number <= last; number += 1) wanted.update(`${number}\n`);
      assert.deepEqual([result.exitCode, result.stdout.sha256], [0, wanted.digest('hex')]);
      assert.ok(losses > 0, 'no connection was lost, so nothing was shown');
    }
  },

  'a host that comes back goes on at its offset, and what it has acknowledged is gone': async (
    bench,
  ) => {
    const { plan } = await bench.start();
    const last = 50_000;
    const fields = execFields(bench.commands.count(last), { windowBytes: WINDOW_BYTES_MIN });
    const follower = createFollower(fields);
    // More than a window has come when it is lost, so that some of it was acknowledged.
    const link = await bench.connect(plan, { cutAfterBytes: 2 * WINDOW_BYTES_MIN });
    const stream = follower.open(link);
    await stream.send('exec-start', fields);
    await refused(['unavailable', 'agent-lost'], follower.toEnd(stream));
    const next = await bench.connect(plan);
    const { execId } = fields;
    const again = { execId, stdoutOffset: 0, stderrOffset: 0 };
    await refused('output-lost', next.request('exec-attach', again));
    const { exitCode, stdout } = await follower.attach(next);
    const wanted = createHash('sha256');
    for (let number = 1; number <= last; number += 1) wanted.update(`${number}\n`);
    assert.deepEqual([exitCode, stdout.sha256], [0, wanted.digest('hex')]);
  },

  'a command that nobody reads waits, and goes on': async (bench) => {
    const { link } = await bench.start();
    const fields = execFields(bench.commands.fill(MIB), { windowBytes: WINDOW_BYTES_MIN });
    const follower = createFollower(fields);
    const stream = follower.open(link);
    await stream.send('exec-start', fields);
    for (let i = 0; i < 5; i += 1) await link.ping();
    assert.equal((await run(link, bench.commands.exit(1))).exitCode, 1);
    assert.equal((await follower.toEnd(stream)).stdout.bytes, MIB);
  },
};

/** Reads a command to its end over connections of which each but the last is lost after some bytes. */
async function followThroughLosses(
  bench: Bench,
  plan: SandboxPlan,
  fields: ReturnType<typeof execFields>,
  follower: Follower,
): Promise<{ readonly result: RunResult; readonly losses: number }> {
  let isKnown = false;
  for (let losses = 0; ; losses += 1) {
    const cutAfterBytes = 200 + bench.random.int(200_000);
    try {
      const link = await bench.connect(plan, { cutAfterBytes });
      if (isKnown) {
        return { result: await follower.attach(link), losses };
      }
      const stream = follower.open(link);
      await stream.send('exec-start', fields);
      isKnown = true;
      return { result: await follower.toEnd(stream), losses };
    } catch (thrown) {
      if (!(thrown instanceof DsecError) || !isLoss(thrown)) throw thrown;
    }
  }
}

/** A command whose start was lost on the way is not known yet. */
function isLoss({ code }: DsecError): boolean {
  return ['unavailable', 'agent-lost', 'not-found'].includes(code);
}
