import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { WINDOW_BYTES_MAX, WINDOW_BYTES_MIN } from '@dsec/protocol';
import { DsecError, MIB } from '@dsec/std';
import type { SandboxPlan } from '../backend.ts';
import type { Bench, ConformanceTest } from './bench.ts';
import { createFollower, execFields, type Follower, type RunResult, run } from './command-run.ts';

export const streamCases: Readonly<Record<string, ConformanceTest>> = {
  'much output without a newline, every byte in its place': async (bench) => {
    const { link } = await bench.start();
    const bytes = (bench.isLong ? 100 : 8) * MIB;
    const hash = createHash('sha256').update(Buffer.alloc(bytes, 'x')).digest('hex');
    for (const windowBytes of [WINDOW_BYTES_MIN, 100_001, WINDOW_BYTES_MAX]) {
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
