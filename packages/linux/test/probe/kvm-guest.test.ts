import { expect, it } from 'vitest';
import {
  CODE_ADDRESS,
  enterLongMode,
  GUEST_MEMORY_BYTES,
  GUEST_RESULT,
  guestRegisters,
  RESULT_ADDRESS,
  SPECIAL_REGISTERS_BYTES,
  writeGuest,
} from '../../src/probe/kvm-guest.ts';

it('maps the first 2 MiB to themselves through three levels', () => {
  const memory = Buffer.alloc(GUEST_MEMORY_BYTES);
  writeGuest(memory);
  const special = Buffer.alloc(SPECIAL_REGISTERS_BYTES);
  enterLongMode(special);
  let table = Number(special.readBigUInt64LE(240));
  for (let level = 0; level < 2; level += 1) {
    const entry = Number(memory.readBigUInt64LE(table));
    expect(entry & 0x83).toBe(0x03);
    table = entry & ~0xfff;
  }
  expect(memory.readBigUInt64LE(table)).toBe(0x83n);
  expect(RESULT_ADDRESS + 8).toBeLessThanOrEqual(GUEST_MEMORY_BYTES);
});

it('jumps back to the first instruction of its loop', () => {
  const memory = Buffer.alloc(GUEST_MEMORY_BYTES);
  writeGuest(memory);
  const jump = memory.indexOf(Buffer.from([0x75]), CODE_ADDRESS);
  const target = jump + 2 + memory.readInt8(jump + 1);
  expect(memory.subarray(target, target + 3)).toEqual(Buffer.from([0x48, 0x01, 0xc8]));
  expect(memory.readUInt8(memory.indexOf(Buffer.from([0xee, 0xf4]), CODE_ADDRESS) + 2)).toBe(0);
});

it('starts at its code and expects the sum of its loop', () => {
  expect(guestRegisters().readBigUInt64LE(128)).toBe(BigInt(CODE_ADDRESS));
  let sum = 0n;
  for (let i = 1n; i <= 100_000n; i += 1n) sum += i;
  expect(GUEST_RESULT).toBe(sum);
});
