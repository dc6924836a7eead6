import { closeSync, openSync, readFileSync } from 'node:fs';
import { asDsecError } from '@dsec/std';
import { prctl } from '../process-control.ts';
import { addressOf, syscall } from '../syscall.ts';
import { attempt } from './attempt.ts';
import { findBtfFunction } from './btf.ts';
import { BPF_KINDS, type BpfKind, fails, type HostFacts, type Outcome, untried } from './facts.ts';

/** Questions that one system call answers at once, so that no child and no limit is needed. None throws. */

export function probeFuse(): Outcome {
  return attempt(() => {
    closeSync(openSync('/dev/fuse', 'r+'));
    return '/dev/fuse opens';
  });
}

export function probeLandlock(): HostFacts['landlock'] {
  const LANDLOCK_CREATE_RULESET_VERSION = 1;
  let abi = 0;
  const outcome = attempt(() => {
    const args = [null, 0, LANDLOCK_CREATE_RULESET_VERSION];
    abi = syscall('landlock_create_ruleset', args);
    return `interface version ${abi}`;
  });
  return outcome.state === 'works' ? { ...outcome, abi } : outcome;
}

export function probeCoreScheduling(): Outcome {
  const [PR_SCHED_CORE, PR_SCHED_CORE_GET, PIDTYPE_PID] = [62, 0, 0];
  const cookie = Buffer.alloc(8);
  return attempt(() => {
    prctl(PR_SCHED_CORE, PR_SCHED_CORE_GET, 0, PIDTYPE_PID, addressOf(cookie));
    return 'cookies can be set';
  });
}

/** Names by the ids of include/uapi/linux/lsm.h. */
const SECURITY_MODULES: Readonly<Record<number, string>> = {
  100: 'capability',
  101: 'selinux',
  102: 'smack',
  103: 'tomoyo',
  104: 'apparmor',
  105: 'yama',
  106: 'loadpin',
  107: 'safesetid',
  108: 'lockdown',
  109: 'bpf',
  110: 'landlock',
  111: 'ima',
  112: 'evm',
  113: 'ipe',
};

/** The active security modules: asked from the kernel (6.8 and newer), else read from securityfs. */
export function listSecurityModules(): readonly string[] | undefined {
  try {
    const ids = Buffer.alloc(64 * 8);
    const size = Buffer.alloc(4);
    size.writeUInt32LE(ids.length);
    const count = syscall('lsm_list_modules', [ids, size, 0]);
    return Array.from({ length: count }, (_, i) => {
      const id = Number(ids.readBigUInt64LE(i * 8));
      return SECURITY_MODULES[id] ?? String(id);
    });
  } catch {
    try {
      return readFileSync('/sys/kernel/security/lsm', 'utf8').trim().split(',');
    } catch {
      return undefined;
    }
  }
}

interface BpfProgram {
  readonly type: number;
  readonly attachType: number;
  /** What the program returns: 1 lets through in the cgroup types, 0 means "go on" in the others. */
  readonly result: 0 | 1;
}

/** Numbers of `BPF_PROG_TYPE_*` and of the attach type that the policies use. */
const BPF_PROGRAMS: Readonly<Record<BpfKind, BpfProgram>> = {
  cgroup_skb: { type: 8, attachType: 1, result: 1 },
  cgroup_sock_addr: { type: 18, attachType: 10, result: 1 },
  sched_cls: { type: 3, attachType: 0, result: 0 },
  cgroup_device: { type: 15, attachType: 6, result: 1 },
  lsm: { type: 29, attachType: 27, result: 0 },
};

/** A hook that every kernel with BPF LSM has. */
const LSM_HOOK = 'bpf_lsm_file_open';

/** Loads the smallest program of each type and drops it again. Nothing is attached. */
export function probeBpf(): HostFacts['bpf'] {
  const outcomes = BPF_KINDS.map((kind): [BpfKind, Outcome] => {
    const program = BPF_PROGRAMS[kind];
    if (kind !== 'lsm') return [kind, loadProgram(program, 0)];
    const hook = lsmHookId();
    if (typeof hook !== 'number') return [kind, hook];
    return [kind, loadProgram(program, hook)];
  });
  return Object.fromEntries(outcomes) as HostFacts['bpf'];
}

function lsmHookId(): number | Outcome {
  let btf: Buffer;
  try {
    btf = readFileSync('/sys/kernel/btf/vmlinux');
  } catch (thrown) {
    const { code, message } = asDsecError(thrown);
    return code === 'not-found' ? fails('no /sys/kernel/btf/vmlinux') : untried(message);
  }
  return findBtfFunction(btf, LSM_HOOK) ?? fails(`no hook ${LSM_HOOK} in the kernel's BTF`);
}

function loadProgram(program: BpfProgram, btfId: number): Outcome {
  const BPF_PROG_LOAD = 5;
  const instructions = Buffer.alloc(16);
  instructions[0] = 0xb7; // r0 = result
  instructions.writeInt32LE(program.result, 4);
  instructions[8] = 0x95; // exit
  const license = Buffer.from('GPL\0');
  const attr = Buffer.alloc(128);
  attr.writeUInt32LE(program.type, 0);
  attr.writeUInt32LE(instructions.length / 8, 4);
  attr.writeBigUInt64LE(addressOf(instructions), 8);
  attr.writeBigUInt64LE(addressOf(license), 16);
  attr.write('dsec_probe', 48, 'latin1');
  attr.writeUInt32LE(program.attachType, 68);
  attr.writeUInt32LE(btfId, 108);
  return attempt(() => {
    closeSync(syscall('bpf', [BPF_PROG_LOAD, attr, attr.length], 'program load'));
    return 'a program loads';
  });
}
