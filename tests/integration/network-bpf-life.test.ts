import type { CompiledNetwork, DenialEvent } from '@dsec/network';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { scratchDirectory } from './linux-support.ts';
import {
  type BpfWorld,
  codeOf,
  configure,
  createBpfWorld,
  DEDICATED,
  filtered,
  inMs,
  inNamespace,
  missingForBpfWorld,
  OUTSIDE,
  OUTSIDE6,
  opening,
  renewed,
  type TestSandbox,
  tcpOf,
} from './network-bpf-world.ts';

const scratch = scratchDirectory();
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const missing = missingForBpfWorld();
if (missing !== undefined) console.log(`packet filter not tested: ${missing}`);

describe.skipIf(missing !== undefined)(
  'rules over time (needs root, mounts of its own, ip, the objects)',
  () => {
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

    const renew = (sandbox: TestSandbox, network: CompiledNetwork, generation = 1) =>
      renewed(world, sandbox, network, generation);
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

      test('a removed sandbox reaches nothing; the next one of its slot has none of its rules', async () => {
        const filter = renew(one, opening(1, [443]));
        expect(await tcpOf(one, 443)).toBe('answer');
        filter.removeSandbox(one.slot);
        expect(await tcpOf(one, 443)).toBe('EPERM');
        filter.addSandbox(filtered(one, 2));
        expect(await tcpOf(one, 443)).toBe('EPERM');
        expect(filter.counters(one.slot).callsDenied).toBe(1);
      });

      test('a device that vanished is let go of, and another one takes its place', () => {
        const { filter, router } = world;
        const make = (name: string): number => {
          configure(router.pid, [`link add ${name} type veth peer name ${name}p`]);
          return Number.parseInt(inNamespace(router.pid, ['ip', '-o', 'link', 'show', name]), 10);
        };
        const add = (index: number, generation: number) =>
          filter.addSandbox({
            slot: 40,
            generation,
            cgroupId: 40n,
            device: { index, address: '100.96.0.40' },
          });
        add(make('gone'), 1);
        configure(router.pid, ['link del gone']);
        filter.removeSandbox(40);
        add(make('next'), 2);
        world.reopen();
        configure(router.pid, ['link del next']);
        // The edge died, and so did the device: it comes back under another number.
        expect(
          world.filter.addSandbox({
            slot: 40,
            generation: 2,
            cgroupId: 40n,
            device: { index: make('again'), address: '100.96.0.40' },
          }),
        ).toBe(true);
        world.filter.removeSandbox(40);
        configure(router.pid, ['link del again']);
      });

      test('a generation that is over is nobody', async () => {
        const filter = renew(one, opening(1, [443]));
        filter.removeSandbox(one.slot);
        // Another sandbox gets the slot, while a process is still in the old one's cgroup.
        filter.addSandbox({ slot: one.slot, generation: 2, cgroupId: 1n });
        filter.setRules(one.slot, opening(1, [443]));
        expect(await tcpOf(one, 443)).toBe('EPERM');
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
          const attempt = tcpOf(one, 443);
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
          expect(
            codeOf(() => filter.setRules(one.slot, { version: 2, addresses, names: [] })),
          ).toBe(code);
        }
        expect(await tcpOf(one, 443)).toBe('answer');
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
        expect(await tcpOf(one, 443)).toBe('EPERM');
        filter.addDnsAddresses(one.slot, 1, [answer(400)]);
        expect(await one.run(`keep('dns', '${OUTSIDE}', 443)`)).toBe('answer');
        expect(await tcpOf(one, 8443)).toBe('EPERM');
        await wait(450);
        expect(await tcpOf(one, 443)).toBe('EPERM');
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
        expect(await tcpOf(one, 8443)).toBe('answer');
        expect(await tcpOf(one, 443)).toBe('EPERM');
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
      expect(await tcpOf(two, 4321)).toBe('EPERM');
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
  },
);
