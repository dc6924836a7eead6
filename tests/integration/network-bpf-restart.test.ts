import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { type CompiledNetwork, openPacketFilter, removeFilters } from '@dsec/network';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { scratchDirectory } from './linux-support.ts';
import {
  type BpfWorld,
  codeOf,
  createBpfWorld,
  DEDICATED,
  filtered,
  filterOptions,
  inMs,
  missingForBpfWorld,
  OUTSIDE,
  opening,
  renewed,
  type TestSandbox,
  tcpOf,
} from './network-bpf-world.ts';

const scratch = scratchDirectory();
const missing = missingForBpfWorld();
const ROUNDS = process.env.DSEC_TEST_LONG === '1' ? 100 : 8;

/** An edge that does nothing but change: it opens the filter, then adds, rules and removes for ever. */
const EDGE = `
  import { openPacketFilter } from '@dsec/network';
  const { sandboxes, ...options } = JSON.parse(process.env.OPTIONS);
  console.log('begins');
  const filter = openPacketFilter({ ...options, namespaceFd: 3 });
  for (let version = 1; ; version += 1) {
    for (const { cgroupId, ...sandbox } of sandboxes) {
      filter.addSandbox({ ...sandbox, cgroupId: BigInt(cgroupId) });
      const addresses = [{ prefix: '198.51.100.0/24', ports: [[version % 60000, 65535]] }];
      filter.setRules(sandbox.slot, { version, addresses, names: [] });
    }
    filter.removeUnclaimed();
    for (const { slot } of sandboxes) filter.removeSandbox(slot);
  }`;

const edgeOptions = ({ sandboxes, bpfDirectory, cgroup }: BpfWorld) => ({
  ...filterOptions(bpfDirectory, cgroup),
  sandboxes: sandboxes.map((sandbox) => {
    const { cgroupId, ...rest } = filtered(sandbox);
    return { ...rest, cgroupId: String(cgroupId) };
  }),
});

if (missing !== undefined) console.log(`packet filter not tested: ${missing}`);

describe.skipIf(missing !== undefined)(
  'the packet filter of a node (needs root, mounts of its own, ip, the objects)',
  () => {
    let world: BpfWorld;
    let one: TestSandbox;
    let two: TestSandbox;

    beforeAll(async () => {
      world = await createBpfWorld(scratch, 2);
      const [first, second] = world.sandboxes;
      if (first === undefined || second === undefined) throw new Error('no sandboxes');
      [one, two] = [first, second];
      for (const port of [443, 8443]) await world.outside.run(`serve_tcp('${OUTSIDE}', ${port})`);
    });
    afterAll(() => world?.close());

    const renew = (sandbox: TestSandbox, network: CompiledNetwork, generation = 1) =>
      renewed(world, sandbox, network, generation);

    describe('a restarted edge', () => {
      test('finds what it left: flows go on all the while, with the same rules', async () => {
        renew(one, opening(3, [443]));
        renew(two, opening(1, [443]));
        await one.run(`keep('over', '${OUTSIDE}', 443)`);
        world.filter.close();
        expect(await one.run(`talk('over', 'without an edge')`)).toBe('answer');
        expect(await tcpOf(one, 8443)).toBe('EPERM');
        const filter = world.reopen();
        expect(await one.run(`talk('over', 'before it is claimed')`)).toBe('answer');
        expect(filter.addSandbox(filtered(one))).toBe(true);
        expect(filter.removeUnclaimed()).toBe(1);
        expect(await one.run(`talk('over', 'claimed')`)).toBe('answer');
        expect(await tcpOf(two, 443)).toBe('EPERM');
        expect(codeOf(() => filter.setRules(one.slot, opening(2, [])))).toBe('conflict');
        filter.setRules(one.slot, opening(3, [443]));
        expect(await one.run(`talk('over', 'rules said again')`)).toBe('answer');
      });

      test('keeps the addresses of dedicated names until the rules change', async () => {
        let filter = renew(one, opening(1, [], [DEDICATED]));
        const { pattern, ports } = DEDICATED;
        const answer = { address: OUTSIDE, pattern, ports, expiresMs: inMs(60_000) };
        filter.addDnsAddresses(one.slot, 1, [answer]);
        await one.run(`keep('name', '${OUTSIDE}', 443)`);
        filter = world.reopen();
        filter.addSandbox(filtered(one));
        filter.setRules(one.slot, opening(1, [], [DEDICATED]));
        expect(await one.run(`talk('name', 'still open')`)).toBe('answer');
        filter.setRules(one.slot, opening(2, [], [DEDICATED]));
        expect(await tcpOf(one, 443)).toBe('EPERM');
      });

      test('makes anew what is not whole', async () => {
        renew(one, opening(1, [443]));
        const [name = ''] = readdirSync(world.bpfDirectory).filter((n) => n.startsWith('filter-'));
        rmSync(join(world.bpfDirectory, name, 'maps', 'slots'));
        const filter = world.reopen();
        expect(filter.addSandbox(filtered(one))).toBe(false);
        expect(await tcpOf(one, 443)).toBe('EPERM');
        filter.setRules(one.slot, opening(1, [443]));
        expect(await tcpOf(one, 443)).toBe('answer');
      });

      test('killed at any moment, the next one begins where it can', async () => {
        removeFilters(world.bpfDirectory);
        for (let round = 0; round < ROUNDS; round += 1) {
          const edge = spawn(process.execPath, ['--input-type=module', '-e', EDGE], {
            cwd: join(import.meta.dirname, '../../packages/network'),
            env: { ...process.env, OPTIONS: JSON.stringify(edgeOptions(world)) },
            stdio: ['ignore', 'pipe', 'inherit', world.namespaceFd],
          });
          await once(edge.stdout as Readable, 'data');
          await new Promise((resolve) => setTimeout(resolve, (round * 37) % 120));
          edge.kill('SIGKILL');
          await once(edge, 'exit');
        }
        const filter = world.reopen();
        filter.addSandbox(filtered(one));
        filter.setRules(one.slot, opening(100_000, [443]));
        filter.removeUnclaimed();
        expect(await tcpOf(one, 443)).toBe('answer');
        expect(await tcpOf(one, 8443)).toBe('EPERM');
        expect(await tcpOf(two, 443)).toBe('EPERM');
      });

      test('of another build takes over without a gap, and leaves nothing of the old one', async () => {
        renew(one, opening(1, [443]));
        await one.run(`keep('build', '${OUTSIDE}', 443)`);
        const filters = () =>
          readdirSync(world.bpfDirectory).filter((n) => n.startsWith('filter-'));
        const old = filters();
        const options = { ...filterOptions(world.bpfDirectory, world.cgroup), slotsMax: 64 };
        const next = openPacketFilter({ ...options, namespaceFd: world.namespaceFd });
        try {
          expect(next.addSandbox(filtered(one))).toBe(false);
          next.setRules(one.slot, opening(1, [443]));
          expect(await one.run(`talk('build', 'under both')`)).toBe('answer');
          next.removeUnclaimed();
          expect(await one.run(`talk('build', 'under the new one')`)).toBe('answer');
          expect(await tcpOf(one, 8443)).toBe('EPERM');
          const left = filters();
          expect(left).toHaveLength(1);
          expect(old).not.toEqual(left);
        } finally {
          next.removeSandbox(one.slot);
          next.close();
          removeFilters(world.bpfDirectory);
          world.reopen();
        }
      });
    });

    test('1,000 sandboxes with 10 rules each', () => {
      removeFilters(world.bpfDirectory);
      const opened = process.hrtime.bigint();
      const filter = world.reopen();
      const openMs = Number(process.hrtime.bigint() - opened) / 1e6;
      console.log(`filter for 1,100 slots, from nothing: ${openMs.toFixed(0)} ms`);
      const addresses = Array.from({ length: 10 }, (_, i) => ({
        prefix: `203.0.113.${i}/32`,
        ports: [[443, 443] as const],
      }));
      const took = {
        add: [] as number[],
        set: [] as number[],
        change: [] as number[],
        remove: [] as number[],
      };
      const timed = (into: number[], work: () => void) => {
        const start = process.hrtime.bigint();
        work();
        into.push(Number(process.hrtime.bigint() - start) / 1000);
      };
      const slots = Array.from({ length: 1_000 }, (_, i) => 50 + i);
      for (const slot of slots) {
        const sandbox = { slot, generation: 1, cgroupId: BigInt(2 ** 40 + slot) };
        timed(took.add, () => filter.addSandbox(sandbox));
      }
      for (const slot of slots)
        timed(took.set, () => filter.setRules(slot, { version: 1, addresses, names: [] }));
      for (const slot of slots)
        timed(took.change, () => filter.setRules(slot, { version: 2, addresses, names: [] }));
      for (const slot of slots) timed(took.remove, () => filter.removeSandbox(slot));
      for (const [what, us] of Object.entries(took)) {
        us.sort((a, b) => a - b);
        const at = (part: number) => us[Math.floor((us.length - 1) * part)]?.toFixed(0);
        console.log(
          `1,000 × 10 rules, ${what}: median ${at(0.5)} µs, 99 % ${at(0.99)} µs, worst ${at(1)} µs`,
        );
      }
    });

    test('who may not use bpf(2) is told so, and why', () => {
      const script = `
      import { bpfRefusal } from '@dsec/linux';
      const refusal = bpfRefusal();
      console.log(refusal.code + ': ' + refusal.message);`;
      const result = spawnSync(
        'setpriv',
        [
          '--bounding-set=-all',
          '--inh-caps=-all',
          process.execPath,
          '--input-type=module',
          '-e',
          script,
        ],
        {
          cwd: join(import.meta.dirname, '../../packages/network'),
          encoding: 'utf8',
        },
      );
      expect(result.stderr + result.stdout).toBe(
        'unsupported: no packet filter: bpf(2) needs root, or CAP_BPF and CAP_NET_ADMIN (EPERM)\n',
      );
    });
  },
);
