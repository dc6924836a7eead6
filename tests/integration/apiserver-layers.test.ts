import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLayerStore, findRef, parseLayerRef, tagLayer } from '@dsec/layers';
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
  fleet = await openFleet({ layers: await createLayerStore(store), apiservers: 2 });
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
  await expect(caller.call(ROUTES.removeLayer, { params: absent })).rejects.toMatchObject({
    code: 'not-found',
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

const writing = { scopes: ['layers:read', 'layers:write'] as const };
const paramsOf = (name: string, version: string) => ({
  params: { kind: 'toolkit' as const, name, version },
});

test('of two projects that make a name at once, at two apiservers, exactly one has it', async () => {
  const { layerId } = layer;
  const callers = await Promise.all(
    ['left', 'right'].map((project, at) => fleet.callerOf(project, { ...writing, at })),
  );
  for (let round = 0; round < 20; round += 1) {
    const version = `1.0.${round}`;
    const name = paramsOf('race', version);
    const body = { layerId };
    await Promise.all(callers.map((each) => each.call(ROUTES.createLayerRef, { ...name, body })));
    const record = await findRef({ root: store }, parseLayerRef(`toolkit/race:${version}`));
    const winner = ['left', 'right'].indexOf(String(record?.owner));
    await expect(callers[1 - winner]?.call(ROUTES.removeLayerRef, name)).rejects.toMatchObject({
      code: 'permission-denied',
    });
    await callers[winner]?.call(ROUTES.removeLayerRef, name);
  }
  const { refs } = await caller.call(ROUTES.listLayerRefs, { query: { kind: 'toolkit' } });
  expect(refs).toEqual([]);
});

test('a layer is removed with all of its names, by whoever made them all', async () => {
  const bytes = Buffer.from(archive);
  bytes.write('HOWDY', bytes.indexOf('hello\nhello'));
  const mine = await fleet.callerOf('mine', writing);
  const theirs = await fleet.callerOf('theirs', writing);
  const query = { format: 'tar' as const, ref: 'toolkit/gone:1.0.0' };
  let made: Layer | undefined;
  for await (const event of await mine.call(ROUTES.importLayer, { query, body: inPieces(bytes) })) {
    made = event.layer;
  }
  const { layerId = '' } = made ?? {};
  const [params, body] = [{ layerId }, { layerId }];
  await mine.call(ROUTES.createLayerRef, { ...paramsOf('gone', '2.0.0'), body });
  await theirs.call(ROUTES.createLayerRef, { ...paramsOf('gone', '3.0.0'), body });
  const named = async () =>
    (await mine.call(ROUTES.listLayerRefs, { query: { kind: 'toolkit' } })).refs;

  await expect(mine.call(ROUTES.removeLayer, { params })).rejects.toMatchObject({
    code: 'permission-denied',
    message: expect.stringContaining('toolkit/gone:3.0.0'),
  });
  expect(await named()).toHaveLength(3);
  await theirs.call(ROUTES.removeLayerRef, paramsOf('gone', '3.0.0'));
  await mine.call(ROUTES.removeLayer, { params });
  expect(await named()).toEqual([]);
  // Nothing is left to take away; what was made of it still reads it.
  await theirs.call(ROUTES.removeLayer, { params });
  expect(await mine.call(ROUTES.getLayer, { params })).toEqual(made);
});

test('an environment is made of layers that there are, and refusals speak of it by name', async () => {
  const put = (layers: string[], revision?: number) =>
    caller.call(ROUTES.putEnvironment, {
      params: { name: 'env' },
      body: { layers, ...(revision === undefined ? {} : { revision }) },
    });
  const absent = { code: 'not-found', details: { about: 'layer' } };
  await expect(put(['base/none:latest'])).rejects.toMatchObject({
    ...absent,
    message: expect.stringContaining('base/none:latest'),
  });
  await expect(put(['base/one:^1', 'toolkit/none:1.0.0'])).rejects.toMatchObject(absent);
  await expect(put(['base/one:^2'])).rejects.toMatchObject({
    message: expect.stringContaining('1.1.0'),
  });
  await put(['base/one:^1'], 0);
  await expect(put(['base/one:^1'], 0)).rejects.toMatchObject({
    code: 'already-exists',
    message: 'there is an environment env already',
  });
  await expect(put(['base/one:^1'], 987_654_321)).rejects.toMatchObject({
    code: 'conflict',
    message: 'the environment env has been changed meanwhile',
  });
});
