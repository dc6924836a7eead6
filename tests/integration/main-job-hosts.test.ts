/** `npm start` where it cannot work: what is missing, and how to get it. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ERROR_CODES } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
const BOOTSTRAP = join(REPOSITORY, 'tools/bootstrap.mjs');
const MAIN_JOB = join(REPOSITORY, 'packages/dsec/dist/main-job.js');
const BOOTSTRAP_REFUSES_HOST = 3;

compileFirst(join(REPOSITORY, 'packages/dsec'));

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'dsec-hosts-'));
  chmodSync(root, 0o777);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function start(prefix: readonly string[], ...words: readonly string[]) {
  const [file = '', ...args] = [...prefix, process.execPath, ...words];
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: 'utf8', timeout: 60_000 });
  return { status, text: stdout + stderr };
}

const mainJob = () => [
  MAIN_JOB,
  '--once',
  '--state',
  join(root, 'state'),
  '--listen',
  '127.0.0.1:0',
];

/** The kernel tells this process and its children that it is an old one. */
const OLD_KERNEL = ['setarch', '--uname-2.6'];

describe('on an old kernel', () => {
  it('names the kernel that it needs and how to get one, before anything is installed or made', () => {
    for (const [words, status] of [
      [[BOOTSTRAP], BOOTSTRAP_REFUSES_HOST],
      [mainJob(), ERROR_CODES.unsupported.exitCode],
    ] as const) {
      const told = start(OLD_KERNEL, ...words);
      expect(told.status).toBe(status);
      expect(told.text).toMatch(/2\.6\.\S+ is (too old|older)/);
      expect(told.text).toContain('6.12');
      expect(told.text).toMatch(/apt-get install|install a newer kernel/);
      expect(told.text).toContain('then reboot');
    }
    expect(existsSync(join(root, 'state'))).toBe(false);
  });
});

const isRoot = process.getuid?.() === 0;

describe.skipIf(!isRoot)('as an ordinary user (needs root to become one)', () => {
  it('says how to start it, and leaves nothing', () => {
    const ordinary = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    const told = start(ordinary, ...mainJob());
    expect(told.status).toBe(ERROR_CODES.unsupported.exitCode);
    expect(told.text).toContain('sudo npm start');
    expect(told.text).toContain('dsec doctor');
    expect(told.text).not.toMatch(/EACCES|EPERM|\bat .*\.js:/);
    expect(readdirSync(root)).toEqual([]);
  });
});
