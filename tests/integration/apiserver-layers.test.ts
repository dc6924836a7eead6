import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLayerStore, parseLayerRef, tagLayer } from '@dsec/layers';
import { type Layer, type LayerImportEvent, ROUTES } from '@dsec/protocol';
import type { Digest } from '@dsec/std';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Caller, type Fleet, openFleet } from './apiserver-world.ts';

const directory = mkdtempSync(join(tmpdir(), 'dsec-api-layers-'));
const store = join(directory, 'store');
let fleet: Fleet;
let caller: Caller;
let archive: Buffer;

beforeAll(async () => {
  fleet = await openFleet({ layers: await createLayerStore(store) });
  caller = await fleet.callerOf('p');
  const tree = join(directory, 'tree');
  mkdirSync(join(tree, 'etc'), { recursive: true });
  writeFileSync(join(tree, 'etc/hello'), 'hello\n'.repeat(50_000));
  execFileSync('tar', ['-cf', join(directory, 'tree.tar'), '-C', tree, '.']);
  archive = readFileSync(join(directory, 'tree.tar'));
});
afterAll(async () => {
  await fleet.close();
  rmSync(directory, { recursive: true, force: true });
});

async function* inPieces(bytes: Buffer, size = 65_536): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function importTar(ref: string, body = archive): Promise<LayerImportEvent> {
  const query = { format: 'tar' as const, ref };
  const events: LayerImportEvent[] = [];
  const lines = await caller.call(ROUTES.importLayer, { query, body: inPieces(body) });
  for await (const event of lines) events.push(event);
  return events.at(-1) as LayerImportEvent;
}

let layer: Layer;
test('an archive that is sent becomes a layer; the same content is the same layer', async () => {
  const told = await importTar('base/one:1.0.0');
  layer = told.layer as Layer;
  expect(layer).toMatchObject({ entries: 2, contentBytes: 300_000 });
  expect((await importTar('base/one:1.1.0')).layer?.layerId).toBe(layer.layerId);
  expect(readdirSync(join(store, 'tmp'))).toEqual([]);
});

test('what is no archive is told in the last line', async () => {
  const told = await importTar('base/bad:1.0.0', Buffer.from('certainly not a tar'.repeat(100)));
  expect(told.error?.code).toBe('import-invalid');
  expect(readdirSync(join(store, 'tmp'))).toEqual([]);
});

test('a name that means something else is not moved', async () => {
  const other = Buffer.from(archive);
  other.write('HELLO', other.indexOf('hello\nhello'));
  expect((await importTar('base/one:1.0.0', other)).error?.code).toBe('already-exists');
});

test('layers are shown, listed and verified', async () => {
  const params = { layerId: layer.layerId };
  expect(await caller.call(ROUTES.getLayer, { params })).toEqual(layer);
  const page = await caller.call(ROUTES.listLayers, { query: { limit: 1 } });
  expect(page.layers).toHaveLength(1);
  const report = await caller.call(ROUTES.verifyLayer, { params });
  expect(report).toMatchObject({ ok: true, problems: [] });
  const absent = { layerId: `sha256:${'0'.repeat(64)}` };
  await expect(caller.call(ROUTES.getLayer, { params: absent })).rejects.toMatchObject({
    code: 'not-found',
  });
  await expect(caller.call(ROUTES.removeLayer, { params })).rejects.toMatchObject({
    code: 'unsupported',
  });
});

test('names are given, resolved, listed page by page and taken away', async () => {
  const tag = (version: string) =>
    caller.call(ROUTES.createLayerRef, {
      params: { kind: 'base', name: 'tagged', version },
      body: { layerId: layer.layerId },
    });
  for (const version of ['1.0.0', '1.2.0', '2.0.0', '1.2.0']) await tag(version);
  const resolve = (selector: string) =>
    caller.call(ROUTES.resolveLayerRef, { query: { selector } });
  expect((await resolve('base/tagged:^1')).ref).toBe('base/tagged:1.2.0');
  expect((await resolve('base/tagged:latest')).ref).toBe('base/tagged:2.0.0');
  const refs: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const query = { limit: 2, ...(cursor === undefined ? {} : { cursor }) };
    const page = await caller.call(ROUTES.listLayerRefs, { query });
    refs.push(...page.refs.map(({ ref }) => ref));
    cursor = page.cursor;
    if (cursor === undefined) break;
  }
  expect(refs).toEqual([
    ...['base/one:1.1.0', 'base/one:1.0.0'],
    ...['base/tagged:2.0.0', 'base/tagged:1.2.0', 'base/tagged:1.0.0'],
  ]);
  const params = { kind: 'base' as const, name: 'tagged', version: '2.0.0' };
  await caller.call(ROUTES.removeLayerRef, { params });
  await caller.call(ROUTES.removeLayerRef, { params });
  expect((await resolve('base/tagged:latest')).ref).toBe('base/tagged:1.2.0');
  const query = { kind: 'toolkit' as const };
  expect((await caller.call(ROUTES.listLayerRefs, { query })).refs).toEqual([]);
});

test('a name is taken away by the project that made it, and by operators', async () => {
  const { layerId } = layer;
  const scopes = ['layers:read', 'layers:write'] as const;
  const mine = await fleet.callerOf('mine', { scopes });
  const theirs = await fleet.callerOf('theirs', { scopes });
  const operator = await fleet.callerOf('ops', { scopes: ['layers:write', 'node'] });
  const paramsOf = (version: string) => ({
    params: { kind: 'base' as const, name: 'own', version },
  });
  const make = (caller: Caller, version: string) =>
    caller.call(ROUTES.createLayerRef, { ...paramsOf(version), body: { layerId } });
  const remove = (caller: Caller, version: string) =>
    caller.call(ROUTES.removeLayerRef, paramsOf(version));
  const refused = { code: 'permission-denied', details: { scope: 'node' } };

  for (const version of ['1.0.0', '2.0.0']) await make(mine, version);
  // What is there already is as it was asked, and does not change hands.
  await make(theirs, '1.0.0');
  await expect(remove(theirs, '1.0.0')).rejects.toMatchObject(refused);
  await remove(mine, '1.0.0');
  await remove(operator, '2.0.0');
  await remove(theirs, '2.0.0');
  await make(theirs, '2.0.0');
  await expect(remove(mine, '2.0.0')).rejects.toMatchObject(refused);
  // Made by an import.
  await expect(
    theirs.call(ROUTES.removeLayerRef, {
      params: { kind: 'base', name: 'one', version: '1.1.0' },
    }),
  ).rejects.toMatchObject(refused);
  // Not made through the API.
  await tagLayer({ root: store }, parseLayerRef('base/own:3.0.0'), layerId as Digest);
  await make(mine, '3.0.0');
  await expect(remove(mine, '3.0.0')).rejects.toMatchObject(refused);
  await remove(operator, '3.0.0');
});
