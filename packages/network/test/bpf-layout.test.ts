import { describe, expect, test } from 'vitest';
import { cgroupLevelOf } from '../src/bpf/cgroup-level.ts';
import {
  addressBytes,
  decodeCounters,
  decodeEvent,
  decodeRule,
  decodeSlot,
  EVENT_BYTES,
  encodeRule,
  encodeRuleKey,
  encodeSettings,
  encodeSlot,
  FREE_SLOT,
  isSameOwner,
  prefixOfRuleKey,
  tableOfRuleKey,
} from '../src/bpf/layout.ts';
import { parseAddress, parsePrefix } from '../src/rules/address.ts';

const address = (text: string) => {
  const found = parseAddress(text);
  if (found === undefined) throw new Error(text);
  return found;
};

describe('structures as the programs read them', () => {
  test('addresses: IPv4 mapped into IPv6', () => {
    expect(addressBytes(address('192.0.2.1')).toString('hex')).toBe(
      '00000000000000000000ffffc0000201',
    );
    expect(addressBytes(address('2001:db8::1')).toString('hex')).toBe(
      '20010db8000000000000000000000001',
    );
  });

  test('the key of a rule: the table is part of the prefix', () => {
    const key = encodeRuleKey(7, parsePrefix('192.0.2.0/24', 'p'));
    expect(key.toString('hex')).toBe('98000000' + '07000000' + '00000000000000000000ffffc0000200');
    expect(key.readUInt32LE(0)).toBe(32 + 96 + 24);
    expect(tableOfRuleKey(key)).toBe(7);
    expect(encodeRuleKey(1, parsePrefix('::/0', 'p')).readUInt32LE(0)).toBe(32);
  });

  test('a rule', () => {
    const bytes = encodeRule([{ first: 80, last: 443, protocol: 6, expiresNs: 0x1122334455n }]);
    expect(bytes.subarray(0, 24).toString('hex')).toBe(
      '0100000000000000' + '5544332211000000' + '5000bb0106000000',
    );
    expect(bytes).toHaveLength(136);
  });

  test('what was written is read back', () => {
    for (const text of ['192.0.2.0/24', '0.0.0.0/0', '2001:db8::/32', '::/0', '2001:db8::1/128']) {
      const prefix = parsePrefix(text, 'p');
      expect(prefixOfRuleKey(encodeRuleKey(3, prefix))).toEqual(prefix);
    }
    const ranges = [{ first: 1, last: 65_535, protocol: 17, expiresNs: 2n ** 60n }];
    expect(decodeRule(encodeRule(ranges))).toEqual(ranges);
  });

  test('settings', () => {
    const bytes = encodeSettings({
      gateway: address('169.254.77.1'),
      cgroupLevel: 2,
      eventsPerSecond: 20,
      ports: [{ port: 53, protocol: 'udp' }],
    });
    expect(bytes.subarray(0, 20).toString('hex')).toBe(
      'a9fe4d01' + '02000000' + '14000000' + '01000000' + '35001100',
    );
    expect(bytes).toHaveLength(80);
  });

  test('a slot, and whose it is', () => {
    const record = {
      ...FREE_SLOT,
      generation: 3,
      version: 9,
      table: 4,
      mayUseProxies: true,
      ipv4: address('100.96.0.11'),
      mac: Buffer.from('020000000111', 'hex'),
    };
    const bytes = encodeSlot(record);
    expect(decodeSlot(bytes)).toEqual({ generation: 3, version: 9, table: 4 });
    expect(bytes.readUInt32LE(12)).toBe(1 | 2 | 4);
    expect(
      isSameOwner(bytes, encodeSlot({ ...record, version: 10, table: 5, mayUseProxies: false })),
    ).toBe(true);
    expect(isSameOwner(bytes, encodeSlot({ ...record, generation: 4 }))).toBe(false);
    expect(isSameOwner(bytes, encodeSlot({ ...record, ipv4: address('100.96.0.12') }))).toBe(false);
    expect(
      isSameOwner(bytes, encodeSlot({ ...record, mac: Buffer.from('020000000112', 'hex') })),
    ).toBe(false);
  });

  test('counters', () => {
    const bytes = Buffer.alloc(72);
    for (let i = 0; i < 5; i += 1) bytes.writeBigUInt64LE(BigInt(i + 1), 8 * i);
    expect(decodeCounters(bytes)).toEqual({
      callsDenied: 1,
      packetsDeniedOut: 2,
      packetsDeniedIn: 3,
      packetsIgnored: 4,
      eventsLost: 5,
    });
  });

  test('an event, of whatever bytes', () => {
    const bytes = Buffer.alloc(EVENT_BYTES);
    bytes.writeBigUInt64LE(5n, 0);
    bytes.writeUInt32LE(2, 8);
    addressBytes(address('192.0.2.7')).copy(bytes, 24);
    bytes.write('a name that is\x1b[', 40, 'latin1');
    bytes.writeUInt16LE(443, 56);
    bytes.set([10, 6, 3, 1], 58);
    expect(decodeEvent(bytes)).toMatchObject({
      slot: 2,
      address: '192.0.2.7',
      command: 'a name that is\x1b[',
      hook: 'connect',
      reason: 'no-rule',
      port: 443,
    });
    expect(decodeEvent(Buffer.alloc(EVENT_BYTES, 0xff))).toMatchObject({
      hook: 'unknown',
      reason: 'unknown',
    });
  });
});

describe('the level of a cgroup', () => {
  const first = 'cgroup:[4026531835]';
  const mounts = (root: string, point: string) =>
    `41 31 0:38 ${root} ${point} rw,relatime - cgroup2 cgroup2 rw\n1 0 0:1 / / rw - ext4 /dev/vda rw\n`;

  test('counts from the root of the machine, wherever it is mounted and from where on', () => {
    expect(cgroupLevelOf('/', mounts('/', '/'), first)).toBe(0);
    expect(cgroupLevelOf('/usr/bin', mounts('/', '/'), first)).toBe(2);
    expect(cgroupLevelOf('/usr/bin', mounts('/', '/usr'), first)).toBe(1);
    expect(cgroupLevelOf('/usr/bin', mounts('/machine.slice/node', '/usr'), first)).toBe(3);
    expect(cgroupLevelOf('/usr', mounts('/', '/usr'), first)).toBe(0);
  });

  test('is unknown within a namespace, and elsewhere', () => {
    expect(() => cgroupLevelOf('/usr', mounts('/', '/usr'), 'cgroup:[4026532000]')).toThrow(
      /namespace/,
    );
    expect(() => cgroupLevelOf('/etc', mounts('/', '/usr'), first)).toThrow(/not in a cgroup v2/);
  });
});
