import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readlinkSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { inNetworkNamespace } from '../src/network-namespace.ts';

const own = () => readlinkSync('/proc/thread-self/ns/net');
const isRoot = process.getuid?.() === 0;

test.skipIf(!isRoot)(
  'work is done elsewhere, and the thread comes back whatever happens (needs root)',
  async () => {
    const holder = spawn('unshare', ['-n', 'sh', '-c', 'echo inside; exec cat'], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    onTestFinished(() => void holder.kill('SIGKILL'));
    await once(holder.stdout, 'data');
    const namespaceFd = openSync(`/proc/${holder.pid}/ns/net`, 'r');
    onTestFinished(() => closeSync(namespaceFd));
    const before = own();
    const there = readlinkSync(`/proc/${holder.pid}/ns/net`);
    expect(there).not.toBe(before);
    expect(inNetworkNamespace(namespaceFd, own)).toBe(there);
    expect(own()).toBe(before);
    const fails = () => {
      throw new Error('of the work');
    };
    expect(() => inNetworkNamespace(namespaceFd, fails)).toThrow('of the work');
    expect(own()).toBe(before);
  },
);

test('what is no namespace changes nothing', () => {
  const before = own();
  const fd = openSync('/dev/null', 'r');
  onTestFinished(() => closeSync(fd));
  expect(() => inNetworkNamespace(fd, () => undefined)).toThrow(/setns/);
  expect(own()).toBe(before);
});
