import assert from 'node:assert/strict';
import type { PlannedPolicy, SessionPolicy } from '../backend.ts';
import { type ConformanceTest, refused } from './bench.ts';
import { createFollower, execFields, run } from './command-run.ts';

const sessions: SessionPolicy = { capabilities: 2 ** 32 - 1, denials: [] };
const policy: PlannedPolicy = { mounts: [], sessions };

/** A backend without policies refuses them: that is all that is asked of it. */
export const policyCases: Readonly<Record<string, ConformanceTest>> = {
  'a policy is enforced, or the plan is refused': async (bench) => {
    const plan = bench.plan({ policy });
    if (bench.backend.policies === undefined) {
      await refused('unsupported', bench.backend.create(plan));
      assert.deepEqual(await bench.harness.leftovers(), []);
      return;
    }
    await bench.backend.create(plan);
    const link = await bench.connect(plan);
    assert.equal((await run(link, bench.commands.exit(0))).exitCode, 0);
  },

  'another policy: what runs is ended, and what starts then has the new rules': async (bench) => {
    const { policies } = bench.backend;
    if (policies === undefined) return;
    const { key, link } = await bench.start({ policy });
    await link.request('session-rules', policies.rulesOf(sessions));
    const fields = execFields(bench.commands.sleep(60_000));
    const follower = createFollower(fields);
    const stream = follower.open(link);
    await stream.send('exec-start', fields);
    assert.equal((await stream.receive()).type, 'exec-started');
    await link.request('quiesce', {});
    const { signal, endedByPolicy } = await follower.toEnd(stream);
    assert.deepEqual([signal, endedByPolicy], [9, true]);
    await refused('unavailable', run(link, bench.commands.exit(0)));
    await policies.apply(key, { mounts: [] });
    await link.request('session-rules', policies.rulesOf(sessions));
    assert.equal((await run(link, bench.commands.exit(3))).exitCode, 3);
  },

  'a policy of what does not run is refused': async (bench) => {
    const { policies } = bench.backend;
    if (policies === undefined) return;
    const { key } = bench.plan();
    await refused('not-found', policies.apply(key, policy));
  },
};
