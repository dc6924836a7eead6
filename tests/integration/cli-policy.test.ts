/** `dsec policy` as a person starts it. What a node enforces differs; what holds on each is looked at. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const CLI = fileURLToPath(new URL('../../packages/dsec/dist/cli.js', import.meta.url));

function dsec(args: readonly string[], input: object | string = '') {
  const text = typeof input === 'string' ? input : JSON.stringify(input);
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, 'policy', ...args], {
    input: text,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

const POLICY = {
  version: 1,
  extends: 'default',
  files: [{ path: '/answers/**', access: ['read'] }],
  stages: { grade: { files: [{ path: '/answers', access: ['hide'] }] } },
};

describe('dsec policy check', () => {
  it('lists rules with what enforces them, and what a switch means', () => {
    const { status, stdout } = dsec(['check', '-'], POLICY);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^\/answers: read +policy +yes +mounts/m);
    expect(stdout).toContain('stage grade: a tightening; hides /answers; sessions end');
  });

  it('gives programs the same', () => {
    const { stages } = JSON.parse(dsec(['check', '-', '--json'], POLICY).stdout);
    expect(stages).toHaveLength(2);
    expect(stages[1]).toMatchObject({
      stage: 'grade',
      change: { isTightening: true, hides: ['/answers'], endsSessions: true },
    });
  });

  it('exits with 17 where this machine cannot enforce what is required', () => {
    // Nothing loads profiles yet.
    const policy = { version: 1, require: ['apparmor'] };
    const { status, stderr } = dsec(['check', '-'], policy);
    expect(status).toBe(17);
    expect(stderr).toContain('this node cannot protect by apparmor');
  });

  it.each([
    ['{', 'not JSON'],
    [{ version: 1, files: [{ path: '/a', access: ['exec'] }] }, 'files.0.access'],
    [{ version: 1, extends: 'nobody' }, 'there is no profile nobody'],
  ])('exits with 2 for %j, and says where it is', (input, text) => {
    const { status, stderr } = dsec(['check', '-'], input);
    expect(status).toBe(2);
    expect(stderr).toContain(text);
  });

  it('names of a policy reach the terminal escaped', () => {
    const files = [{ path: '/\u202e\u009b31m', access: ['hide'] }];
    const { stdout } = dsec(['check', '-'], { version: 1, files });
    expect(stdout).toContain('\\u{202e}\\u{9b}31m');
  });
});

describe('dsec policy explain', () => {
  it('answers what is asked, in a stage', () => {
    const asked = ['explain', '-', '--path', '/answers/x', '--service', 'pypi'];
    const outside = JSON.parse(dsec([...asked, '--json'], POLICY).stdout).answers;
    const grade = JSON.parse(dsec([...asked, '--json', '--stage', 'grade'], POLICY).stdout).answers;
    const verdicts = (answers: { what: string; verdict: string }[]) =>
      answers.map(({ what, verdict }) => `${verdict} ${what}`);
    expect(verdicts(outside)).toEqual([
      'allow read /answers/x',
      'deny write /answers/x',
      'deny exec /answers/x',
      'deny service pypi',
    ]);
    expect(verdicts(grade)[0]).toBe('deny read /answers/x');
    expect(dsec(asked, POLICY).stdout).toContain('deny  write /answers/x by mounts');
  });

  it.each([
    [[], 'what is asked?'],
    [['--path', 'relative'], 'an absolute path'],
    [['--stage', 'deploy', '--path', '/a'], '--stage: build, solve, grade'],
    [['--host', 'a.org', '--port', '0'], '--port'],
    [['--syscall', 'kill:nine'], 'numbers after the colon'],
  ])('%j is refused with %s', (args, text) => {
    const { status, stderr } = dsec(['explain', 'profile:default', ...args]);
    expect(status).toBe(2);
    expect(stderr).toContain(text);
  });
});
