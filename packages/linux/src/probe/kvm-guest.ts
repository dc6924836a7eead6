/**
 * The guest of the KVM probe: one page of x86-64 code in long mode, with paging, as every guest kernel
 * runs. Firmware alone would prove too little: a KVM that cannot virtualize interprets that, and fails at
 * the first kernel. Everything here is bytes, no effects.
 */

/** Guest memory starts at physical address 0 and holds page tables, code and one word of result. */
export const GUEST_MEMORY_BYTES = 0x6000;
const PAGE_MAP = 0x1000;
const PAGE_POINTERS = 0x2000;
const PAGE_DIRECTORY = 0x3000;
export const CODE_ADDRESS = 0x4000;
export const RESULT_ADDRESS = 0x5000;
export const GUEST_PORT = 0x3f8;

const ROUNDS = 100_000;
/** What the guest leaves at RESULT_ADDRESS: 1 + 2 + … + ROUNDS. */
export const GUEST_RESULT = (BigInt(ROUNDS) * BigInt(ROUNDS + 1)) / 2n;

const PRESENT_WRITABLE = 0x3;
const LARGE_PAGE = 0x80;

const CODE = [
  ...[0xf3, 0x0f, 0xb8, 0xc0], //     popcnt eax, eax: plain for a CPU, unknown to the kernel's interpreter
  ...[0xb9, ...u32(ROUNDS)], //       mov ecx, ROUNDS
  ...[0x31, 0xc0], //                 xor eax, eax
  ...[0x48, 0x01, 0xc8], //     next: add rax, rcx
  ...[0x48, 0x89, 0x03], //           mov [rbx], rax
  ...[0xff, 0xc9], //                 dec ecx
  ...[0x75, 0xf6], //                 jnz next
  ...[0x0f, 0x20, 0xda], //           mov rdx, cr3
  ...[0x0f, 0x22, 0xda], //           mov cr3, rdx
  ...[0x0f, 0xa2], //                 cpuid
  ...[0x66, 0xba, GUEST_PORT & 0xff, GUEST_PORT >> 8], // mov dx, GUEST_PORT
  0xee, //                            out dx, al
  0xf4, //                            hlt
];

/** Writes page tables (the first 2 MiB mapped to themselves) and code into the guest's zeroed memory. */
export function writeGuest(memory: Buffer): void {
  memory.writeBigUInt64LE(BigInt(PAGE_POINTERS | PRESENT_WRITABLE), PAGE_MAP);
  memory.writeBigUInt64LE(BigInt(PAGE_DIRECTORY | PRESENT_WRITABLE), PAGE_POINTERS);
  memory.writeBigUInt64LE(BigInt(LARGE_PAGE | PRESENT_WRITABLE), PAGE_DIRECTORY);
  Buffer.from(CODE).copy(memory, CODE_ADDRESS);
}

/** `struct kvm_regs` at the first instruction. */
export function guestRegisters(): Buffer {
  const registers = Buffer.alloc(144);
  registers.writeBigUInt64LE(BigInt(RESULT_ADDRESS), 8); // rbx
  registers.writeBigUInt64LE(BigInt(CODE_ADDRESS), 128); // rip
  registers.writeBigUInt64LE(2n, 136); // rflags: the bit that is always set
  return registers;
}

export const SPECIAL_REGISTERS_BYTES = 312;

/** Turns the `struct kvm_sregs` of a fresh CPU into one in long mode. */
export function enterLongMode(special: Buffer): void {
  const [CODE_TYPE, DATA_TYPE] = [11, 3];
  writeSegment(special, 0, { selector: 8, type: CODE_TYPE, long: true }); // cs
  for (let segment = 1; segment <= 5; segment += 1) {
    writeSegment(special, segment, { selector: 16, type: DATA_TYPE, long: false }); // ds to ss
  }
  special.writeBigUInt64LE(0x8005_0033n, 224); // cr0: paging and protection
  special.writeBigUInt64LE(BigInt(PAGE_MAP), 240); // cr3
  special.writeBigUInt64LE(0x20n, 248); // cr4: physical address extension
  special.writeBigUInt64LE(0x500n, 264); // efer: long mode enabled and active
}

function writeSegment(
  special: Buffer,
  index: number,
  segment: { readonly selector: number; readonly type: number; readonly long: boolean },
): void {
  const at = index * 24;
  special.fill(0, at, at + 24);
  special.writeUInt32LE(0xffff_ffff, at + 8); // limit
  special.writeUInt16LE(segment.selector, at + 12);
  special[at + 14] = segment.type;
  special[at + 15] = 1; // present
  special[at + 17] = segment.long ? 0 : 1; // db
  special[at + 18] = 1; // code or data
  special[at + 19] = segment.long ? 1 : 0;
  special[at + 20] = 1; // limit counts pages
}

function u32(value: number): number[] {
  return [value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff, value >>> 24];
}
