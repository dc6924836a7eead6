import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TestRecord } from './record.mjs';
import { type RunContext, runSuite } from './run-suite.mjs';
import type { SuiteStep } from './suites.mjs';

let folder = '';
let context: RunContext;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dsec-suite-'));
  context = {
    root: join(folder, 'root'),
    folder,
    runId: basename(folder),
    long: false,
    isRoot: process.getuid?.() === 0,
    onRecord: () => {},
    onFile: () => {},
  };
  mkdirSync(context.root);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function runScript(
  script: string,
  counts: SuiteStep['counts'] = 'itself',
  limitS = 20,
): Promise<TestRecord[]> {
  const steps: SuiteStep[] = [{ name: 'step', command: ['bash', '-c', script], counts }];
  return runSuite({ name: 'sample', about: 'a sample', limitS, steps }, context);
}

const short = (records: TestRecord[]) => records.map(({ name, state }) => `${state} ${name}`);
const tell = (event: object) => `echo '${JSON.stringify(event)}' >&3;`;
const test = (state: string, reason?: string) =>
  tell({
    kind: 'test',
    file: 'a.test.ts',
    name: `is ${state}`,
    state,
    durationMs: 1,
    reason,
    errors: [],
  });
const end = tell({ kind: 'end', errors: [] });

describe('a command that is one test', () => {
  it('passes with exit code 0 and fails with another, showing the end of its output', async () => {
    expect(short(await runScript('true'))).toEqual(['passed step']);
    const [record] = await runScript('seq 1 100; exit 3');
    expect(record).toMatchObject({ state: 'failed' });
    expect(record?.errors[0]).toMatch(/ended with 3:\n61\n[\s\S]*\n100$/);
    expect(readFileSync(join(context.root, '.cache/test/sample.log'), 'utf8')).toContain('\n50\n');
  });

  it('fails when its time is over, and is ended', async () => {
    const [record] = await runScript('echo before; sleep 60', 'itself', 0.5);
    expect(record).toMatchObject({ state: 'failed' });
    expect(record?.errors[0]).toMatch(/its time limit:\nbefore/);
  });

  it('is skipped with its last line as the reason when it says that it cannot run here', async () => {
    const records = await runScript('echo trying; echo no QEMU >&2; exit 75', 'vitest');
    expect(records).toMatchObject([{ state: 'skipped', reason: 'no QEMU' }]);
  });

  it('is skipped with the reason when there is nothing to run', async () => {
    const step: SuiteStep = {
      name: 'step',
      command: ['false'],
      counts: 'itself',
      absent: () => 'no such part yet',
    };
    const records = await runSuite(
      { name: 'sample', about: '', limitS: 9, steps: [step] },
      context,
    );
    expect(records).toMatchObject([{ state: 'skipped', reason: 'no such part yet' }]);
  });
});

describe('tests that are told one by one', () => {
  it('are counted, and skips without a reason are failures', async () => {
    const script = test('passed') + test('skipped', 'why') + test('skipped') + end;
    expect(short(await runScript(script, 'vitest'))).toEqual([
      'passed is passed',
      'skipped is skipped',
      'failed is skipped',
    ]);
  });

  it('are a failure when the runner breaks off, also with exit code 0', async () => {
    expect(short(await runScript(test('passed'), 'vitest'))).toEqual([
      'passed is passed',
      'failed step',
    ]);
  });

  it('are a failure when the runner fails without naming a test', async () => {
    expect(short(await runScript(`${end} exit 1`, 'vitest'))).toEqual(['failed step']);
  });

  it('fail with the errors outside of tests', async () => {
    const broken = tell({
      kind: 'file',
      file: 'b.test.ts',
      durationMs: 1,
      errors: ['no such module'],
    });
    const records = await runScript(`${broken} ${end} exit 1`, 'vitest');
    expect(records).toMatchObject([
      { file: 'b.test.ts', state: 'failed', errors: ['no such module'] },
    ]);
  });

  it('are read from TAP and JUnit', async () => {
    expect(short(await runScript('echo ok 1 - a; echo not ok 2 - b; exit 1', 'tap'))).toEqual([
      'passed a',
      'failed b',
    ]);
    expect(short(await runScript('exit 0', 'tap'))).toEqual(['passed step']);
    const xml = '<testcase classname="c" name="d" time="1"/>';
    expect(short(await runScript(`echo '${xml}' > $DSEC_TEST_JUNIT`, 'junit'))).toEqual([
      'passed d',
    ]);
    expect(short(await runScript('exit 4', 'junit'))).toEqual(['failed step']);
  });
});

describe('what a suite leaves behind', () => {
  it('fails it: a file', async () => {
    const [, record] = await runScript('touch $TMPDIR/forgotten');
    expect(record).toMatchObject({ name: 'leaves nothing behind', state: 'failed' });
    expect(record?.errors[0]).toContain('sample/forgotten');
  });

  it('fails it: a process in a session of its own, which is ended', async () => {
    // Not before it runs: in the middle of an exec a process shows no environment.
    const started = 'until grep -qx sleep /proc/$!/comm; do sleep 0.01; done';
    const [, record] = await runScript(`setsid sleep 77 >/dev/null 2>&1 3>&- & ${started}`);
    expect(record?.errors[0]).toMatch(/process \d+: sleep 77/);
    const pid = /process (\d+)/.exec(record?.errors[0] ?? '')?.[1];
    await expect.poll(() => isRunning(Number(pid))).toBe(false);
  });

  it('is nothing for a suite with mounts of its own (needs root)', async ({ skip }) => {
    skip(!context.isRoot, 'needs root');
    const target = join(folder, 'mounted');
    mkdirSync(target);
    const script =
      `mount -t tmpfs none ${target} && touch ${target}/x && ` +
      'echo $DSEC_TEST_PRIVATE_MOUNTS $(readlink /proc/self/ns/mnt)';
    const steps: SuiteStep[] = [
      { name: 'step', command: ['bash', '-c', script], counts: 'itself' },
    ];
    const suite = { name: 'sample', about: '', limitS: 20, steps, privateMounts: true };
    expect(short(await runSuite(suite, context))).toEqual(['passed step']);
    const log = readFileSync(join(context.root, '.cache/test/sample.log'), 'utf8');
    const [told, own] = log.trim().split(' ');
    expect(told).toBe(own);
    expect(told).not.toBe(readlinkSync('/proc/self/ns/mnt'));
    expect(existsSync(join(target, 'x'))).toBe(false);
  });
});

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
