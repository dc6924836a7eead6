import { describe, expect, it } from 'vitest';
import {
  BARE_FACTS,
  explainPolicy,
  parsePolicy,
  type Question,
  renderAnswers,
  resolvePolicy,
} from '../src/index.ts';

const policy = resolvePolicy(
  parsePolicy({
    version: 1,
    extends: 'default',
    files: [
      { path: '/answers', access: ['hide'] },
      { path: '/**/conftest.py', access: ['read'] },
    ],
    sockets: [{ family: 'unix' }, { family: 'inet' }],
    network: [
      { kind: 'service', target: 'pypi' },
      { kind: 'domain', target: '*.example.org' },
      { kind: 'address', target: '192.0.2.0/24', ports: [5432], protocol: 'tcp' },
    ],
    syscalls: [{ call: 'ptrace' }, { call: 'kill', when: [{ argument: 1, equals: 9 }] }],
    devices: ['null', 'tty'],
    capabilities: ['chown'],
  }),
);

const FACTS = { ...BARE_FACTS, network: 'bpf' as const };
const render = (question: Question) => renderAnswers(explainPolicy(policy, FACTS, question));

describe('an explanation', () => {
  it('names the rule, where it stands, and what enforces it', () => {
    expect(render({ path: '/answers/1.txt' })).toBe(
      [
        'deny  read /answers/1.txt by mounts',
        '      /answers: hide (policy, files.0)',
        'deny  write /answers/1.txt by mounts',
        '      /answers: hide (policy, files.0)',
        'deny  exec /answers/1.txt by mounts',
        '      /answers: hide (policy, files.0)',
      ].join('\n'),
    );
  });

  it('says plainly what nothing enforces, and why', () => {
    const [read, write] = explainPolicy(policy, FACTS, { path: '/work/conftest.py' });
    expect(read).toMatchObject({ verdict: 'allow' });
    expect(write).toMatchObject({ verdict: 'deny', isEnforced: false, by: [] });
    expect(write?.notes).toContain('mounts: a mount knows no pattern');
    expect(render({ path: '/work/conftest.py' })).toContain('NOT ENFORCED');
  });

  it('says what no rule speaks of', () => {
    const [read] = explainPolicy(policy, FACTS, { path: '/etc/passwd' });
    expect(read).toEqual({
      what: 'read /etc/passwd',
      verdict: 'allow',
      by: [],
      isEnforced: true,
      notes: ['no rule speaks of it: as the file system has it'],
    });
  });

  it.each<[Question, 'allow' | 'deny', string?]>([
    [{ socket: { family: 'inet', type: 'stream' } }, 'allow'],
    [{ socket: { family: 'netlink', type: 'raw' } }, 'deny', 'seccomp'],
    [{ socket: { family: 'packet', type: 'raw' } }, 'deny', 'seccomp'],
    [{ syscall: 'ptrace' }, 'deny', 'seccomp'],
    [{ syscall: 'kill' }, 'allow'],
    [{ syscall: 'kill', arguments: [1, 9] }, 'deny', 'seccomp'],
    [{ syscall: 'kill', arguments: [1, 2 ** 32 + 9] }, 'deny', 'seccomp'],
    [{ syscall: 'kill', arguments: [1, 15] }, 'allow'],
    [{ device: 'tty' }, 'allow'],
    [{ device: 'full' }, 'deny', 'mounts'],
    [{ capability: 'chown' }, 'allow'],
    [{ service: 'pypi' }, 'allow'],
    [{ service: 'npm' }, 'deny', 'network'],
    [{ host: 'a.example.org' }, 'allow'],
    [{ host: 'a.example.org', port: 443 }, 'allow'],
    [{ host: 'a.example.org', port: 22 }, 'deny', 'network'],
    [{ host: 'example.org' }, 'deny', 'network'],
    [{ host: '192.0.2.7', port: 5432 }, 'allow'],
    [{ host: '192.0.2.7', port: 5432, protocol: 'udp' }, 'deny', 'network'],
    [{ host: '192.0.2.7', port: 80 }, 'deny', 'network'],
    [{ host: '192.0.3.7', port: 5432 }, 'deny', 'network'],
  ])('of %j: %s', (question, verdict, by) => {
    const [answer] = explainPolicy(policy, FACTS, question);
    expect(answer).toMatchObject({ verdict, ...(by !== undefined && { by: [by] }) });
  });

  it('a capability that only the agent could take is not enforced without it', () => {
    const [answer] = explainPolicy(policy, FACTS, { capability: 'kill' });
    expect(answer).toMatchObject({ verdict: 'deny', isEnforced: false });
  });
});
