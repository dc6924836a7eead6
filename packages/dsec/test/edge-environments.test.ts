import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { resolveStatePaths } from '../src/config.ts';
import { openEnvironments } from '../src/edge-environments.ts';

const root = mkdtempSync(join(tmpdir(), 'dsec-environments-'));
afterAll(() => rmSync(root, { recursive: true }));
const directory = join(root, 'environments');
mkdirSync(directory);
const environments = openEnvironments(resolveStatePaths(root));

it('knows the layers of a name', async () => {
  writeFileSync(join(directory, 'debian.json'), '["base/debian:^12", "workspace/task:1.0.0"]');
  const layers = await environments.layersOf('debian');
  expect(layers).toEqual(['base/debian:^12', 'workspace/task:1.0.0']);
});

it.each([
  ['absent', 'not-found'],
  ['../etc', 'invalid-argument'],
  ['broken', 'data-loss'],
  ['other', 'data-loss'],
])('says of %s: %s', async (name, code) => {
  writeFileSync(join(directory, 'broken.json'), '["base/debian');
  writeFileSync(join(directory, 'other.json'), '{"layers": []}');
  await expect(environments.layersOf(name)).rejects.toMatchObject({ code });
});

it('resolves what the store has', async () => {
  await expect(environments.resolve(['base/absent:1.0.0'])).rejects.toMatchObject({
    code: 'not-found',
  });
});
