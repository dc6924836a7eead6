/**
 * Grading against a solver that cheats (THREATS rows 9, 10, 11, 13 and 14): the state that it leaves is shown
 * to change a run in its own sandbox first, and then not to change what is graded.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Client, type DsecError, type GradeOptions, type Sandbox } from '@dsec/libdsec';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  BASE,
  GRADER,
  type GradingWorld,
  importTree,
  openGradingWorld,
  REQUEST,
  RIGHT,
  WORKSPACE,
} from './grading-world.ts';

const isRoot = process.getuid?.() === 0;
const PASSED = ['passed', 'passed'];
const FAILED = ['failed', 'failed'];

let world: GradingWorld;

async function graded(sandbox: Sandbox, more: Partial<GradeOptions> = {}) {
  const report = await sandbox.grade({ ...REQUEST, ...more });
  return { ...report, outcomes: report.tests.map(({ outcome }) => outcome) };
}

/** Makes a solver, has it do something, and grades it. */
async function gradeAfter(script: string, more: Partial<GradeOptions> = {}) {
  await using solver = await world.solver();
  const done = await solver.exec(script, { user: 'root' });
  expect(done.stderr).toBe('');
  return await graded(solver, more);
}

const refusal = (code: string, text: RegExp = /./) =>
  expect.objectContaining({ code, message: expect.stringMatching(text) });

const write = (path: string, text: string) => `cat > ${path} <<'END'\n${text}END\n`;
const SOLVE = write('/work/src/sum.sh', RIGHT);

describe.skipIf(!isRoot)('grading (needs root)', () => {
  beforeAll(async () => {
    world = await openGradingWorld();
  });

  afterAll(async () => {
    await world?.close();
  });

  it('tells what the grader found, and leaves nothing behind', async () => {
    const wrong = await gradeAfter(':');
    expect(wrong).toMatchObject({ outcomes: FAILED, total: 2, passed: 0, trusted: true });
    const right = await gradeAfter(SOLVE);
    expect(right).toMatchObject({ outcomes: PASSED, passed: 2, leftCount: 1 });
    expect(right.left).toEqual([{ path: '/work/src/tests', reason: 'test' }]);
    const running = [];
    for await (const { info } of world.client.list({ state: ['running'] })) running.push(info);
    expect(running).toEqual([]);
  });

  it('carries what was removed over', async () => {
    const commands = [
      {
        argv: [
          'sh',
          '-c',
          'read -r word <&4; test -e /work/src/old.sh; echo "$word passed gone-$?" >&3',
        ],
        expect: ['gone-1'],
      },
    ];
    expect(await gradeAfter('rm /work/src/old.sh', { commands })).toMatchObject({ passed: 1 });
    await expect(gradeAfter(':', { commands })).rejects.toEqual(refusal('grade-invalid'));
  });

  it('9 PATH wrappers, preloads and replaced programs are not there', async () => {
    await using solver = await world.solver();
    // Found first by its own shell: what would be run had it stayed.
    const cheat =
      'mkdir -p /usr/local/bin; printf "#!/bin/sh\\necho cheat\\n" > /bin/head; echo 42 > /etc/ld.so.preload';
    await solver.exec(cheat);
    expect((await solver.exec('cat /bin/head')).stdout).toContain('cheat');
    expect((await graded(solver)).outcomes).toEqual(FAILED);
  });

  it('10 files that act on tests are left, and those of the builder stay', async () => {
    const names = ['conftest.py', 'evil.pth', 'sitecustomize.py', 'usercustomize.py', 'pytest.ini'];
    const plant = names.map((name) => `echo cheat > /work/src/${name}`).join('; ');
    const commands = [
      {
        argv: [
          ...['sh', '-c'],
          'read -r word <&4; echo "$word passed $(ls /work/src | tr "\\n" ,)" >&3;' +
            'echo "$word passed $(cat /work/src/tests/kept.txt)" >&3',
        ],
        expect: ['old.sh,sum.sh,tests,', 'as it was'],
      },
    ];
    const tests = 'echo cheat > /work/src/tests/kept.txt; echo more > /work/src/tests/more';
    const report = await gradeAfter(`${plant}; mkdir /work/src/.git; ${tests}`, { commands });
    expect(report.passed).toBe(2);
    expect(report.left.map(({ path }) => path).sort()).toEqual(
      [...names, '.git', 'tests'].map((name) => `/work/src/${name}`).sort(),
    );
    // With the full state they are there, and nobody is to trust that.
    const full = await gradeAfter(plant, {
      fullState: true,
      commands: [
        {
          argv: [
            'sh',
            '-c',
            'read -r word <&4; echo "$word passed $(cat /work/src/conftest.py)" >&3',
          ],
          expect: ['cheat'],
        },
      ],
    });
    expect(full).toMatchObject({ trusted: false, passed: 1 });
  });

  it('11 a run without its tests is no score, whatever its status', async () => {
    const early = (script: string) => ({
      commands: [{ argv: ['sh', '-c', script], expect: ['one'] }],
    });
    const cases = [
      ['exit 0', /1 of 1 expected/],
      ['exit 1', /ended with exit 1/],
      ['kill -9 $$', /signal 9/],
      ['echo "passed one" >&3', /something else/],
      ['echo "0123456789abcdef0123456789abcdef passed one" >&3', /something else/],
      ['read -r w <&4; echo "$w passed one" >&3; echo "$w passed one" >&3', /twice/],
      ['read -r w <&4; echo "$w passed one" >&3; echo "$w passed two" >&3', /others were/],
      ['read -r w <&4; echo "$w passed one" >&3; exit 7', /exit 7/],
      ['echo "test passed one"; echo "exit 0"', /1 of 1 expected/],
    ] as const;
    await using solver = await world.solver();
    for (const [script, why] of cases) {
      await expect(graded(solver, early(script)), script).rejects.toEqual(
        refusal('grade-invalid', why),
      );
    }
    const good = 'read -r w <&4; echo "$w passed one" >&3';
    expect(await graded(solver, early(good))).toMatchObject({ passed: 1 });
  });

  it('11 tested code cannot reach the channel, the runner or the tools', async () => {
    const attacks = [
      'for p in /proc/[0-9]*; do for f in 1 2 3 4 5 6; do echo "x passed one" > $p/fd/$f; done; done',
      'cd /proc; for p in [0-9]*; do kill -9 $p; done',
      'cat /.dsec/platform/runner > /tmp/x; echo y > /.dsec/platform/runner',
      'echo y > /.dsec/sum/check.sh; rm -rf /.dsec; mv /.dsec /gone; mkdir /.dsec/new',
    ].map((attack) => `(${attack}) 2>/dev/null`);
    const solution = `${attacks.join('\n')}\necho $(($1 + $2))\n`;
    for (const user of ['65533:65533', 'root']) {
      const commands = [{ ...REQUEST.commands[0], user }];
      const work = gradeAfter(write('/work/src/sum.sh', solution), { commands });
      // It may end the grader's own program, which has its user: that is no score.
      const outcome = await work.then(
        ({ outcomes }) => outcomes,
        ({ code }: DsecError) => code,
      );
      expect([PASSED, FAILED, 'grade-invalid'], user).toContainEqual(outcome);
    }
  });

  it('what is no file is left, and what is too large is refused', async () => {
    const odd = [
      'rm -rf /work/src; mkdir /work/src; cd /work/src',
      'mkfifo fifo; ln -s /etc/passwd out; ln -s ../../etc up; ln -s a/.. hop; mkdir a; ln -s a in',
      'echo x > one; ln one two; echo y > suid; chmod 4755 suid',
    ].join('\n');
    const report = await gradeAfter(odd, {
      commands: [
        {
          argv: [
            'sh',
            '-c',
            'read -r w <&4; cd /work/src; for f in *; do echo "$w passed $f" >&3; done; ' +
              'test -u suid || echo "$w passed plain" >&3',
          ],
          expect: ['a', 'in', 'suid', 'tests', 'plain'],
        },
      ],
    });
    expect(
      Object.fromEntries(report.left.map(({ path, reason }) => [path.slice(10), reason])),
    ).toEqual({
      ...{ fifo: 'kind', out: 'link-target', up: 'link-target', hop: 'link-target' },
      ...{ one: 'hard-link', two: 'hard-link' },
    });
    await expect(gradeAfter('truncate -s 10G /work/src/huge')).rejects.toEqual(
      refusal('too-large'),
    );
    await expect(
      gradeAfter('i=0; while [ $i -lt 60 ]; do : > /work/src/n$i; i=$((i+1)); done', {
        entriesMax: 20,
      }),
    ).rejects.toEqual(refusal('too-large'));
    // The solution path itself as a link to another tree.
    const linked = await gradeAfter('mv /work/src /work/other; ln -s other /work/src');
    expect(linked.left).toEqual([{ path: '/work/src', reason: 'kind' }]);
  });

  it('13 nothing can be put where the platform has its tools', async () => {
    await using solver = await world.solver();
    await expect(solver.files.write('/.dsec/x', 'y')).rejects.toEqual(refusal('permission-denied'));
    await expect(solver.files.mkdir('/a/../.dsec')).rejects.toEqual(refusal('permission-denied'));
    await expect(
      importTree(world.client, 'toolkit/evil:1.0.0', { '.dsec/sum/check.sh': 'x' }),
    ).rejects.toEqual(refusal('import-invalid'));
    await expect(graded(solver, { solutionPaths: ['/.dsec'] })).rejects.toEqual(
      refusal('invalid-argument'),
    );
    // Its own directory of that name is in the way of nothing.
    await solver.exec('mkdir -p /.dsec/sum; echo "exit 0" > /.dsec/sum/check.sh');
    expect((await graded(solver)).outcomes).toEqual(FAILED);
  });

  it('13 tools are mounts of their own, read-only and without set-user-id', async () => {
    await importTree(world.client, 'tools/kit:1.0.0', { hello: 'from the kit\n' });
    await using box = await world.client.create({ layers: [BASE, WORKSPACE, 'tools/kit:1.0.0'] });
    expect((await box.exec('cat /.dsec/kit/hello')).stdout).toBe('from the kit\n');
    const changes = [
      'echo x > /.dsec/kit/hello',
      'rm -r /.dsec/kit',
      'mkdir /.dsec/more',
      'mv /.dsec /x',
    ];
    for (const change of [...changes, 'touch /.dsec', 'chmod 0 /.dsec']) {
      expect((await box.exec(`${change} 2>/dev/null`)).ok, change).toBe(false);
    }
    const { edge } = world.server.pids;
    const mounts = mountsWith('/.dsec', edge);
    expect(mounts.map(({ point, type }) => `${point} ${type}`).sort()).toEqual([
      '/.dsec tmpfs',
      '/.dsec/kit erofs',
    ]);
    for (const { options } of mounts) {
      expect(options).toEqual(expect.arrayContaining(['ro', 'nosuid', 'nodev']));
    }
  });

  it('14 what a solver left running is not there', async () => {
    await using solver = await world.solver();
    const daemon = 'while :; do echo "echo 42" > /work/src/sum.sh; sleep 0.01; done';
    await solver.start(['sh', '-c', daemon]);
    const look = 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " " | grep -c "[s]um.sh"';
    expect((await solver.exec(look)).stdout).toBe('1\n');
    const argv = ['sh', '-c', `read -r w <&4; echo "$w passed $(${look})" >&3`];
    const report = await graded(solver, { commands: [{ argv, expect: ['0'] }] });
    expect(report.passed).toBe(1);
  });

  it('solvers see neither answers nor those who grade', async () => {
    const { url } = world.server.variables;
    const scopes = [
      'sandboxes:read',
      'sandboxes:write',
      'exec',
      'files:read',
      'layers:write',
    ] as const;
    const { secret: apiKey = '' } = await world.client.keys.create('solver', [...scopes]);
    const other = new Client({ url, apiKey });
    const denied = refusal('permission-denied');
    try {
      await expect(other.create({ layers: [BASE, GRADER] })).rejects.toEqual(denied);
      await expect(other.create({ layers: [BASE, GRADER], grading: true })).rejects.toEqual(denied);
      await expect(other.create({ layers: [BASE], grading: true })).rejects.toEqual(denied);
      await expect(importTree(other, 'grading/mine:1.0.0', { a: 'b' })).rejects.toEqual(denied);
      const named = await world.client.layers.resolve(GRADER);
      for (const kind of ['toolkit', 'tools', 'workspace'] as const) {
        await expect(other.layers.tag(kind, 'stolen', '1.0.0', named.layerId)).rejects.toEqual(
          refusal('invalid-argument', /grading/),
        );
      }
      await using box = await world.client.create({ layers: [BASE, GRADER], grading: true });
      expect((await box.exec('cat /.dsec/sum/answers.txt')).stdout).toContain('canary-of');
      const seen = await other.get(box.id);
      await expect(seen.exec('cat /.dsec/sum/answers.txt')).rejects.toEqual(denied);
      await expect(seen.files.read('/.dsec/sum/answers.txt')).rejects.toEqual(denied);
      await using solver = await other.create({ layers: [BASE, WORKSPACE] });
      await expect(graded(solver)).rejects.toEqual(denied);
    } finally {
      await other.close();
    }
  });
});

interface MountLine {
  readonly point: string;
  readonly type: string;
  readonly options: readonly string[];
}

/** Of every mount table on this machine that has some below a path, as the host reads it. */
function mountsWith(place: string, _edge: number): MountLine[] {
  const tables = execFileSync(
    'sh',
    ['-c', 'grep -l " /.dsec " /proc/[0-9]*/mountinfo 2>/dev/null || true'],
    {
      encoding: 'utf8',
    },
  );
  const [table = ''] = tables.split('\n');
  return readFileSync(table, 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , , , point = '']) => point.startsWith(place))
    .map((parts) => ({
      point: parts[4] ?? '',
      options: (parts[5] ?? '').split(','),
      type: parts[parts.indexOf('-') + 1] ?? '',
    }));
}
