import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { cached, keyOf } from './cache.mjs';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dsec-lab-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

const make = async (path: string) => writeFileSync(path, 'made');

it('makes a thing once', async () => {
  const first = await cached(folder, 'disk', 'k', make);
  expect(first).toMatchObject({ path: join(folder, 'disk-k'), reused: false });
  const second = await cached(folder, 'disk', 'k', async () => {
    throw new Error('made again');
  });
  expect(second).toMatchObject({ path: first.path, reused: true });
  expect(readFileSync(second.path, 'utf8')).toBe('made');
});

it('leaves nothing of what could not be made', async () => {
  const failing = cached(folder, 'disk', 'k', async (path) => {
    writeFileSync(path, 'half');
    throw new Error('no room');
  });
  await expect(failing).rejects.toThrow('no room');
  expect(readdirSync(folder)).toEqual([]);
});

it('keeps the three that were used last', async () => {
  for (const [age, key] of ['a', 'b', 'c', 'd'].entries()) {
    const { path } = await cached(folder, 'disk', key, make);
    utimesSync(path, 1000 + age, 1000 + age);
  }
  writeFileSync(join(folder, 'other-a'), '');
  await cached(folder, 'disk', 'b', make);
  await cached(folder, 'disk', 'e', make);
  expect(readdirSync(folder).sort()).toEqual(['disk-b', 'disk-d', 'disk-e', 'other-a']);
});

it('sweeps what a maker that was killed has left', async () => {
  const abandoned = join(folder, '.disk-x.1');
  writeFileSync(abandoned, '');
  utimesSync(abandoned, 1000, 1000);
  writeFileSync(join(folder, '.disk-y.2'), 'somebody is making this');
  await cached(folder, 'disk', 'k', make);
  expect(readdirSync(folder).sort()).toEqual(['.disk-y.2', 'disk-k']);
});

it('has keys that tell any parts from any others', () => {
  const keys = [['ab', 'c'], ['a', 'bc'], ['abc'], ['c', 'ab'], ['ab', Buffer.from('d')]].map(
    keyOf,
  );
  expect(new Set(keys).size).toBe(keys.length);
  expect(keyOf(['a', Buffer.from('b')])).toBe(keyOf([Buffer.from('a'), 'b']));
});
