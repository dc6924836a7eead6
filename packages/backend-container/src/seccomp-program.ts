import type { SessionPolicy } from '@dsec/backend';
import { assert, DsecError } from '@dsec/std';
import {
  type Condition,
  ERRNO,
  SYSCALL_RULES,
  type SyscallRule,
  type Verdict,
} from './seccomp-policy.ts';
import { SYSCALLS, type SyscallRow } from './syscall-table.gen.ts';

export type SeccompArchitecture = 'x64' | 'arm64';

/** What programs are tried against, and what the kernel runs: see linux/filter.h and linux/seccomp.h. */
export const BPF = {
  LOAD: 0x20,
  AND: 0x54,
  JUMP: 0x05,
  JUMP_EQUAL: 0x15,
  JUMP_GREATER_OR_EQUAL: 0x35,
  JUMP_SET: 0x45,
  RETURN: 0x06,
} as const;
export const SECCOMP = {
  ALLOW: 0x7fff_0000,
  ERRNO: 0x0005_0000,
  KILL_PROCESS: 0x8000_0000,
} as const;

const DATA = { number: 0, architecture: 4, arguments: 16 };
const AUDIT_ARCHITECTURES = { x64: 0xc000_003e, arm64: 0xc000_00b7 };
/** On x86_64: the bit of the x32 ABI. */
const X32_BIT = 0x4000_0000;
const INSTRUCTION_BYTES = 8;
/** The kernel's own limit. */
const INSTRUCTIONS_MAX = 4096;
const JUMP_MAX = 255;

interface Instruction {
  readonly code: number;
  readonly yes: number;
  readonly no: number;
  readonly value: number;
}

/** From this number on, up to the next range's. */
interface Range {
  readonly from: number;
  readonly verdict: Verdict | SyscallRule;
}

/**
 * The filter of system calls for sandboxes, as bytes of classic BPF. An allow list: what the table does not
 * name, as a kernel newer than it would have, does not exist (ENOSYS); calls of another ABI end the process.
 * Numbers are found by a binary search, since the kernel's cost of a filter grows with the length of its
 * longest path. `unsupported` for another architecture.
 */
export function compileSeccomp(architecture: string = process.arch): Uint8Array {
  if (architecture !== 'x64' && architecture !== 'arm64') {
    throw new DsecError('unsupported', `no table of system calls for ${architecture}`);
  }
  const program = [
    instruction(BPF.LOAD, DATA.architecture),
    jump(BPF.JUMP_EQUAL, AUDIT_ARCHITECTURES[architecture], 1, 0),
    instruction(BPF.RETURN, SECCOMP.KILL_PROCESS),
    instruction(BPF.LOAD, DATA.number),
    ...foreignAbi(architecture),
    ...search(rangesOf(SYSCALLS, architecture)),
  ];
  assert(program.length <= INSTRUCTIONS_MAX, `a filter of ${program.length} instructions`);
  return encode(program);
}

/**
 * A filter that only denies, to be put on top of the other: the first of the denials that holds decides. It
 * need not look at the ABI, since the other one ends whoever uses a foreign one. Calls that the architecture
 * does not have are left out; `undefined` when none is left.
 */
export function compileDenials(
  denials: SessionPolicy['denials'],
  architecture: string = process.arch,
): Uint8Array | undefined {
  const column = architecture === 'x64' ? 1 : 2;
  const numberOf = new Map(SYSCALLS.map((row) => [row[0], row[column]]));
  const known = denials.filter(({ call }) => (numberOf.get(call) ?? -1) >= 0);
  if (known.length === 0) return undefined;
  const allow = instruction(BPF.RETURN, SECCOMP.ALLOW);
  const program = [...new Set(known.map(({ call }) => call))].flatMap((call) => {
    const clauses = known
      .filter((denial) => denial.call === call)
      .flatMap(({ when, errno }) => {
        const conditions = when.map(({ argument, equals: value, mask }) => ({
          argument,
          value,
          mask,
        }));
        return clause(conditions, [instruction(BPF.RETURN, SECCOMP.ERRNO | errno)]);
      });
    const body = [...clauses, allow];
    return [
      instruction(BPF.LOAD, DATA.number),
      // Over a jump of any length: a conditional one does not go far.
      jump(BPF.JUMP_EQUAL, numberOf.get(call) ?? 0, 1, 0),
      instruction(BPF.JUMP, body.length),
      ...body,
    ];
  });
  assert(program.length < INSTRUCTIONS_MAX, `denials of ${program.length} instructions`);
  return encode([...program, allow]);
}

/** Names that the filter knows. */
export const systemCalls = (): ReadonlySet<string> => new Set(SYSCALLS.map(([name]) => name));

/** -1 is no call of any ABI: a tracer skips one so. */
function foreignAbi(architecture: SeccompArchitecture): Instruction[] {
  if (architecture !== 'x64') return [];
  return [
    jump(BPF.JUMP_EQUAL, 0xffff_ffff, 2, 0),
    jump(BPF.JUMP_GREATER_OR_EQUAL, X32_BIT, 0, 1),
    instruction(BPF.RETURN, SECCOMP.KILL_PROCESS),
  ];
}

/** Neighbours of one verdict make one range; numbers between known ones, and above, are ENOSYS. */
function rangesOf(rows: readonly SyscallRow[], architecture: SeccompArchitecture): Range[] {
  const column = architecture === 'x64' ? 1 : 2;
  const byNumber = new Map<number, Verdict | SyscallRule>();
  for (const row of rows) {
    if (row[column] >= 0) byNumber.set(row[column], verdictOf(row));
  }
  const ranges: Range[] = [];
  const newest = Math.max(...byNumber.keys());
  for (let number = 0; number <= newest + 1; number += 1) {
    const verdict = byNumber.get(number) ?? { errno: ERRNO.ENOSYS };
    const last = ranges.at(-1);
    if (last === undefined || !isSame(last.verdict, verdict))
      ranges.push({ from: number, verdict });
  }
  return ranges;
}

function verdictOf([name, , , verdict]: SyscallRow): Verdict | SyscallRule {
  if (verdict === 'allow') return 'allow';
  if (verdict === 'eperm') return { errno: ERRNO.EPERM };
  if (verdict === 'enosys') return { errno: ERRNO.ENOSYS };
  const rule = SYSCALL_RULES[name];
  assert(rule !== undefined, `there is no rule for ${name}`);
  return rule;
}

function isSame(left: Verdict | SyscallRule, right: Verdict | SyscallRule): boolean {
  if (left === right) return true;
  if (typeof left === 'string' || typeof right === 'string') return false;
  return 'errno' in left && 'errno' in right && left.errno === right.errno;
}

/** The number is in the accumulator until a range is found. */
function search(ranges: readonly Range[]): Instruction[] {
  const [only] = ranges;
  assert(only !== undefined, 'a search among nothing');
  if (ranges.length === 1) return decide(only.verdict);
  const half = ranges.length >> 1;
  const middle = ranges[half];
  assert(middle !== undefined, 'a half is within the whole');
  const below = search(ranges.slice(0, half));
  const above = search(ranges.slice(half));
  if (below.length <= JUMP_MAX) {
    return [jump(BPF.JUMP_GREATER_OR_EQUAL, middle.from, below.length, 0), ...below, ...above];
  }
  return [
    jump(BPF.JUMP_GREATER_OR_EQUAL, middle.from, 0, 1),
    instruction(BPF.JUMP, below.length),
    ...below,
    ...above,
  ];
}

function decide(verdict: Verdict | SyscallRule): Instruction[] {
  if (verdict === 'allow') return [instruction(BPF.RETURN, SECCOMP.ALLOW)];
  if ('errno' in verdict) return [instruction(BPF.RETURN, SECCOMP.ERRNO | verdict.errno)];
  const clauses = verdict.clauses.flatMap(({ when, verdict: then }) => clause(when, decide(then)));
  return [...clauses, ...decide(verdict.otherwise)];
}

/** Runs into `then` when all conditions hold, else behind it. */
function clause(conditions: readonly Condition[], then: readonly Instruction[]): Instruction[] {
  let body = [...then];
  for (const condition of conditions.toReversed()) {
    body = [...test(condition, body.length), ...body];
  }
  return body;
}

function test(condition: Condition, skip: number): Instruction[] {
  const load = instruction(BPF.LOAD, DATA.arguments + 8 * condition.argument);
  if ('any' in condition) return [load, jump(BPF.JUMP_SET, condition.any, 0, skip)];
  const { mask, value } = condition;
  const masked = mask === undefined ? [] : [instruction(BPF.AND, mask)];
  return [load, ...masked, jump(BPF.JUMP_EQUAL, value, 0, skip)];
}

const instruction = (code: number, value: number): Instruction => ({ code, yes: 0, no: 0, value });

function jump(code: number, value: number, yes: number, no: number): Instruction {
  assert(yes <= JUMP_MAX && no <= JUMP_MAX, `a jump of ${Math.max(yes, no)}`);
  return { code, yes, no, value };
}

function encode(program: readonly Instruction[]): Uint8Array {
  const output = Buffer.alloc(program.length * INSTRUCTION_BYTES);
  for (const [index, { code, yes, no, value }] of program.entries()) {
    const at = index * INSTRUCTION_BYTES;
    output.writeUInt16LE(code, at);
    output.writeUInt8(yes, at + 2);
    output.writeUInt8(no, at + 3);
    output.writeUInt32LE(value >>> 0, at + 4);
  }
  return output;
}
