import { describe, expect, it } from 'vitest';
import {
  BARE_FACTS,
  compilePolicy,
  enforcePolicy,
  type PolicyFacts,
  parsePolicy,
  resolvePolicy,
} from '../src/index.ts';

const of = (fields: object) => resolvePolicy(parsePolicy({ version: 1, ...fields }));
const FULL: PolicyFacts = {
  landlockAbi: 7,
  hasAppArmor: true,
  deviceRules: 'bpf',
  network: 'bpf',
  hasSessionCapabilities: true,
  hasToolMount: true,
};
const hide = (path: string) => ({ path, access: ['hide'] });

describe('a policy on a node', () => {
  it('a rule is enforced when each of its denials is, by any mechanism', () => {
    const policy = of({ files: [hide('/answers'), hide('/**/conftest.py')] });
    const [mask, pattern] = compilePolicy(policy, BARE_FACTS).protections;
    expect(mask).toMatchObject({ isEnforced: true, enforcements: [{ by: 'mounts' }], why: [] });
    expect(pattern).toMatchObject({ isEnforced: false, openVerbs: ['read', 'write', 'exec'] });
    expect(pattern?.why).toEqual([
      'mounts: a mount knows no pattern',
      'landlock: this node has no Landlock',
      'apparmor: this node has no AppArmor',
    ]);
    const full = compilePolicy(policy, FULL).protections;
    expect(full.filter(({ isEnforced }) => !isEnforced)).toEqual([]);
  });

  it('where several do a part each, it is enforced by all together', () => {
    const policy = of({
      files: [
        { path: '/', access: ['read', 'write'] },
        { path: '/usr', access: ['read', 'exec'] },
      ],
    });
    const facts = { ...BARE_FACTS, landlockAbi: 7 };
    const [root, usr] = compilePolicy(policy, facts).protections;
    expect(root?.enforcements).toMatchObject([{ by: 'landlock', verbs: ['exec'] }]);
    expect(usr?.enforcements).toMatchObject([{ by: 'mounts', verbs: ['write'] }]);
  });

  it('sockets that it lacks are denied to the filter of system calls', () => {
    const policy = of({ sockets: [{ family: 'unix', types: ['stream'] }, { family: 'inet' }] });
    const { seccomp } = compilePolicy(policy, BARE_FACTS);
    const denies = (family: number, type: number) =>
      seccomp.some(
        ({ call, when }) =>
          call === 'socket' &&
          when.every(({ argument, equals, mask }) => {
            const value = argument === 0 ? family : type;
            return (value & mask) >>> 0 === equals;
          }),
      );
    const CLOEXEC = 0o2000000;
    expect(denies(1, 1)).toBe(false);
    expect(denies(1, 1 | CLOEXEC)).toBe(false);
    expect(denies(1, 2 | CLOEXEC)).toBe(true);
    expect(denies(1, 3)).toBe(true);
    expect(denies(1, 5)).toBe(true);
    expect(denies(2, 1)).toBe(false);
    expect(denies(10, 1)).toBe(true);
    expect(denies(16, 3)).toBe(true);
  });

  it('a unix socket of datagrams has two numbers', () => {
    const policy = of({ sockets: [{ family: 'unix', types: ['dgram'] }] });
    const types = compilePolicy(policy, BARE_FACTS)
      .seccomp.filter(({ call, when }) => call === 'socket' && when[0]?.equals === 1)
      .map(({ when }) => when[1]?.equals);
    expect(types).toEqual(
      Array.from({ length: 16 }, (_, n) => n).filter((n) => n !== 2 && n !== 3),
    );
  });

  it('denied calls come with their conditions; what the node does not know is told', () => {
    const policy = of({
      syscalls: [
        { call: 'kill', when: [{ argument: 1, equals: 9 }], error: 'EACCES' },
        { call: 'no_such_call' },
      ],
    });
    const { seccomp, protections } = compilePolicy(policy, {
      ...BARE_FACTS,
      systemCalls: new Set(['kill']),
    });
    expect(seccomp).toEqual([
      { call: 'kill', when: [{ argument: 1, equals: 9, mask: 0xffff_ffff }], errno: 13 },
    ]);
    expect(protections.find(({ isEnforced }) => !isEnforced)).toMatchObject({
      rule: { source: { field: 'syscalls.1' } },
      why: ['seccomp: there is no system call no_such_call'],
    });
  });

  it('devices are rules where something judges them, masks elsewhere', () => {
    const policy = of({ devices: ['null', 'pts', 'ptmx', 'tty', 'zero', 'full', 'urandom'] });
    const { devices } = compilePolicy(policy, FULL);
    expect(devices.rules).toHaveLength(7);
    expect(devices.rules[1]).toEqual({
      type: 'char',
      major: 136,
      minor: -1,
      access: 'read-write',
    });
    const bare = compilePolicy(policy, BARE_FACTS);
    expect(bare.devices.rules).toEqual([]);
    expect(bare.mounts.map(({ kind, target }) => [kind, Buffer.from(target).toString()])).toEqual([
      ['mask', '/dev/random'],
    ]);
  });

  it('capabilities are a part of the platform’s', () => {
    const policy = of({ capabilities: ['chown', 'setfcap'] });
    expect(compilePolicy(policy, FULL).capabilities.mask).toBe(0x8000_0001n);
    expect(compilePolicy(of({}), FULL).capabilities.mask).toBe(0x8000_05fbn);
    const { protections } = compilePolicy(policy, BARE_FACTS);
    expect(protections.find(({ rule }) => rule.section === 'capabilities')?.isEnforced).toBe(false);
    const all = compilePolicy(of({}), BARE_FACTS).protections;
    expect(all.every(({ isEnforced }) => isEnforced)).toBe(true);
  });

  it('without packets to judge nothing is let through', () => {
    const policy = of({ network: [{ kind: 'service', target: 'pypi' }] });
    expect(compilePolicy(policy, BARE_FACTS).network).toEqual([]);
    expect(compilePolicy(policy, FULL).network).toHaveLength(1);
  });
});

describe('what a policy requires', () => {
  it('is there, and the policy is compiled', () => {
    const policy = of({ files: [hide('/answers')], require: ['files', 'mounts', 'seccomp'] });
    expect(enforcePolicy(policy, BARE_FACTS).mounts).toHaveLength(1);
  });

  it.each<[object, Partial<PolicyFacts>, object]>([
    [
      { files: [hide('/**/*.key')], require: ['files'] },
      { landlockAbi: 7 },
      { requirement: 'files', field: 'files.0', origin: 'policy', rule: '/**/*.key: hide' },
    ],
    [{ require: ['apparmor'] }, {}, { requirement: 'apparmor' }],
    [{ require: ['landlock'] }, {}, { requirement: 'landlock' }],
    [{ require: ['landlock'] }, { landlockAbi: 7 }, { requirement: 'landlock' }],
    [{ require: ['device-rules'] }, {}, { requirement: 'device-rules' }],
    [{ require: ['agent'] }, {}, { requirement: 'agent' }],
    [
      { capabilities: [], require: ['capabilities'] },
      {},
      { requirement: 'capabilities', field: 'capabilities', origin: 'policy' },
    ],
    [
      { network: [{ kind: 'service', target: 'pypi' }], require: ['network'] },
      {},
      { requirement: 'network', field: 'network.0', origin: 'policy' },
    ],
  ])('%j is refused with what the node lacks', (fields, facts, details) => {
    expect(() => enforcePolicy(of(fields), { ...BARE_FACTS, ...facts })).toThrowError(
      expect.objectContaining({ code: 'unsupported', details: expect.objectContaining(details) }),
    );
  });
});
