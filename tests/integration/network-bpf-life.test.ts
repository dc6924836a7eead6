import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type CompiledNetwork,
  type DenialEvent,
  type NameRule,
  openPacketFilter,
  type PacketFilter,
  removeFilters,
} from '@dsec/network';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inPrivateMountNamespace, isRoot, scratchDirectory } from './linux-support.ts';
import {
  type BpfWorld,
  createBpfWorld,
  filtered,
  filterOptions,
  missingForBpfWorld,
  OUTSIDE,
  OUTSIDE6,
  type TestSandbox,
} from './network-bpf-world.ts';

const scratch = scratchDirectory();
const missing =
  isRoot && inPrivateMountNamespace()
    ? missingForBpfWorld()
    : 'not root in a mount namespace of its own';
if (missing !== undefined) console.log(`packet filter not tested: ${missing}`);

const DEDICATED: NameRule = { pattern: 'db.example.org', ports: [[443, 443]], isDedicated: true };

/** Rules that open these ports of the host outside. */
function opening(
  version: number,
  ports: readonly number[],
  names: readonly NameRule[] = [],
): CompiledNetwork {
  const ranges = ports.map((port): [number, number] => [port, port]);
  const addresses = ports.length === 0 ? [] : [{ prefix: `${OUTSIDE}/32`, ports: ranges }];
  return { version, addresses, names };
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const inMs = (ms: number) => Number(process.hrtime.bigint() / 1_000_000n) + ms;
const codeOf = (work: () => unknown) => {
  try {
    work();
    return undefined;
  } catch (thrown) {
    return (thrown as { code: string }).code;
  }
};

describe.skipIf(missing !== undefined)('rules over time', () => {
  let world: BpfWorld;
  let one: TestSandbox;
  let two: TestSandbox;

  beforeAll(async () => {
    world = await createBpfWorld(scratch, 2);
    const [first, second] = world.sandboxes;
    if (first === undefined || second === undefined) throw new Error('no sandboxes');
    [one, two] = [first, second];
    for (const port of [443, 8443]) {
      await world.outside.run(`serve_tcp('${OUTSIDE}', ${port})`);
      await world.outside.run(`serve_udp('${OUTSIDE}', ${port})`);
    }
    await world.outside.run(`serve_tcp('${OUTSIDE6}', 443)`);
  });
  afterAll(() => world?.close());

  /** A sandbox as a new one, with rules. */
  function renew(sandbox: TestSandbox, network: CompiledNetwork, generation = 1): PacketFilter {
    world.filter.removeSandbox(sandbox.slot);
    world.filter.addSandbox(filtered(sandbox, generation));
    world.filter.setRules(sandbox.slot, network);
    return world.filter;
  }
  const tcp = (sandbox: TestSandbox, port: number) => sandbox.run(`tcp('${OUTSIDE}', ${port})`);
  const hasArrived = (text: string) => world.outside.run(`'${text}' in received`);

  describe('revocation', () => {
    test('a rule that is gone stops its open flows and no others', async () => {
      const filter = renew(one, opening(1, [443, 8443]));
      expect(await one.run(`keep('goes', '${OUTSIDE}', 443)`)).toBe('answer');
      expect(await one.run(`keep('stays', '${OUTSIDE}', 8443)`)).toBe('answer');
      filter.setRules(one.slot, opening(2, [8443]));
      expect(await one.run(`talk('goes', 'after the rule went')`)).toBe('silence');
      expect(await one.run(`talk('stays', 'its rule stayed')`)).toBe('answer');
      expect(await hasArrived('after the rule went')).toBe(false);
      expect(await hasArrived('its rule stayed')).toBe(true);
      expect(filter.counters(one.slot).packetsDeniedOut).toBeGreaterThan(0);
    });

    test('what the other side still sends does not come in', async () => {
      const filter = renew(one, {
        ...opening(1, []),
        addresses: [{ prefix: `${OUTSIDE}/32`, ports: [] }],
      });
      const port = await one.run(`listen_udp('late')`);
      await one.run(`kept['late'].sendto(b'hello', ('${OUTSIDE}', 443))`);
      const send = (text: string) =>
        world.outside.run(`kept['udp 443'].sendto(b'${text}', ('${one.address}', ${port}))`);
      const heard = `attempt(lambda: kept['late'].recv(100).decode())`;
      expect(await one.run(heard)).toBe('answer');
      await send('in time');
      expect(await one.run(heard)).toBe('in time');
      filter.setRules(one.slot, opening(3, []));
      await send('too late');
      expect(await one.run(heard)).toBe('silence');
      expect(filter.counters(one.slot).packetsDeniedIn).toBeGreaterThan(0);
    });

    test('a removed sandbox reaches nothing, and the next one of its slot has none of its rules', async () => {
      const filter = renew(one, opening(1, [443]));
      expect(await tcp(one, 443)).toBe('answer');
      filter.removeSandbox(one.slot);
      expect(await tcp(one, 443)).toBe('EPERM');
      filter.addSandbox(filtered(one, 2));
      expect(await tcp(one, 443)).toBe('EPERM');
      expect(filter.counters(one.slot).callsDenied).toBe(1);
    });

    test('a generation that is over is nobody', async () => {
      const filter = renew(one, opening(1, [443]));
      filter.removeSandbox(one.slot);
      // Another sandbox gets the slot, while a process is still in the old one's cgroup.
      filter.addSandbox({ slot: one.slot, generation: 2, cgroupId: 1n });
      filter.setRules(one.slot, opening(1, [443]));
      expect(await tcp(one, 443)).toBe('EPERM');
    });
  });

  describe('versions', () => {
    test('older rules and older answers are refused, whatever order they come in', () => {
      const filter = renew(one, opening(5, [443]));
      const address = {
        address: '198.51.100.9',
        pattern: 'x.example',
        ports: [],
        expiresMs: inMs(1000),
      };
      expect(codeOf(() => filter.setRules(one.slot, opening(4, [8443])))).toBe('conflict');
      expect(codeOf(() => filter.addDnsAddresses(one.slot, 4, [address]))).toBe('conflict');
      expect(codeOf(() => filter.addDnsAddresses(one.slot, 6, [address]))).toBe('conflict');
      expect(codeOf(() => filter.addDnsAddresses(one.slot, 5, [address]))).toBe(undefined);
      expect(codeOf(() => filter.setRules(one.slot, opening(5, [443])))).toBe(undefined);
    });

    test('changes while a sandbox connects never let it see half of the rules', async () => {
      const filter = renew(one, opening(1, [443]));
      for (let version = 2; version < 40; version += 1) {
        const attempt = tcp(one, 443);
        // Open in each of them, by other entries.
        const narrow = version % 2 === 0;
        const addresses = narrow
          ? opening(0, [443]).addresses
          : [{ prefix: '198.51.100.0/24', ports: [] }];
        filter.setRules(one.slot, { version, addresses, names: [] });
        expect(await attempt).toBe('answer');
      }
      expect(filter.counters(one.slot).callsDenied).toBe(0);
    });

    test('rules that cannot be are refused whole, and those in force stay', async () => {
      const filter = renew(one, opening(1, [443]));
      const many = Array.from({ length: 33 }, (_, i) => ({
        prefix: `203.0.113.${i}/32`,
        ports: [],
      }));
      const spread = Array.from({ length: 9 }, (_, i): [number, number] => [i * 2, i * 2]);
      for (const [addresses, code] of [
        [many, 'too-large'],
        [[{ prefix: '203.0.113.1/24', ports: [] }], 'invalid-argument'],
        [[{ prefix: '203.0.113.1/32', ports: spread }], 'invalid-argument'],
      ] as const) {
        expect(codeOf(() => filter.setRules(one.slot, { version: 2, addresses, names: [] }))).toBe(
          code,
        );
      }
      expect(await tcp(one, 443)).toBe('answer');
    });
  });

  describe('addresses of dedicated names', () => {
    const answer = (ms: number, address = OUTSIDE) => ({
      address,
      pattern: DEDICATED.pattern,
      ports: DEDICATED.ports,
      expiresMs: inMs(ms),
    });

    test('open until they expire; what began in time goes on', async () => {
      const filter = renew(one, opening(1, [], [DEDICATED]));
      expect(await tcp(one, 443)).toBe('EPERM');
      filter.addDnsAddresses(one.slot, 1, [answer(400)]);
      expect(await one.run(`keep('dns', '${OUTSIDE}', 443)`)).toBe('answer');
      expect(await tcp(one, 8443)).toBe('EPERM');
      await wait(450);
      expect(await tcp(one, 443)).toBe('EPERM');
      expect(await one.run(`talk('dns', 'after its time')`)).toBe('answer');
      // The name is still there: its flows survive a change of other rules.
      filter.setRules(one.slot, opening(2, [8443], [DEDICATED]));
      expect(await one.run(`talk('dns', 'after a change')`)).toBe('answer');
      filter.setRules(one.slot, opening(3, [8443]));
      expect(await one.run(`talk('dns', 'after the name went')`)).toBe('silence');
    });

    test('over IPv6 too, and not before the sandbox has rules', async () => {
      const filter = renew(one, opening(1, [], [DEDICATED]));
      filter.addDnsAddresses(one.slot, 1, [answer(5_000, OUTSIDE6)]);
      expect(await one.run(`tcp('${OUTSIDE6}', 443)`)).toBe('answer');
      filter.removeSandbox(one.slot);
      filter.addSandbox(filtered(one));
      expect(codeOf(() => filter.addDnsAddresses(one.slot, 0, [answer(5_000)]))).toBe('conflict');
    });

    test('take nothing away from a rule for the same address', async () => {
      const filter = renew(one, opening(1, [8443], [DEDICATED]));
      filter.addDnsAddresses(one.slot, 1, [answer(0)]);
      expect(await tcp(one, 8443)).toBe('answer');
      expect(await tcp(one, 443)).toBe('EPERM');
    });

    test('are limited; those whose time is over make room', () => {
      const filter = renew(one, opening(1, [], [DEDICATED]));
      const fill = (from: number, count: number, ms: number) =>
        filter.addDnsAddresses(
          one.slot,
          1,
          Array.from({ length: count }, (_, i) => answer(ms, `203.0.113.${from + i}`)),
        );
      fill(0, 2, -1);
      fill(10, 30, 60_000);
      fill(50, 2, 60_000);
      expect(codeOf(() => fill(60, 1, 60_000))).toBe('quota-exceeded');
    });
  });

  test('a flood of denials hides nobody else’s, and none goes uncounted', async () => {
    const filter = renew(one, opening(1, []), 9);
    renew(two, opening(1, []), 9);
    const events: DenialEvent[] = [];
    const stop = filter.onDenied((event) => events.push(event));
    await one.run(`[tcp('${OUTSIDE}', 1 + i % 60000) for i in range(20000)] and None`);
    expect(await tcp(two, 4321)).toBe('EPERM');
    await expect.poll(() => events.some(({ slot }) => slot === two.slot)).toBe(true);
    stop();
    const ofOne = events.filter(({ slot, generation }) => slot === one.slot && generation === 9);
    const flood = ofOne.filter(({ hook }) => hook === 'connect');
    // Packets of flows that earlier tests cut are denied meanwhile, and have a quota of their own.
    const { callsDenied, packetsDeniedOut, eventsLost } = filter.counters(one.slot);
    expect(callsDenied).toBe(20_000);
    expect(ofOne.length + eventsLost).toBeLessThanOrEqual(callsDenied + packetsDeniedOut);
    expect(ofOne.length + eventsLost).toBeGreaterThanOrEqual(callsDenied);
    expect(flood.length).toBeLessThan(1_000);
    expect(filter.counters(two.slot)).toMatchObject({ callsDenied: 1, eventsLost: 0 });
  });

  describe('a restarted edge', () => {
    test('finds what it left: flows go on all the while, with the same rules', async () => {
      renew(one, opening(3, [443]));
      renew(two, opening(1, [443]));
      await one.run(`keep('over', '${OUTSIDE}', 443)`);
      world.filter.close();
      expect(await one.run(`talk('over', 'without an edge')`)).toBe('answer');
      expect(await tcp(one, 8443)).toBe('EPERM');
      const filter = world.reopen();
      expect(await one.run(`talk('over', 'before it is claimed')`)).toBe('answer');
      expect(filter.addSandbox(filtered(one))).toBe(true);
      expect(filter.removeUnclaimed()).toBe(1);
      expect(await one.run(`talk('over', 'claimed')`)).toBe('answer');
      expect(await tcp(two, 443)).toBe('EPERM');
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
      expect(await tcp(one, 443)).toBe('EPERM');
    });

    test('of another build takes over without a gap, and leaves nothing of the old one', async () => {
      renew(one, opening(1, [443]));
      await one.run(`keep('build', '${OUTSIDE}', 443)`);
      const filters = () => readdirSync(world.bpfDirectory).filter((n) => n.startsWith('filter-'));
      const old = filters();
      const options = { ...filterOptions(world.bpfDirectory, world.cgroup), slotsMax: 64 };
      const next = openPacketFilter({ ...options, namespaceFd: world.namespaceFd });
      try {
        expect(next.addSandbox(filtered(one))).toBe(false);
        next.setRules(one.slot, opening(1, [443]));
        expect(await one.run(`talk('build', 'under both')`)).toBe('answer');
        next.removeUnclaimed();
        expect(await one.run(`talk('build', 'under the new one')`)).toBe('answer');
        expect(await tcp(one, 8443)).toBe('EPERM');
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
});
