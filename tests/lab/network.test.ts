import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmdirSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { umount } from '@dsec/linux';
import { mountBpfDirectory, openPacketFilter, type PacketFilter } from '@dsec/network';
import { expect, it, onTestFinished } from 'vitest';
import { newDirectory, onlyInGuest } from './guest.ts';

const PARENT = '/sys/fs/cgroup/dsec-lab-network';
const CGROUP = join(PARENT, 'one');
/** The loopback, as the first device of every network namespace. */
const LOOPBACK = 1;

onlyInGuest();

function openFilter(): PacketFilter {
  const directory = newDirectory();
  mountBpfDirectory(directory);
  mkdirSync(CGROUP, { recursive: true });
  const namespaceFd = openSync('/proc/self/ns/net', 'r');
  const filter = openPacketFilter({
    objectsDirectory: join(import.meta.dirname, '../../native/build/bpf'),
    directory,
    cgroup: PARENT,
    namespaceFd,
    gateway: { address: '169.254.77.1', ports: [{ port: 53, protocol: 'udp' }] },
    refused: [],
    slotsMax: 16,
  });
  onTestFinished(() => {
    filter.removeSandbox(1);
    filter.close();
    closeSync(namespaceFd);
    umount(directory);
    rmdirSync(CGROUP);
    rmdirSync(PARENT);
  });
  return filter;
}

/** What becomes of a connection, by a process in a cgroup. */
function connect(cgroup: string, address: string, port: number): string {
  const script = `const socket = require('node:net').connect({ host: '${address}', port: ${port} });
    socket.on('connect', () => { console.log('connected'); process.exit() });
    socket.on('error', ({ code }) => { console.log(code); process.exit() });
    setTimeout(() => { console.log('silence'); process.exit() }, 1000);`;
  const command = `echo $$ > ${cgroup}/cgroup.procs && exec "$0" -e "$1"`;
  return execFileSync('sh', ['-c', command, process.execPath, script], { encoding: 'utf8' }).trim();
}

it('judges calls and packets of sandboxes here too', async () => {
  const filter = openFilter();
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const cgroupId = statSync(CGROUP, { bigint: true }).ino;

  filter.addSandbox({ slot: 1, generation: 1, cgroupId });
  expect(connect('/sys/fs/cgroup', '192.0.2.1', 80)).not.toBe('EPERM');
  expect(connect(CGROUP, '192.0.2.1', 80)).toBe('EPERM');
  expect(connect(CGROUP, '127.0.0.1', port)).toBe('connected');
  filter.setRules(1, { version: 1, addresses: [{ prefix: '192.0.2.0/24', ports: [] }], names: [] });
  expect(connect(CGROUP, '192.0.2.1', 80)).not.toBe('EPERM');
  filter.removeSandbox(1);

  const device = { index: LOOPBACK, address: '127.0.0.1' };
  filter.addSandbox({ slot: 1, generation: 2, cgroupId, device });
  // On this device what leaves is also what arrives; the program for arrivals drops it first.
  expect(connect(CGROUP, '127.0.0.1', port)).toBe('silence');
  expect(filter.counters(1).packetsDeniedIn).toBeGreaterThan(0);
  filter.removeSandbox(1);
  expect(connect(CGROUP, '127.0.0.1', port)).toBe('connected');
});
