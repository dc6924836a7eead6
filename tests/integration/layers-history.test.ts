/** History that was cut is looked for as somebody would who knows where git keeps things (THREATS row 42). */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  checkHistory,
  createLayerStore,
  cutHistory,
  directoryFiles,
  importLayer,
  layerFiles,
} from '@dsec/layers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';

const CANARY = 'canary-of-the-removed-future';
const hasGit = spawnSync('git', ['--version']).status === 0;

compileFirst(join(import.meta.dirname, '../../packages/layers'));

let root: string;
let work: string;

const git = (...args: readonly string[]): string =>
  execFileSync('git', ['-C', work, '-c', 'user.name=n', '-c', 'user.email=e@e', ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' },
  }).trim();

const write = (path: string, text: string) => writeFileSync(join(work, path), text);

function commit(message: string): string {
  git('add', '-A');
  git('commit', '-q', '-m', message);
  return git('rev-parse', 'HEAD');
}

/** A repository whose future is in every place that git has for it. Returns the commit to keep. */
function makeRepository(): string {
  git('init', '-q', '-b', 'main');
  write('code.py', 'old\n');
  commit('first');
  write('code.py', 'a little newer\n');
  const kept = commit('kept');
  write('code.py', `fixed ${CANARY}\n`);
  write('answer.txt', `${CANARY} answer\n`);
  commit(`fix ${CANARY}`);
  git('tag', '-a', 'v2', '-m', CANARY);
  git('notes', 'add', '-m', CANARY);
  git('branch', 'future');
  git('gc', '-q');
  write('answer.txt', `${CANARY} once more\n`);
  commit('loose');
  write('answer.txt', `${CANARY} stashed\n`);
  git('stash', '-q');
  git('reset', '-q', '--hard', kept);
  git('replace', kept, 'future');
  mkdirSync(join(work, '.git/modules/sub/objects'), { recursive: true });
  write('.git/modules/sub/secret', CANARY);
  write('.git/hooks/post-checkout', `#!/bin/sh\ntouch ${join(root, 'ran')}\n`);
  execFileSync('chmod', ['755', join(work, '.git/hooks/post-checkout')]);
  for (const setting of ['core.fsmonitor', 'core.sshCommand', 'core.editor']) {
    git('config', setting, `touch ${join(root, 'ran')}`);
  }
  mkdirSync(join(work, '__pycache__'));
  write('__pycache__/code.cpython-311.pyc', CANARY);
  mkdirSync(join(work, 'inner'));
  execFileSync('git', ['init', '-q', join(work, 'inner')]);
  return kept;
}

const objects = () =>
  git('cat-file', '--batch-all-objects', '--batch-check=%(objectname)').split('\n');

const askAll = (removed: readonly string[]) =>
  checkHistory(directoryFiles(work), { removed, canary: CANARY });

describe.skipIf(!hasGit)('history that is cut (needs git)', () => {
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'dsec-history-'));
    work = join(root, 'work');
    mkdirSync(work);
  });

  afterEach(() => rmSync(root, { recursive: true, force: true }));

  it('42 is nowhere any more: neither its objects nor its text', async () => {
    const kept = makeRepository();
    rmSync(join(root, 'ran'), { force: true });
    const before = objects();
    const cut = await cutHistory({ directory: work });
    expect(existsSync(join(root, 'ran'))).toBe(false);
    expect(cut.commit).toBe(kept);
    expect(cut.removed.length + cut.keptObjects).toBe(before.length);
    expect([...cut.residue].sort()).toEqual(['__pycache__', 'inner/.git']);
    expect(await askAll(cut.removed)).toMatchObject({ objects: cut.keptObjects, problems: [] });
    expect(objects()).toHaveLength(cut.keptObjects);
    expect(git('fsck', '--full', '--lost-found')).toBe('');
    expect(git('log', '--all', '--format=%s').split('\n')).toEqual(['kept', 'first']);
    expect(git('status', '--porcelain')).toBe('');
    expect(git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/main');
    expect(readdirSync(join(work, '.git')).sort()).toEqual([
      'HEAD',
      'config',
      'index',
      'objects',
      'refs',
    ]);
    expect(readFileSync(join(work, 'code.py'), 'utf8')).toBe('a little newer\n');
    for (const name of ['code.py', '.git/config', '.']) {
      expect(lstatSync(join(work, name)).mtimeMs, name).toBe(cut.mtimeSeconds * 1000);
    }
  });

  it('42 would be found in each place where it was before', async () => {
    const kept = makeRepository();
    const { removed } = await cutFrom(kept);
    const { problems } = await askAll(removed);
    const found = problems.map(({ path }) => path).join('\n');
    for (const place of [
      '(packs)',
      '.git/objects/',
      '.git/logs/HEAD',
      '.git/refs/stash',
      '__pycache__',
    ]) {
      expect(found).toContain(place);
    }
    for (const place of ['.git/ORIG_HEAD', '.git/modules/sub/secret', '.git/hooks/post-checkout']) {
      expect(found).toContain(place);
    }
  });

  it.each([
    [
      'a file of the work tree',
      (id: string) => write('copy', git('cat-file', 'blob', id).concat('\n')),
    ],
    ['a pack under another name', () => hidePack()],
    ['a loose object elsewhere', (id: string) => hideLoose(id)],
    ['a pack that is cut short', () => hidePack(100)],
  ])('is found as %s', async (_what, hide) => {
    const kept = makeRepository();
    const { removed } = await cutFrom(kept);
    const blob = git('rev-parse', 'future:answer.txt');
    hide(blob);
    await cutHistory({ directory: work });
    const { problems } = await checkHistory(directoryFiles(work), { removed });
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.filter(({ path }) => !['copy', 'data.bin', '(packs)'].includes(path))).toEqual(
      [],
    );
  });

  it('42 is not in a layer that is made of it, and would be found in one that is not', async () => {
    const kept = makeRepository();
    const store = await createLayerStore(join(root, 'store'));
    const source = { kind: 'directory', path: work } as const;
    const named = { store, kind: 'workspace', name: 'w', source } as const;
    const before = await importLayer({ ...named, version: '1.0.0' });
    const { removed } = await cutHistory({ directory: work });
    const after = await importLayer({ ...named, version: '2.0.0' });
    const ask = (layerId: typeof after.record.layerId) =>
      checkHistory(layerFiles(store, layerId), { removed, canary: CANARY });
    expect((await ask(after.record.layerId)).problems).toEqual([]);
    expect((await ask(before.record.layerId)).problems.length).toBeGreaterThan(10);
    expect(kept).toHaveLength(40);
  });

  it('keeps an earlier commit alone, and refuses what it cannot read', async () => {
    makeRepository();
    const first = git('--no-replace-objects', 'rev-list', '--max-parents=0', 'main');
    const cut = await cutHistory({ directory: work, commit: first });
    expect(git('log', '--format=%s')).toBe('first');
    expect(cut.keptObjects).toBe(3);
    const invalid = expect.objectContaining({ code: 'import-invalid' });
    await expect(cutHistory({ directory: work, commit: 'f'.repeat(40) })).rejects.toEqual(invalid);
    await expect(cutHistory({ directory: work, commit: '--all' })).rejects.toEqual(invalid);
    expect(git('log', '--format=%s')).toBe('first');
  });
});

/** What a cut removes, told by one of a copy. */
async function cutFrom(commitId: string) {
  const copy = join(root, 'copy');
  execFileSync('cp', ['-a', work, copy]);
  const cut = await cutHistory({ directory: copy, commit: commitId });
  rmSync(copy, { recursive: true });
  return cut;
}

function hidePack(bytes = Number.MAX_SAFE_INTEGER): void {
  const directory = join(work, '.git/objects/pack');
  const name = readdirSync(directory).find((each) => each.endsWith('.pack')) ?? '';
  writeFileSync(join(work, 'data.bin'), readFileSync(join(directory, name)).subarray(0, bytes));
}

function hideLoose(id: string): void {
  const loose = git('rev-parse', 'stash@{0}');
  expect(id).not.toBe(loose);
  copyFileSync(
    join(work, '.git/objects', loose.slice(0, 2), loose.slice(2)),
    join(work, 'data.bin'),
  );
}
