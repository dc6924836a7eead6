import { describe, expect, it } from 'vitest';
import { SYSCALL_RULES } from '../src/seccomp-policy.ts';
import { BPF, compileDenials, compileSeccomp, SECCOMP } from '../src/seccomp-program.ts';
import { SYSCALLS } from '../src/syscall-table.gen.ts';

const ARCHITECTURES = { x64: 0xc000_003e, arm64: 0xc000_00b7 } as const;
type Architecture = keyof typeof ARCHITECTURES;

const programs = { x64: compileSeccomp('x64'), arm64: compileSeccomp('arm64') };

/** What the kernel would answer to a call. Also counts the steps it takes. */
function run(
  program: Uint8Array,
  call: { number: number; architecture: number; arguments?: readonly number[] },
) {
  const code = Buffer.from(program);
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number >>> 0, 0);
  data.writeUInt32LE(call.architecture, 4);
  for (const [index, value] of (call.arguments ?? []).entries()) {
    data.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)), 16 + 8 * index);
  }
  let accumulator = 0;
  let steps = 0;
  for (let at = 0; ; at += 1) {
    steps += 1;
    const yes = code.readUInt8(at * 8 + 2);
    const no = code.readUInt8(at * 8 + 3);
    const value = code.readUInt32LE(at * 8 + 4);
    switch (code.readUInt16LE(at * 8)) {
      case BPF.LOAD:
        accumulator = data.readUInt32LE(value);
        break;
      case BPF.AND:
        accumulator = (accumulator & value) >>> 0;
        break;
      case BPF.JUMP:
        at += value;
        break;
      case BPF.JUMP_EQUAL:
        at += accumulator === value ? yes : no;
        break;
      case BPF.JUMP_GREATER_OR_EQUAL:
        at += accumulator >= value ? yes : no;
        break;
      case BPF.JUMP_SET:
        at += (accumulator & value) !== 0 ? yes : no;
        break;
      case BPF.RETURN:
        return { answer: value, steps };
      default:
        throw new Error(`an instruction that the kernel does not know, at ${at}`);
    }
  }
}

const errno = (number: number) => SECCOMP.ERRNO | number;
const answerOf = (architecture: Architecture, number: number, ...args: number[]) =>
  run(programs[architecture], {
    number,
    architecture: ARCHITECTURES[architecture],
    arguments: args,
  }).answer;

function callOf(architecture: Architecture, name: string, ...args: number[]) {
  const row = SYSCALLS.find((candidate) => candidate[0] === name);
  if (row === undefined) throw new Error(`no system call ${name}`);
  return answerOf(architecture, row[architecture === 'x64' ? 1 : 2], ...args);
}

describe.each(['x64', 'arm64'] as const)('the filter for %s', (architecture) => {
  const column = architecture === 'x64' ? 1 : 2;

  it('gives every call of the table its verdict', () => {
    const answers = { allow: SECCOMP.ALLOW, eperm: errno(1), enosys: errno(38) };
    for (const row of SYSCALLS) {
      if (row[column] < 0 || row[3] === 'rule') continue;
      expect(answerOf(architecture, row[column]), row[0]).toBe(answers[row[3]]);
    }
  });

  it('knows nothing between the known numbers, and above', () => {
    const known = new Set(SYSCALLS.map((row) => row[column]));
    for (let number = 0; number < 1024; number += 1) {
      if (!known.has(number)) expect(answerOf(architecture, number)).toBe(errno(38));
    }
    expect(answerOf(architecture, 0x3fff_ffff)).toBe(errno(38));
    expect(answerOf(architecture, -1)).toBe(errno(38));
  });

  it('has a rule for every call that needs one, and no other', () => {
    const named = SYSCALLS.filter((row) => row[3] === 'rule').map((row) => row[0]);
    expect(named.sort()).toEqual(Object.keys(SYSCALL_RULES).sort());
  });

  it('ends a process that uses another ABI', () => {
    for (const audit of [0x4000_0003, 0x4000_0028, ARCHITECTURES.x64, ARCHITECTURES.arm64]) {
      if (audit === ARCHITECTURES[architecture]) continue;
      const { answer } = run(programs[architecture], { number: 0, architecture: audit });
      expect(answer).toBe(SECCOMP.KILL_PROCESS);
    }
  });

  it('refuses new namespaces, and only those', () => {
    const THREAD = 0x3d_0f00;
    for (const bit of [17, 25, 26, 27, 28, 29, 30]) {
      expect(callOf(architecture, 'clone', 2 ** bit + 17)).toBe(errno(1));
      expect(callOf(architecture, 'unshare', 2 ** bit)).toBe(errno(1));
    }
    expect(callOf(architecture, 'unshare', 0x80)).toBe(errno(1));
    expect(callOf(architecture, 'clone', THREAD)).toBe(SECCOMP.ALLOW);
    expect(callOf(architecture, 'clone3')).toBe(errno(38));
    expect(callOf(architecture, 'setns', 4, 0x1000_0000)).toBe(SECCOMP.ALLOW);
    expect(callOf(architecture, 'setns', 4, 0)).toBe(errno(1));
    expect(callOf(architecture, 'setns', 4, 0x1002_0000)).toBe(errno(1));
  });

  it('gives sockets of local and internet protocols only', () => {
    const CLOEXEC = 0o2000000;
    for (const family of [2, 10]) {
      expect(callOf(architecture, 'socket', family, 1 | CLOEXEC)).toBe(SECCOMP.ALLOW);
      expect(callOf(architecture, 'socket', family, 2, 1)).toBe(SECCOMP.ALLOW);
      expect(callOf(architecture, 'socket', family, 3 | CLOEXEC)).toBe(errno(1));
      expect(callOf(architecture, 'socket', family, 5)).toBe(errno(1));
    }
    expect(callOf(architecture, 'socket', 1, 5)).toBe(SECCOMP.ALLOW);
    expect(callOf(architecture, 'socket', 16, 3, 0)).toBe(SECCOMP.ALLOW);
    expect(callOf(architecture, 'socket', 16, 3, 6)).toBe(errno(93));
    for (const family of [15, 17, 33, 38, 40]) {
      expect(callOf(architecture, 'socket', family, 3)).toBe(errno(97));
    }
    expect(callOf(architecture, 'setsockopt', 3, 6, 31)).toBe(errno(92));
    expect(callOf(architecture, 'setsockopt', 3, 6, 1)).toBe(SECCOMP.ALLOW);
  });

  it('looks at the low half of an argument that the kernel takes as an int', () => {
    expect(callOf(architecture, 'socket', 2 ** 32 + 17, 3)).toBe(errno(97));
    expect(callOf(architecture, 'ioctl', 0, 2 ** 40 + 0x5412)).toBe(errno(1));
  });

  it('refuses ioctls by what they do, whatever size they claim', () => {
    for (const request of [0x5412, 0x541c, 0x4008_6602, 0x4004_6602, 0x401c_5820, 0xc0c0_586d]) {
      expect(callOf(architecture, 'ioctl', 0, request)).toBe(errno(1));
    }
    expect(callOf(architecture, 'ioctl', 0, 0x5401)).toBe(SECCOMP.ALLOW);
  });

  it('decides within a few steps', () => {
    const steps = SYSCALLS.filter((row) => row[column] >= 0 && row[3] !== 'rule').map(
      (row) =>
        run(programs[architecture], {
          number: row[column],
          architecture: ARCHITECTURES[architecture],
        }).steps,
    );
    expect(Math.max(...steps)).toBeLessThanOrEqual(20);
  });
});

describe('the filter for x64', () => {
  it('ends a process that uses the x32 ABI', () => {
    expect(answerOf('x64', 0x4000_0000 + 1)).toBe(SECCOMP.KILL_PROCESS);
  });
});

describe('compileSeccomp', () => {
  it('refuses an architecture without a table', () => {
    expect(() => compileSeccomp('riscv64')).toThrow(
      expect.objectContaining({ code: 'unsupported' }),
    );
  });
});

describe('denials of a policy', () => {
  const denials = [
    { call: 'kill', when: [{ argument: 1, equals: 9, mask: 0xffff_ffff }], errno: 1 },
    {
      call: 'socket',
      when: [
        { argument: 0, equals: 2, mask: 0xffff_ffff },
        { argument: 1, equals: 1, mask: 0xf },
      ],
      errno: 97,
    },
    { call: 'kill', when: [], errno: 13 },
    { call: 'chmod', when: [], errno: 38 },
  ];

  it.each(['x64', 'arm64'] as const)('each by its arguments, on %s', (architecture) => {
    const program = compileDenials(denials, architecture) ?? new Uint8Array(0);
    const column = architecture === 'x64' ? 1 : 2;
    const answer = (name: string, ...args: number[]) => {
      const number = SYSCALLS.find(([known]) => known === name)?.[column] ?? -1;
      const call = { number, architecture: ARCHITECTURES[architecture], arguments: args };
      return run(program, call).answer;
    };
    expect(answer('kill', 1, 9)).toBe(errno(1));
    expect(answer('kill', 1, 15)).toBe(errno(13));
    expect(answer('socket', 2, 1 | 0x8_0000)).toBe(errno(97));
    expect(answer('socket', 2, 2)).toBe(SECCOMP.ALLOW);
    expect(answer('socket', 1, 1)).toBe(SECCOMP.ALLOW);
    expect(answer('openat', 2, 1)).toBe(SECCOMP.ALLOW);
    // There is no chmod on arm64.
    if (architecture === 'x64') expect(answer('chmod')).toBe(errno(38));
  });

  it('more of one call than a short jump passes', () => {
    const many = Array.from({ length: 60 }, (_, equals) => ({
      call: 'prctl',
      when: [{ argument: 0, equals, mask: 0xffff_ffff }],
      errno: 22,
    }));
    const program = compileDenials([...many, { call: 'kill', when: [], errno: 1 }], 'x64');
    const answer = (number: number, ...args: number[]) =>
      run(program ?? new Uint8Array(0), {
        ...{ number, architecture: ARCHITECTURES.x64, arguments: args },
      }).answer;
    expect([answer(157, 59), answer(157, 60), answer(62), answer(0)]).toEqual([
      ...[errno(22), SECCOMP.ALLOW, errno(1), SECCOMP.ALLOW],
    ]);
  });

  it('none for calls that the architecture lacks', () => {
    expect(compileDenials([{ call: 'chmod', when: [], errno: 1 }], 'arm64')).toBeUndefined();
  });
});
