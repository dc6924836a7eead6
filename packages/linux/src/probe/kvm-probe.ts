import { closeSync, openSync } from 'node:fs';
import { mapShared, type SyscallArgument, syscall } from '../syscall.ts';
import { asOutcome } from './attempt.ts';
import { fails, type Outcome, untried, works } from './facts.ts';
import {
  enterLongMode,
  GUEST_MEMORY_BYTES,
  GUEST_RESULT,
  guestRegisters,
  RESULT_ADDRESS,
  SPECIAL_REGISTERS_BYTES,
  writeGuest,
} from './kvm-guest.ts';

/**
 * Runs a guest of a few instructions under KVM. /dev/kvm may open, make machines and still run nothing
 * (nested hosts, paravirtual kernels), so only an answer from inside a guest counts. Runs in a child that
 * is killed after a limit, since KVM_RUN may never return. Source: Documentation/virt/kvm/api.rst.
 */

const KVM_GET_API_VERSION = 0xae00;
const KVM_CREATE_VM = 0xae01;
const KVM_GET_VCPU_MMAP_SIZE = 0xae04;
const KVM_CREATE_VCPU = 0xae41;
const KVM_RUN = 0xae80;
const KVM_SET_USER_MEMORY_REGION = 0x4020_ae46;
const KVM_SET_REGS = 0x4090_ae82;
const KVM_GET_SREGS = 0x8138_ae83;
const KVM_SET_SREGS = 0x4138_ae84;

const API_VERSION = 12;
const EXIT_IO = 2;
const EXIT_HLT = 5;
const EXIT_INTERNAL_ERROR = 17;

/** What the child prints once it has started, before the guest runs. */
export const KVM_STARTED = 'started\n';

export function probeKvm(): Outcome {
  if (process.arch !== 'x64') {
    return untried(`no test guest is written for ${process.arch}; QEMU will tell when it starts`);
  }
  const opened: number[] = [];
  try {
    return runGuest(opened);
  } catch (thrown) {
    return asOutcome(thrown);
  } finally {
    for (const fd of opened.reverse()) closeSync(fd);
  }
}

function runGuest(opened: number[]): Outcome {
  const kvm = openSync('/dev/kvm', 'r+');
  opened.push(kvm);
  const version = ioctl(kvm, KVM_GET_API_VERSION, 0, 'KVM_GET_API_VERSION');
  if (version !== API_VERSION) return fails(`KVM interface ${version}, not ${API_VERSION}`);
  const machine = ioctl(kvm, KVM_CREATE_VM, 0, 'KVM_CREATE_VM');
  opened.push(machine);
  const memory = addMemory(machine);
  const cpu = ioctl(machine, KVM_CREATE_VCPU, 0, 'KVM_CREATE_VCPU');
  opened.push(cpu);
  const run = mapShared(cpu, ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0, 'KVM_GET_VCPU_MMAP_SIZE'));
  setRegisters(cpu);
  for (const expected of [EXIT_IO, EXIT_HLT]) {
    ioctl(cpu, KVM_RUN, 0, 'KVM_RUN');
    const exit = run.readUInt32LE(8);
    if (exit === EXIT_INTERNAL_ERROR)
      return fails('it interprets firmware, but cannot run a kernel');
    if (exit !== expected) return fails(`the test guest ended with KVM exit ${exit}`);
  }
  const result = memory.readBigUInt64LE(RESULT_ADDRESS);
  if (result !== GUEST_RESULT) return fails(`the test guest computed ${result}`);
  return works('a guest in long mode computed and halted');
}

function addMemory(machine: number): Buffer {
  const memory = mapShared(-1, GUEST_MEMORY_BYTES);
  writeGuest(memory);
  const region = Buffer.alloc(32); // slot 0, no flags, guest address 0
  region.writeBigUInt64LE(BigInt(GUEST_MEMORY_BYTES), 16);
  region.writeBigUInt64LE(memory.address, 24);
  ioctl(machine, KVM_SET_USER_MEMORY_REGION, region, 'KVM_SET_USER_MEMORY_REGION');
  return memory;
}

function setRegisters(cpu: number): void {
  const special = Buffer.alloc(SPECIAL_REGISTERS_BYTES);
  ioctl(cpu, KVM_GET_SREGS, special, 'KVM_GET_SREGS');
  enterLongMode(special);
  ioctl(cpu, KVM_SET_SREGS, special, 'KVM_SET_SREGS');
  ioctl(cpu, KVM_SET_REGS, guestRegisters(), 'KVM_SET_REGS');
}

function ioctl(fd: number, request: number, argument: SyscallArgument, name: string): number {
  return syscall('ioctl', [fd, request, argument], name);
}
