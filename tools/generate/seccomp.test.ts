import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parseSyscalls } from './seccomp.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const rows = parseSyscalls(readFileSync(join(root, 'native/seccomp/syscalls.txt'), 'utf8'));

const HEADERS = [
  '/usr/include/x86_64-linux-gnu/asm/unistd_64.h',
  '/usr/include/asm/unistd_64.h',
].filter((path) => existsSync(path));

describe('the table of system calls', () => {
  it.runIf(HEADERS.length > 0)(
    'names every call of this machine’s headers (needs linux-libc-dev)',
    () => {
      const text = readFileSync(HEADERS[0] ?? '', 'utf8');
      const calls = [...text.matchAll(/#define __NR_(\w+)\s+(\d+)/g)];
      expect(calls.length).toBeGreaterThan(300);
      for (const [, name, number] of calls) {
        expect(rows.find((row) => row.name === name)?.x64, `system call ${name}`).toBe(
          Number(number),
        );
      }
    },
  );
  it('is one table from 424 on, as the kernel has it', () => {
    for (const { name, x64, arm64 } of rows) {
      if (x64 !== undefined && x64 >= 424) expect(arm64, name).toBe(x64);
    }
  });

  it.each([
    ['a verdict that is none', 'read 0 63 maybe'],
    ['a number that is none', 'read x 63 allow'],
    ['a number twice', 'read 0 63 allow\nwrite 0 64 allow'],
  ])('refuses %s', (_, text) => {
    expect(() => parseSyscalls(text)).toThrow('syscalls.txt:');
  });
});
