import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { viewsOf } from '../src/spawn-spec.ts';
import { createViewFiles } from '../src/view-files.ts';
import { nodeWith, planWith } from './support/plans.ts';

function openViews() {
  const root = mkdtempSync(join(tmpdir(), 'dsec-views-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const files = createViewFiles(root);
  files.open();
  return { files, directory: join(root, 'run/views') };
}

it('has a file for each view, and none of the sandbox own after it', () => {
  const { files, directory } = openViews();
  const views = viewsOf(planWith(), nodeWith());
  files.write(views);
  for (const { name, content } of [...views.shared, views.own]) {
    expect(readFileSync(join(directory, name), 'utf8')).toBe(content());
  }
  files.drop(views);
  expect(readdirSync(directory).sort()).toEqual(views.shared.map(({ name }) => name).sort());
});

it('replaces what was left, and starts anew', () => {
  const { files, directory } = openViews();
  const views = viewsOf(planWith(), nodeWith());
  writeFileSync(join(directory, views.own.name), 'of an earlier life');
  files.write(views);
  expect(readFileSync(join(directory, views.own.name), 'utf8')).toBe(views.own.content());
  files.open();
  expect(readdirSync(directory)).toEqual([]);
  files.write(views);
  expect(readdirSync(directory)).toHaveLength(5);
});

it('keeps a bounded number of those that are shared', () => {
  const { files, directory } = openViews();
  for (let i = 0; i < 600; i += 1) {
    const limits = { ...planWith().limits, memoryBytes: 8_388_608 + i * 4096 };
    const views = viewsOf(planWith({ limits }), nodeWith());
    files.write(views);
    files.drop(views);
  }
  expect(readdirSync(directory).length).toBe(512);
});
