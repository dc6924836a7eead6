import { closeSync, readdirSync, readlinkSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createUserNamespace } from '../src/user-namespace.ts';
import { isRoot } from './scratch.ts';

it.runIf(isRoot)('gives a namespace that no process lives in (needs root)', async () => {
  const fd = await createUserNamespace({ inside: 0, outside: 100_000, count: 65_536 });
  const name = readlinkSync(`/proc/self/fd/${fd}`);
  expect(name).toMatch(/^user:\[\d+\]$/);
  expect(name).not.toBe(readlinkSync('/proc/self/ns/user'));
  closeSync(fd);
});

it.runIf(isRoot)(
  'refuses a range that the kernel refuses, and leaves nothing behind (needs root)',
  async () => {
    const open = readdirSync('/proc/self/fd').length;
    const none = { inside: 0, outside: 100_000, count: 0 };
    await expect(createUserNamespace(none)).rejects.toThrow('EINVAL');
    await expect.poll(() => readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(open);
  },
);
