import { expect, it } from 'vitest';
import { type SyscallName, syscallNumber } from '../src/syscall-numbers.ts';

it.each([
  ['openat2', 437, 437],
  ['flock', 73, 32],
  ['bpf', 321, 280],
  ['prlimit64', 302, 261],
] satisfies [SyscallName, number, number][])(
  'knows %s on both architectures',
  (name, x64, arm64) => {
    expect(syscallNumber(name, 'x64')).toBe(x64);
    expect(syscallNumber(name, 'arm64')).toBe(arm64);
  },
);

it('refuses an architecture that it has no table for', () => {
  expect(() => syscallNumber('flock', 'riscv64')).toThrowError(
    expect.objectContaining({ code: 'unsupported' }),
  );
});
