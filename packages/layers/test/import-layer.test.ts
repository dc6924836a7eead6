import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type ImportLayerOptions, importLayer } from '../src/import-layer.ts';
import { listLayers, showLayer } from '../src/layer-list.ts';
import type { LayerProgress } from '../src/layer-progress.ts';
import { createLayerStore, readManifest } from '../src/store-directory.ts';
import { blobPaths, type LayerStore } from '../src/store-layout.ts';
import { verifyLayer } from '../src/verify-layer.ts';
import { compileFirst } from './support/compiled.ts';
import { auditStore } from './support/store-audit.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

compileFirst();

async function newStore(): Promise<LayerStore> {
  return createLayerStore(join(await temporaryDirectory(), 'store'));
}

/** A directory with something of several kinds in it. */
async function sourceTree(files = 3): Promise<string> {
  const path = await temporaryDirectory();
  mkdirSync(join(path, 'bin'));
  symlinkSync('bin', join(path, 'sbin'));
  for (let n = 0; n < files; n += 1) {
    writeFileSync(join(path, 'bin', `f${n}`), Buffer.alloc(70_000 + n, `content ${n}`));
  }
  return path;
}

const base = { kind: 'base', name: 'b', version: '1.0.0' } as const;

function importTree(store: LayerStore, path: string, change: Partial<ImportLayerOptions> = {}) {
  return importLayer({ store, ...base, source: { kind: 'directory', path }, ...change });
}

describe('importLayer', () => {
  it('makes a layer that verifies, and says what it is', async () => {
    const store = await newStore();
    const { record, manifest } = await importTree(store, await sourceTree());
    expect(record).toMatchObject({
      ref: 'base/b:1.0.0',
      image: null,
      source: { kind: 'directory' },
    });
    expect(manifest).toEqual(await readManifest(store, record.layerId));
    expect(await verifyLayer(store, record.layerId)).toMatchObject({
      layerId: record.layerId,
      problems: [],
    });
    expect((await showLayer(store, 'base/b:latest')).dataBytes).toBe(manifest.devices[0]?.bytes);
    expect(await auditStore(store)).toMatchObject({ refs: ['base/b:1.0.0'] });
    expect(readdirSync(join(store.root, 'tmp'))).toEqual([]);
  });

  it('gives the same layer for the same tree, whatever its name', async () => {
    const store = await newStore();
    const tree = await sourceTree();
    const tar = join(await temporaryDirectory(), 'tree.tar');
    spawnSync('tar', ['--numeric-owner', '--format=posix', '-cf', tar, '-C', tree, '.']);
    const first = await importTree(store, tree);
    const again = await importTree(store, tree);
    expect(again).toEqual(first);
    const copy = await importTree(store, tree, { kind: 'toolkit', name: 'copy' });
    expect(copy.record.layerId).toBe(first.record.layerId);
    const audit = await auditStore(store);
    expect(audit.layers).toEqual([first.record.layerId]);
    expect(audit.blobs).toHaveLength(1);
    // Another order of files is another encoding, and still the same tree.
    const packed = await importTree(store, tree, {
      kind: 'workspace',
      source: { kind: 'auto', path: tar },
    });
    expect(packed.record.treeDigest).toBe(first.record.treeDigest);
    expect(packed.record.source.kind).toBe('tar');
    const listed = [];
    for await (const found of listLayers(store)) {
      if ('record' in found) listed.push(found.record.ref);
    }
    expect(listed).toEqual(['base/b:1.0.0', 'workspace/b:1.0.0', 'toolkit/copy:1.0.0']);
  });

  it('reads a tar from a descriptor, which stays the caller’s', async () => {
    const store = await newStore();
    const tree = await sourceTree();
    const tar = join(await temporaryDirectory(), 'tree.tar');
    spawnSync('tar', ['-cf', tar, '-C', tree, '.']);
    const fd = openSync(tar, 'r');
    const { manifest } = await importTree(store, tree, { source: { kind: 'tar', fd } });
    expect(manifest.stats.contentBytes).toBe(3 * 70_000 + 3);
    closeSync(fd);
  });

  it('refuses to move a version', async () => {
    const store = await newStore();
    const { record } = await importTree(store, await sourceTree(1));
    expect(await codeOf(importTree(store, await sourceTree(2)))).toBe('already-exists');
    expect((await auditStore(store)).layers).toEqual([record.layerId]);
    expect(readdirSync(join(store.root, 'tmp'))).toEqual([]);
  });

  it('stores only what named layers do not hold', async () => {
    const store = await newStore();
    const tree = await sourceTree(3);
    const first = await importTree(store, tree);
    writeFileSync(join(tree, 'bin', 'new'), Buffer.alloc(5000, 'new'));
    const next = await importTree(store, tree, { version: '1.1.0', dedup: ['base/b:1.0.0'] });
    expect(next.manifest.stats.storedBytes).toBe(5000);
    expect(next.manifest.devices).toHaveLength(2);
    expect(next.manifest.devices.map((d) => d.blobId)).toContain(first.manifest.devices[0]?.blobId);
    const alone = await importTree(store, tree, { version: '1.2.0' });
    expect(alone.record.treeDigest).toBe(next.record.treeDigest);
    expect(alone.record.layerId).not.toBe(next.record.layerId);
    await auditStore(store);
  });

  it('makes a layer without data and one without anything', async () => {
    const store = await newStore();
    const tree = await temporaryDirectory();
    const empty = await importTree(store, tree);
    expect(empty.manifest.devices).toEqual([]);
    mkdirSync(join(tree, 'd'));
    writeFileSync(join(tree, 'd', 'empty'), '');
    await importTree(store, tree, { version: '1.0.1' });
    expect((await auditStore(store)).blobs).toEqual([]);
  });

  it('tells its progress', async () => {
    const store = await newStore();
    const seen: LayerProgress[] = [];
    const tree = await sourceTree(20);
    const fifo = join(await temporaryDirectory(), 'slow');
    spawnSync('mkfifo', [fifo]);
    const tar = spawnSync('tar', ['-cf', '-', '-C', tree, '.'], { maxBuffer: 1 << 30 }).stdout;
    const running = importTree(store, tree, {
      source: { kind: 'tar', path: fifo },
      onProgress: (progress) => seen.push(progress),
    });
    const pipe = await open(fifo, 'w');
    for (let at = 0; at < tar.length; at += 100_000) {
      await pipe.write(tar.subarray(at, at + 100_000));
      await setTimeout(50);
    }
    await pipe.close();
    await running;
    expect(seen.length).toBeGreaterThan(1);
    expect(seen.at(-1)?.entries).toBeGreaterThan(0);
    expect(seen.map(({ bytes }) => bytes)).toEqual(
      seen.map(({ bytes }) => bytes).sort((a, b) => a - b),
    );
  });
});

describe('what importLayer refuses', () => {
  const options: [string, Partial<ImportLayerOptions>, string][] = [
    ['a bad name', { name: '../b' }, 'invalid-argument'],
    ['a floating version', { version: '^1' }, 'invalid-argument'],
    ['an unknown dedup layer', { dedup: ['base/none:1.0.0'] }, 'not-found'],
    ['an absent source', { source: { kind: 'auto', path: '/nonexistent' } }, 'not-found'],
    ['a limit passed', { limits: { entriesMax: 2 } }, 'import-limit'],
    [
      'a source that is no file',
      { source: { kind: 'auto', path: '/dev/null' } },
      'invalid-argument',
    ],
  ];

  it.each(options)('%s', async (_name, change, code) => {
    const store = await newStore();
    expect(await codeOf(importTree(store, await sourceTree(), change))).toBe(code);
    expect(await auditStore(store)).toEqual({ layers: [], blobs: [], refs: [] });
    expect(readdirSync(join(store.root, 'tmp'))).toEqual([]);
  });

  it('a store that is not there', async () => {
    const store = { root: join(await temporaryDirectory(), 'none') };
    expect(await codeOf(importTree(store, await sourceTree()))).toBe('not-found');
    expect(existsSync(store.root)).toBe(false);
  });

  it('work after an abort, and cleans up', async () => {
    const store = await newStore();
    expect(await codeOf(importTree(store, '/', { signal: AbortSignal.abort() }))).toBe('cancelled');
    const fifo = join(await temporaryDirectory(), 'endless');
    spawnSync('mkfifo', [fifo]);
    const controller = new AbortController();
    const running = importTree(store, fifo, {
      source: { kind: 'tar', path: fifo },
      signal: controller.signal,
    });
    // The worker blocks in open(2), where nothing but a signal reaches it.
    while (readdirSync(join(store.root, 'tmp')).length === 0) {
      await setTimeout(10);
    }
    controller.abort();
    expect(await codeOf(running)).toBe('cancelled');
    expect(readdirSync(join(store.root, 'tmp'))).toEqual([]);
  });
});

describe('published files', () => {
  it('are for reading only and hold no more than they must', async () => {
    const store = await newStore();
    const tree = await temporaryDirectory();
    writeFileSync(join(tree, 'sparse'), 'x');
    spawnSync('truncate', ['-s', '8G', join(tree, 'sparse')]);
    const { manifest } = await importTree(store, tree);
    const [device] = manifest.devices;
    if (device === undefined) throw new Error('the layer has data');
    const { data } = blobPaths(store, device.blobId);
    expect(statSync(data).mode & 0o777).toBe(0o444);
    expect(statSync(data).size).toBeLessThanOrEqual(65_536);
    expect(manifest.metaBytes).toBeLessThan(2 << 20);
  });
});
