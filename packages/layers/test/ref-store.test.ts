import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseLayerRef } from '../src/layer-ref.ts';
import {
  findRef,
  listRefs,
  type RefFilter,
  refsOfLayer,
  removeRef,
  resolveRef,
} from '../src/ref-store.ts';
import { createLayerStore } from '../src/store-directory.ts';
import { type LayerStore, refPaths } from '../src/store-layout.ts';
import { fakeLayer, publishFake } from './support/built-layer.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

const newStore = async () => createLayerStore(await temporaryDirectory());

async function listed(store: LayerStore, filter?: RefFilter): Promise<string[]> {
  const refs: string[] = [];
  for await (const record of listRefs(store, filter)) refs.push(record.ref);
  return refs;
}

describe('resolveRef', () => {
  it('follows floating versions to the layer of the moment', async () => {
    const store = await newStore();
    await publishFake(store, 'base/a:1.0.0', 'one');
    await publishFake(store, 'base/a:1.9.0', 'nine');
    await publishFake(store, 'base/a:1.10.0', 'ten');
    await publishFake(store, 'base/a:2.0.0-rc.1', 'candidate');
    const idOf = (content: string) => fakeLayer(content).built.layerId;
    expect((await resolveRef(store, 'base/a:latest')).layerId).toBe(idOf('ten'));
    expect((await resolveRef(store, 'base/a:~1.9')).ref).toBe('base/a:1.9.0');
    expect((await resolveRef(store, 'base/a:1.0.0')).layerId).toBe(idOf('one'));
    expect((await resolveRef(store, 'base/a:2.0.0-rc.1')).layerId).toBe(idOf('candidate'));
    await removeRef(store, parseLayerRef('base/a:1.10.0'));
    expect((await resolveRef(store, 'base/a:^1')).layerId).toBe(idOf('nine'));
  });

  it('names what exists when nothing matches', async () => {
    const store = await newStore();
    await publishFake(store, 'base/a:1.0.0', 'one');
    await expect(resolveRef(store, 'base/a:^2')).rejects.toThrow(/versions of base\/a: 1\.0\.0/);
    expect(await codeOf(resolveRef(store, 'base/none:latest'))).toBe('not-found');
    expect(await codeOf(resolveRef(store, 'base/a'))).toBe('invalid-argument');
  });

  it.each([
    ['no JSON', '{'],
    ['another shape', '{"format": 1}'],
    ['binary', '\0'],
  ])('refuses a record that is %s', async (_name, text) => {
    const store = await newStore();
    const { directory, file } = refPaths(store, parseLayerRef('base/a:1.0.0'));
    await mkdir(directory, { recursive: true });
    await writeFile(file, text);
    expect(await codeOf(resolveRef(store, 'base/a:latest'))).toBe('data-loss');
  });

  it('refuses a record that was copied from another name', async () => {
    const store = await newStore();
    await publishFake(store, 'base/a:1.0.0', 'one');
    const copy = refPaths(store, parseLayerRef('base/b:1.0.0'));
    await mkdir(copy.directory);
    const record = await findRef(store, parseLayerRef('base/a:1.0.0'));
    await writeFile(copy.file, JSON.stringify(record));
    expect(await codeOf(findRef(store, parseLayerRef('base/b:1.0.0')))).toBe('data-loss');
  });
});

describe('listRefs', () => {
  it('goes by kind, name and version, and passes over foreign files', async () => {
    const store = await newStore();
    for (const ref of ['toolkit/t:1.0.0', 'base/b:1.0.0', 'base/a:1.2.0', 'base/a:1.10.0']) {
      await publishFake(store, ref, ref);
    }
    await writeFile(join(store.root, 'refs', 'base', 'a', '.nfs0001'), '');
    await writeFile(join(store.root, 'refs', 'base', 'a', '1.0.0~'), '');
    await mkdir(join(store.root, 'refs', 'lost+found'));
    expect(await listed(store)).toEqual([
      'base/a:1.10.0',
      'base/a:1.2.0',
      'base/b:1.0.0',
      'toolkit/t:1.0.0',
    ]);
    expect(await listed(store, { kind: 'base', name: 'b' })).toEqual(['base/b:1.0.0']);
    expect(await listed(store, { kind: 'diff' })).toEqual([]);
  });
});

describe('removeRef', () => {
  it('removes the name and leaves the layer', async () => {
    const store = await newStore();
    await publishFake(store, 'base/a:1.0.0', 'one');
    await removeRef(store, parseLayerRef('base/a:1.0.0'));
    expect(await listed(store)).toEqual([]);
    expect(await readdir(join(store.root, 'layers'))).toHaveLength(1);
    const again = removeRef(store, parseLayerRef('base/a:1.0.0'));
    await expect(again).rejects.toMatchObject({
      code: 'not-found',
      message: 'there is no layer named base/a:1.0.0',
    });
    await publishFake(store, 'base/a:1.0.0', 'two');
    expect((await resolveRef(store, 'base/a:1.0.0')).layerId).toBe(fakeLayer('two').built.layerId);
  });

  it('says what to do about a directory in the place of a name, and leaves it', async () => {
    const store = await newStore();
    const ref = parseLayerRef('base/a:1.0.0');
    await mkdir(refPaths(store, ref).file, { recursive: true });
    expect(await codeOf(removeRef(store, ref))).toBe('data-loss');
    await expect(removeRef(store, ref)).rejects.toThrow(/where a ref belongs.*by hand/);
    expect(await readdir(refPaths(store, ref).directory)).toEqual(['1.0.0']);
  });
});

describe('refsOfLayer', () => {
  it('finds every name of a layer, past damaged ones', async () => {
    const store = await newStore();
    const { layerId } = await publishFake(store, 'base/a:1.0.0', 'one');
    await publishFake(store, 'toolkit/b:2.0.0', 'one');
    await publishFake(store, 'base/other:1.0.0', 'two');
    const damaged = refPaths(store, parseLayerRef('base/c:1.0.0'));
    await mkdir(damaged.directory);
    await writeFile(damaged.file, '{');
    const refs = (await refsOfLayer(store, layerId)).map(({ ref }) => ref);
    expect(refs).toEqual(['base/a:1.0.0', 'toolkit/b:2.0.0']);
  });
});

describe('many at once', () => {
  it('gives one version to exactly one of the layers that want it', async () => {
    const store = await newStore();
    const contents = Array.from({ length: 12 }, (_, n) => `content ${n}`);
    const outcomes = await Promise.allSettled(
      contents.map((content) => publishFake(store, 'base/race:1.0.0', content)),
    );
    const winners = outcomes.flatMap((o) => (o.status === 'fulfilled' ? [o.value.layerId] : []));
    expect(winners).toHaveLength(1);
    expect((await resolveRef(store, 'base/race:1.0.0')).layerId).toBe(winners[0]);
  });
});
