/**
 * Looks a kernel function up in BTF, the type information at /sys/kernel/btf/vmlinux: a BPF LSM program
 * names its hook by this id. Pure; a truncated or foreign file gives `undefined`. Source:
 * Documentation/bpf/btf.rst.
 */

const MAGIC = 0xeb9f;
const KIND_FUNC = 12;
/** Bytes after the common 12 of a type, by kind: fixed, and per member. */
const EXTRA_BYTES: Readonly<Record<number, readonly [fixed: number, perMember: number]>> = {
  1: [4, 0], // int
  3: [12, 0], // array
  4: [0, 12], // struct
  5: [0, 12], // union
  6: [0, 8], // enum
  13: [0, 8], // function prototype
  14: [4, 0], // variable
  15: [0, 12], // data section
  17: [4, 0], // declaration tag
  19: [0, 12], // 64-bit enum
};

export function findBtfFunction(btf: Buffer, name: string): number | undefined {
  if (btf.length < 24 || btf.readUInt16LE(0) !== MAGIC) return undefined;
  const headerBytes = btf.readUInt32LE(4);
  const typesStart = headerBytes + btf.readUInt32LE(8);
  const typesEnd = typesStart + btf.readUInt32LE(12);
  const namesStart = headerBytes + btf.readUInt32LE(16);
  const wanted = Buffer.from(`${name}\0`);
  let id = 1;
  for (let at = typesStart; at + 12 <= Math.min(typesEnd, btf.length); id += 1) {
    const info = btf.readUInt32LE(at + 4);
    const kind = (info >>> 24) & 0x1f;
    if (kind === KIND_FUNC) {
      const nameAt = namesStart + btf.readUInt32LE(at);
      if (btf.subarray(nameAt, nameAt + wanted.length).equals(wanted)) return id;
    }
    const [fixed, perMember] = EXTRA_BYTES[kind] ?? [0, 0];
    at += 12 + fixed + perMember * (info & 0xffff);
  }
  return undefined;
}
