import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { findBtfFunction } from '../../src/probe/btf.ts';

interface Type {
  readonly kind: number;
  readonly name: string;
  readonly members?: number;
  readonly extraBytes: number;
}

/** A BTF file with these types, ids from 1. */
function btfOf(types: readonly Type[]): Buffer {
  let names = '\0';
  const records = types.map(({ kind, name, members = 0, extraBytes }) => {
    const record = Buffer.alloc(12 + extraBytes, 0xee);
    record.writeUInt32LE(names.length, 0);
    record.writeUInt32LE(((kind << 24) | members) >>> 0, 4);
    names += `${name}\0`;
    return record;
  });
  const header = Buffer.alloc(24);
  const body = Buffer.concat(records);
  header.writeUInt16LE(0xeb9f, 0);
  header.writeUInt8(1, 2);
  header.writeUInt32LE(24, 4);
  header.writeUInt32LE(body.length, 12);
  header.writeUInt32LE(body.length, 16);
  header.writeUInt32LE(names.length, 20);
  return Buffer.concat([header, body, Buffer.from(names)]);
}

const EVERY_KIND: readonly Type[] = [
  { kind: 1, name: 'int', extraBytes: 4 },
  { kind: 2, name: '', extraBytes: 0 },
  { kind: 3, name: '', extraBytes: 12 },
  { kind: 4, name: 'task', members: 3, extraBytes: 36 },
  { kind: 5, name: 'u', members: 2, extraBytes: 24 },
  { kind: 6, name: 'e', members: 5, extraBytes: 40 },
  { kind: 7, name: 'fwd', extraBytes: 0 },
  { kind: 13, name: '', members: 2, extraBytes: 16 },
  { kind: 14, name: 'v', extraBytes: 4 },
  { kind: 15, name: 'd', members: 1, extraBytes: 12 },
  { kind: 17, name: 't', extraBytes: 4 },
  { kind: 19, name: 'e64', members: 2, extraBytes: 24 },
  { kind: 4, name: 'bpf_lsm_file_open', members: 0, extraBytes: 0 },
  { kind: 12, name: 'bpf_lsm_file_open_more', extraBytes: 0 },
  { kind: 12, name: 'bpf_lsm_file_open', extraBytes: 0 },
];

it('finds a function behind types of every kind', () => {
  const btf = btfOf(EVERY_KIND);
  expect(findBtfFunction(btf, 'bpf_lsm_file_open')).toBe(15);
  expect(findBtfFunction(btf, 'task')).toBeUndefined();
});

it('ends at the end of a file that was cut or is none', () => {
  const btf = btfOf(EVERY_KIND);
  for (let length = 0; length < btf.length; length += 1) {
    const id = findBtfFunction(btf.subarray(0, length), 'bpf_lsm_file_open');
    expect(id === undefined || id === 15).toBe(true);
  }
  expect(findBtfFunction(Buffer.alloc(100), 'x')).toBeUndefined();
});

const VMLINUX = '/sys/kernel/btf/vmlinux';
it.runIf(existsSync(VMLINUX))('reads the types of the running kernel (needs BTF)', () => {
  expect(findBtfFunction(readFileSync(VMLINUX), 'vfs_read')).toBeGreaterThan(1);
});
