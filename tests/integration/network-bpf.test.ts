import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AddressRule, DenialEvent, NameRule } from '@dsec/network';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { scratchDirectory } from './linux-support.ts';
import {
  type BpfWorld,
  configure,
  createBpfWorld,
  filtered,
  GATEWAY,
  missingForBpfWorld,
  OUTSIDE,
  OUTSIDE_OTHER,
  OUTSIDE6,
  type TestSandbox,
} from './network-bpf-world.ts';

const scratch = scratchDirectory();
const missing = missingForBpfWorld();
if (missing !== undefined) console.log(`packet filter not tested: ${missing}`);

const NARROW: readonly AddressRule[] = [
  { prefix: `${OUTSIDE}/32`, ports: [[443, 443]], protocol: 'tcp' },
  { prefix: '198.51.100.0/24', ports: [[5353, 5353]], protocol: 'udp' },
  { prefix: `${OUTSIDE6}/128`, ports: [[443, 443]] },
];
const WIDE: readonly AddressRule[] = [{ prefix: '0.0.0.0/0', ports: [] }];
const NAME: NameRule = { pattern: 'example.org', ports: [], isDedicated: false };

describe.skipIf(missing !== undefined)(
  'what a sandbox may send (needs root, mounts of its own, ip, the objects)',
  () => {
    let world: BpfWorld;
    /** Few rules and the proxies; all of IPv4 and no proxies; what nobody filters. */
    let narrow: TestSandbox;
    let wide: TestSandbox;
    let control: TestSandbox;
    const events: DenialEvent[] = [];

    beforeAll(async () => {
      world = await createBpfWorld(scratch, 2);
      const [first, second] = world.sandboxes;
      if (first === undefined || second === undefined) throw new Error('no sandboxes');
      [narrow, wide, control] = [first, second, world.control];
      world.filter.onDenied((event) => events.push(event));
      world.filter.addSandbox(filtered(narrow));
      world.filter.addSandbox(filtered(wide));
      world.filter.setRules(narrow.slot, { version: 7, addresses: NARROW, names: [NAME] });
      world.filter.setRules(wide.slot, { version: 1, addresses: WIDE, names: [] });
      for (const address of [OUTSIDE, OUTSIDE6, OUTSIDE_OTHER]) {
        for (const port of [443, 5353]) {
          await world.outside.run(`serve_tcp('${address}', ${port})`);
          await world.outside.run(`serve_udp('${address}', ${port})`);
        }
      }
      for (const port of [53, 80, 8000]) {
        await world.router.run(`serve_tcp('${GATEWAY}', ${port})`);
        await world.router.run(`serve_udp('${GATEWAY}', ${port})`);
      }
    });
    afterAll(() => world?.close());

    const denied = (sandbox: TestSandbox) => world.filter.counters(sandbox.slot);

    describe('calls', () => {
      // Who, what, and what becomes of it for a sandbox without a filter.
      test.each<[string, 'narrow' | 'wide', string, string]>([
        ['tcp, open', 'narrow', `tcp('${OUTSIDE}', 443)`, 'answer'],
        ['tcp, another port', 'narrow', `tcp('${OUTSIDE}', 5353)`, 'EPERM'],
        ['tcp, another address', 'narrow', `tcp('${OUTSIDE_OTHER}', 443)`, 'EPERM'],
        ['udp by the wider rule', 'narrow', `udp('${OUTSIDE}', 5353)`, 'answer'],
        ['udp, another port', 'narrow', `udp('${OUTSIDE}', 443)`, 'EPERM'],
        ['tcp mapped into IPv6, open', 'narrow', `tcp('::ffff:${OUTSIDE}', 443)`, 'answer'],
        ['tcp mapped into IPv6, another port', 'narrow', `tcp('::ffff:${OUTSIDE}', 5353)`, 'EPERM'],
        ['udp mapped into IPv6, open', 'narrow', `udp('::ffff:${OUTSIDE}', 5353)`, 'answer'],
        ['udp mapped into IPv6, another port', 'narrow', `udp('::ffff:${OUTSIDE}', 443)`, 'EPERM'],
        ['tcp over IPv6, open', 'narrow', `tcp('${OUTSIDE6}', 443)`, 'answer'],
        ['udp over IPv6, open', 'narrow', `udp('${OUTSIDE6}', 443)`, 'answer'],
        ['tcp over IPv6, another port', 'narrow', `tcp('${OUTSIDE6}', 5353)`, 'EPERM'],
        ['udp over IPv6, another port', 'narrow', `udp('${OUTSIDE6}', 5353)`, 'EPERM'],
        ['IPv6 without a rule for it', 'wide', `tcp('${OUTSIDE6}', 443)`, 'EPERM'],
        ['fast open, open', 'narrow', `fast_open('${OUTSIDE}', 443)`, 'answer'],
        ['fast open, another port', 'narrow', `fast_open('${OUTSIDE}', 5353)`, 'EPERM'],
        ['a name server at the gateway', 'narrow', `udp('${GATEWAY}', 53)`, 'answer'],
        ['a proxy at the gateway', 'narrow', `tcp('${GATEWAY}', 80)`, 'answer'],
        ['another port of the gateway', 'narrow', `tcp('${GATEWAY}', 8000)`, 'EPERM'],
        ['a proxy without rules about names', 'wide', `tcp('${GATEWAY}', 80)`, 'EPERM'],
        ['the gateway, where all is open', 'wide', `udp('${GATEWAY}', 53)`, 'EPERM'],
        ['everything is open', 'wide', `tcp('${OUTSIDE}', 5353)`, 'answer'],
        ['what no rule opens', 'wide', `tcp('${OUTSIDE_OTHER}', 443)`, 'EPERM'],
      ])('%s', async (_, who, expression, expected) => {
        expect(await control.run(expression)).toBe('answer');
        const sandbox = who === 'narrow' ? narrow : wide;
        const before = denied(sandbox);
        expect(await sandbox.run(expression)).toBe(expected);
        const calls = denied(sandbox).callsDenied - before.callsDenied;
        expect(calls).toBe(expected === 'EPERM' ? 1 : 0);
      });

      test.each<[string, string, string, string]>([
        ['a raw socket', 'made(socket.AF_INET, socket.SOCK_RAW, 1)', 'made', 'EPERM'],
        ['a raw socket of IPv6', 'made(socket.AF_INET6, socket.SOCK_RAW, 58)', 'made', 'EPERM'],
        ['whole packets', 'made(socket.AF_INET, socket.SOCK_RAW, 255)', 'made', 'EPERM'],
        ['multipath', 'made(socket.AF_INET, socket.SOCK_STREAM, MPTCP)', 'made', 'EPERM'],
        ['datagrams', 'made(socket.AF_INET6, socket.SOCK_DGRAM, 17)', 'made', 'made'],
        ['bind to any address', `bound(socket.AF_INET, '0.0.0.0')`, 'bound', 'bound'],
        ['bind to any address of IPv6', `bound(socket.AF_INET6, '::')`, 'bound', 'bound'],
        ['bind to the loopback', `bound(socket.AF_INET, '127.0.0.1')`, 'bound', 'bound'],
        [
          'bind to a foreign address',
          `bound(socket.AF_INET, '100.96.0.12', [(0, 15)])`,
          'bound',
          'EPERM',
        ],
        [
          'bind to a foreign address of IPv6',
          `bound(socket.AF_INET6, '2001:db8:77::c', [(41, 78)])`,
          'bound',
          'EPERM',
        ],
      ])('%s', async (_, expression, unfiltered, expected) => {
        expect(await control.run(expression)).toBe(unfiltered);
        expect(await narrow.run(expression)).toBe(expected);
      });

      test('bind to its own address, and a connection from it', async () => {
        expect(await narrow.run(`bound(socket.AF_INET, '${narrow.address}')`)).toBe('bound');
        const source = `('${narrow.address}', 0)`;
        expect(await narrow.run(`tcp('${OUTSIDE}', 443, source=${source})`)).toBe('answer');
      });

      test('its own loopback', async () => {
        for (const address of ['127.0.0.1', '::1', narrow.address]) {
          await narrow.run(`serve_tcp('${address}', 9000)`);
          expect(await narrow.run(`tcp('${address}', 9000)`)).toBe('answer');
        }
      });

      test('a cgroup inside the sandbox is the same sandbox', async () => {
        const nested = join(narrow.cgroup, 'nested');
        mkdirSync(nested);
        writeFileSync(join(nested, 'cgroup.procs'), String(narrow.pid));
        expect(await narrow.run(`tcp('${OUTSIDE}', 443)`)).toBe('answer');
        expect(await narrow.run(`tcp('${OUTSIDE}', 5353)`)).toBe('EPERM');
        writeFileSync(join(narrow.cgroup, 'cgroup.procs'), String(narrow.pid));
        rmdirSync(nested);
      });

      test('a denial says which process, where to, and by which rules', async () => {
        await new Promise((resolve) => setTimeout(resolve, 1_100));
        events.length = 0;
        await narrow.run(`tcp('::ffff:${OUTSIDE}', 5353)`);
        await expect.poll(() => events.length).toBe(1);
        expect(events[0]).toMatchObject({
          slot: narrow.slot,
          generation: 1,
          version: 7,
          pid: narrow.pid,
          command: 'python3',
          hook: 'connect',
          reason: 'no-rule',
          family: 10,
          protocol: 6,
          address: OUTSIDE,
          port: 5353,
        });
      });
    });

    describe('packets', () => {
      let sent = 0;
      /** Injects frames past the sandbox's own kernel. Returns whether what they carry came out there. */
      async function arrives(
        sandbox: TestSandbox,
        frames: (text: string) => string,
      ): Promise<boolean> {
        const text = `injected ${sent++}`;
        await sandbox.run(`[inject('eth0', frame) for frame in ${frames(`b'${text}'`)}]`);
        for (let i = 0; i < 10; i += 1) {
          await new Promise((resolve) => setTimeout(resolve, 20));
          if (await world.outside.run(`'${text}' in received`)) return true;
        }
        return false;
      }
      const head = (from: TestSandbox, kind: number, mac = from.mac) =>
        `ethernet('${from.gatewayMac}', '${mac}', ${kind})`;
      const v4 =
        (from: TestSandbox, to: string, port: number, source = from.address, mac = from.mac) =>
        (text: string) =>
          `[${head(from, 0x800, mac)} + udp4('${source}', '${to}', ${port}, ${text})]`;
      const v6 = (from: TestSandbox, next: number, extension: string) => (text: string) => {
        const payload = `udp6_payload('${from.address6}', '${OUTSIDE6}', 443, ${text})`;
        const ends = `'${from.address6}', '${OUTSIDE6}'`;
        return `[${head(from, 0x86dd)} + ipv6(${ends}, ${next}, ${extension} + ${payload})]`;
      };
      const ends = (from: TestSandbox) => `'${from.address}', '${OUTSIDE}'`;
      const pieces = (from: TestSandbox) => (text: string) => {
        const whole = `udp_payload(5353, ${text})`;
        const piece = (part: string, fragment: number) =>
          `${head(from, 0x800)} + ipv4(${ends(from)}, 17, ${whole}${part}, ${fragment})`;
        return `[${piece('[:8]', 0x2000)}, ${piece('[8:]', 1)}]`;
      };
      const withOptions = (from: TestSandbox) => (text: string) =>
        `[${head(from, 0x800)} + udp4(${ends(from)}, 5353, ${text}, options=bytes([1, 1, 1, 1]))]`;

      /** UDP, no extension; then each header that may stand in between. */
      const HOP_BY_HOP = `bytes([17, 0, 1, 4, 0, 0, 0, 0])`;
      const ONE_FRAGMENT = `bytes([17, 0, 0, 0, 0, 0, 0, 9])`;

      type Frames = (from: TestSandbox) => (text: string) => string;
      test.each<[string, Frames, boolean]>([
        ['what a rule opens', (from) => v4(from, OUTSIDE, 5353), true],
        ['another port', (from) => v4(from, OUTSIDE, 443), false],
        ['another address', (from) => v4(from, OUTSIDE_OTHER, 443), false],
        ['a spoofed address', (from) => v4(from, OUTSIDE, 5353, '100.96.0.99'), false],
        [
          'a spoofed device',
          (from) => v4(from, OUTSIDE, 5353, from.address, '02:00:00:00:01:99'),
          false,
        ],
        ['fragments', pieces, false],
        ['IPv4 options', withOptions, false],
        ['IPv6, open', (from) => v6(from, 17, `b''`), true],
        ['IPv6 hop-by-hop options', (from) => v6(from, 0, HOP_BY_HOP), false],
        ['IPv6 destination options', (from) => v6(from, 60, HOP_BY_HOP), false],
        ['an IPv6 fragment that is whole', (from) => v6(from, 44, ONE_FRAGMENT), false],
      ])('%s', async (_, frames, isOpen) => {
        expect(await arrives(control, frames(control))).toBe(true);
        const before = denied(narrow).packetsDeniedOut;
        expect(await arrives(narrow, frames(narrow))).toBe(isOpen);
        expect(denied(narrow).packetsDeniedOut > before).toBe(!isOpen);
      });

      test('a datagram socket that is connected is judged by its packets', async () => {
        const send = `udp('${OUTSIDE}', 443, b'connected', True)`;
        expect(await control.run(send)).toBe('answer');
        expect(await narrow.run(send)).toBe('silence');
      });

      test('an echo goes where everything goes', async () => {
        const echo = (from: TestSandbox) =>
          `inject('eth0', ${head(from, 0x800)} + ipv4(${ends(from)}, 1, echo_request()))`;
        const before = [denied(wide).packetsDeniedOut, denied(narrow).packetsDeniedOut];
        await wide.run(echo(wide));
        await narrow.run(echo(narrow));
        const after = [denied(wide).packetsDeniedOut, denied(narrow).packetsDeniedOut];
        expect(after.map((count, i) => count - (before[i] ?? 0))).toEqual([0, 1]);
      });

      test('no ARP but about the gateway, no VLAN, no frame of another kind', async () => {
        const before = denied(wide).packetsDeniedOut;
        const inject = (kind: number, payload: string) =>
          wide.run(`inject('eth0', ${head(wide, kind)} + ${payload})`);
        const arp = (sender: string, target: string) =>
          inject(0x806, `arp('${wide.mac}', '${sender}', '${target}')`);
        await arp(wide.address, GATEWAY);
        expect(denied(wide).packetsDeniedOut).toBe(before);
        await arp(wide.address, narrow.address);
        await arp(GATEWAY, GATEWAY);
        await inject(0x8100, `bytes([0, 5, 8, 0]) + udp4(${ends(wide)}, 443, b'tagged')`);
        await inject(0x88b5, 'bytes(50)');
        expect(denied(wide).packetsDeniedOut).toBe(before + 4);
      });

      test('neighbours are out of reach, whatever is open', async () => {
        await narrow.run(`serve_tcp('${narrow.address}', 7000)`);
        await control.run(`serve_tcp('${control.address}', 7000)`);
        expect(await wide.run(`tcp('${narrow.address}', 7000)`)).toBe('EPERM');
        expect(await wide.run(`tcp('${control.address}', 7000)`)).toBe('EPERM');
        await control.run(`serve_udp('${control.address}', 7000)`);
        expect(await world.outside.run(`udp('${control.address}', 7000, b'far')`)).toBe('answer');
        await wide.run(`inject('eth0', ${v4(wide, control.address, 7000)(`b'near'`)}[0])`);
        await new Promise((resolve) => setTimeout(resolve, 100));
        expect(await control.run(`['far' in received, 'near' in received]`)).toEqual([true, false]);
      });

      test('what a virtual machine writes to its tap is judged alike', async () => {
        const address = '100.96.0.40';
        const index = Number(await world.router.run(`open_tap('vm0')`));
        const device = narrow.gatewayMac;
        configure(world.router.pid, [
          `link set vm0 address ${device} up`,
          `route add ${address}/32 dev vm0`,
        ]);
        const write = async (text: string, port: number, source = address) => {
          const head = `ethernet('${device}', '02:00:00:00:02:00', 0x800)`;
          const packet = `udp4('${source}', '${OUTSIDE}', ${port}, b'${text}')`;
          await world.router.run(`os.write(kept['vm0'], ${head} + ${packet})`);
          await new Promise((resolve) => setTimeout(resolve, 50));
          return await world.outside.run(`'${text}' in received`);
        };
        expect(await write('nobody judges', 443, '100.96.0.41')).toBe(true);
        const place = { index, address };
        world.filter.addSandbox({ slot: 40, generation: 1, cgroupId: 40n, device: place });
        const rules = [{ prefix: `${OUTSIDE}/32`, ports: [[5353, 5353] as const] }];
        world.filter.setRules(40, { version: 1, addresses: rules, names: [] });
        expect(await write('by a rule', 5353)).toBe(true);
        expect(await write('by none', 443)).toBe(false);
        expect(await write('as another', 5353, '100.96.0.41')).toBe(false);
        world.filter.removeSandbox(40);
      });

      test('nobody connects into a sandbox', async () => {
        await wide.run(`serve_tcp('${wide.address}', 7001)`);
        await control.run(`serve_tcp('${control.address}', 7001)`);
        expect(await world.outside.run(`tcp('${control.address}', 7001)`)).toBe('answer');
        expect(await world.outside.run(`tcp('${wide.address}', 7001)`)).toBe('silence');
        expect(await world.router.run(`tcp('${wide.address}', 7001)`)).toBe('silence');
        expect(denied(wide).packetsDeniedIn).toBeGreaterThan(0);
      });
    });
  },
);
