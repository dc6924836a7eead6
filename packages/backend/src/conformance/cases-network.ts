import assert from 'node:assert/strict';
import type { PlannedNetwork } from '../backend.ts';
import { type Bench, type ConformanceTest, refused } from './bench.ts';
import { run } from './command-run.ts';

const GATEWAY = '169.254.77.1';
const network: PlannedNetwork = { address: '100.111.255.1', gateway: GATEWAY };

/** Left out for a backend whose report has no `network`; the test that runs the suite says so. */
export const networkCases: Readonly<Record<string, ConformanceTest>> = {
  'a link is made, is nobody else’s, and goes with its sandbox': async (bench) => {
    await requireNetwork(bench);
    const first = await bench.start({ network });
    assert.equal((await run(first.link, bench.commands.exit(0))).exitCode, 0);
    const second = bench.plan({ network });
    await refused('conflict', bench.backend.create(second));
    await bench.backend.stop(first.key);
    assert.deepEqual(await bench.harness.leftovers(), []);
    const third = await bench.start({ network });
    assert.equal((await run(third.link, bench.commands.exit(0))).exitCode, 0);
  },

  'the router outlives the edge, and a link goes with what nobody claims': async (bench) => {
    await requireNetwork(bench);
    const before = await bench.backend.router?.(GATEWAY);
    await bench.start({ network });
    const backend = await bench.reopen();
    const after = await backend.router?.(GATEWAY);
    assert.equal(after?.namespacePath, before?.namespacePath);
    assert.equal(after?.cgroups?.parent, before?.cgroups?.parent);
    await backend.recover([]);
    assert.deepEqual(await bench.harness.leftovers(), []);
    await bench.start({ network });
  },

  'what is no address is refused, and nothing is made': async (bench) => {
    await requireNetwork(bench);
    for (const address of ['', '1.2.3', '1.2.3.256', '::1', '127.0.0.1', GATEWAY]) {
      const plan = bench.plan({ network: { address, gateway: GATEWAY } });
      await refused('invalid-argument', bench.backend.create(plan));
    }
    assert.deepEqual(await bench.harness.leftovers(), []);
  },
};

export const NETWORK_CASES = Object.keys(networkCases);

async function requireNetwork(bench: Bench): Promise<void> {
  const report = await bench.backend.probe();
  assert.ok(report.network !== undefined, 'the backend has no network: leave the case out');
  assert.equal(report.network.unavailable, undefined);
}
