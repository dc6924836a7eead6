import { mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createLayerStore,
  IMPORT_LIMITS_DEFAULT,
  importLayer,
  type LayerStore,
  parseLayerRef,
} from '@dsec/layers';
import { mountClassic, umount } from '@dsec/linux';
import { asDsecError, createSeededRandom, type Digest, MIB } from '@dsec/std';
import { beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { newStageName, runImport } from '../../packages/layers/test/support/internals.ts';
import {
  canMount,
  mountScratchDisk,
  rerunInPrivateNamespace,
} from '../../packages/layers/test/support/mounts.ts';
import { auditStore } from '../../packages/layers/test/support/store-audit.ts';
import { codeOf, temporaryDirectory } from '../../packages/layers/test/support/temporary.ts';

const SEED = Number(process.env.SEED ?? 7);
const isLong = process.env.DSEC_TEST_LONG === '1';
const REF = 'base/full:1.0.0';
const PAGE = 4096;

rerunInPrivateNamespace(import.meta.filename, 'chaos');

describe.runIf(canMount)('a store on a disk without room (needs root)', () => {
  compileFirst();
  let source: string;

  beforeAll(() => {
    source = mkdtempSync(join(tmpdir(), 'dsec-layers-'));
    const random = createSeededRandom(SEED);
    mkdirSync(join(source, 'd'));
    for (let n = 0; n < 3; n += 1) writeFileSync(join(source, 'd', `f${n}`), random.bytes(70_000));
    return () => rmSync(source, { recursive: true });
  });

  /** In this process: hundreds of attempts must not start hundreds of workers. */
  const importHere = (store: LayerStore) =>
    runImport(
      {
        type: 'import',
        storeRoot: store.root,
        stageName: newStageName(),
        ref: parseLayerRef(REF),
        source: { kind: 'directory', path: source },
        whiteouts: 'apply',
        limits: IMPORT_LIMITS_DEFAULT,
        dedupLayers: [],
      },
      () => {},
    );

  /** One attempt: success or `storage-full`; a store that is whole and has no stage, either way. */
  async function attempt(store: LayerStore): Promise<Digest | undefined> {
    const code = await codeOf(
      importHere(store).catch((thrown) => Promise.reject(asDsecError(thrown))),
    );
    expect(['no error', 'storage-full']).toContain(code);
    expect(readdirSync(join(store.root, 'tmp'))).toEqual([]);
    const { layers, refs } = await auditStore(store);
    expect(refs).toEqual(code === 'no error' ? [REF] : []);
    return code === 'no error' ? layers[0] : undefined;
  }

  async function onTmpfs(
    options: string,
    use: (store: LayerStore, place: string) => Promise<void>,
  ) {
    const place = await temporaryDirectory();
    mountClassic({ source: 'tmpfs', target: place, type: 'tmpfs', data: options });
    try {
      await use(await createLayerStore(join(place, 'store')), place);
    } finally {
      umount(place);
    }
  }

  const enlarge = (place: string) =>
    mountClassic({ target: place, flags: ['remount'], data: 'size=64m,nr_inodes=10000' });

  it('fails at every write of data and metadata, and recovers without loss', async () => {
    const outcomes: boolean[] = [];
    for (let pages = 1; pages <= 70; pages += isLong ? 1 : 3) {
      await onTmpfs(`size=${pages * PAGE}`, async (store, place) => {
        outcomes.push((await attempt(store)) !== undefined);
        enlarge(place);
        expect(await attempt(store)).toBeDefined();
      });
    }
    expect(outcomes[0], 'one page is too little').toBe(false);
    expect(outcomes.at(-1), 'seventy pages are enough').toBe(true);
    expect(outcomes, 'more room never does worse').toEqual([...outcomes].sort());
  });

  it('fails at every new name, and recovers without loss', async () => {
    const outcomes: boolean[] = [];
    for (let inodes = 7; inodes <= 24; inodes += 1) {
      await onTmpfs(`size=64m,nr_inodes=${inodes}`, async (store, place) => {
        outcomes.push((await attempt(store)) !== undefined);
        enlarge(place);
        expect(await attempt(store)).toBeDefined();
      });
    }
    expect(outcomes[0]).toBe(false);
    expect(outcomes.at(-1)).toBe(true);
    expect(outcomes).toEqual([...outcomes].sort());
  });

  it('fails on ext4 as well, where directories take blocks too', async () => {
    const place = await temporaryDirectory();
    mountScratchDisk(place, 16 * MIB);
    const store = await createLayerStore(join(place, 'store'));
    const filler = join(place, 'filler');
    let failures = 0;
    for (let blocks = 0; blocks <= 90; blocks += isLong ? 1 : 6) {
      fillDisk(filler, blocks);
      if ((await attempt(store)) === undefined) failures += 1;
      rmSync(filler);
      expect(await attempt(store)).toBeDefined();
      for (const name of ['refs/base', 'layers', 'blobs']) {
        rmSync(join(store.root, name), { recursive: true });
      }
      await createLayerStore(store.root);
    }
    expect(failures).toBeGreaterThan(0);
  });

  it('tells it through the worker', async () => {
    await onTmpfs(`size=${8 * PAGE}`, async (store) => {
      const running = importLayer({
        store,
        ...parseLayerRef(REF),
        source: { kind: 'directory', path: source },
      });
      expect(await codeOf(running)).toBe('storage-full');
      expect(readdirSync(join(store.root, 'tmp'))).toEqual([]);
    });
  });

  it('says permission-denied on a file system that is read-only, and still reads there', async () => {
    await onTmpfs('size=64m', async (store, place) => {
      const layerId = await attempt(store);
      mountClassic({ target: place, flags: ['remount', 'readOnly'] });
      const again = importLayer({
        store,
        kind: 'base',
        name: 'other',
        version: '1.0.0',
        source: { kind: 'directory', path: source },
      });
      expect(await codeOf(again)).toBe('permission-denied');
      expect((await auditStore(store)).layers).toEqual([layerId]);
      mountClassic({ target: place, flags: ['remount'], data: 'size=64m' });
    });
  });
});

/** Takes all blocks of the file system but the last few. */
function fillDisk(filler: string, blocksLeft: number): void {
  const place = join(filler, '..');
  const { bavail, bsize } = statfsSync(place);
  let bytes = Math.max(0, bavail - blocksLeft) * bsize;
  writeFileSync(filler, '');
  // The file's own extent blocks count as well, so approach the goal.
  for (let turn = 0; turn < 4 && bytes > 0; turn += 1) {
    try {
      writeFileSync(filler, Buffer.alloc(bytes));
    } catch {
      bytes -= bsize;
      continue;
    }
    const free = statfsSync(place).bavail;
    if (free <= blocksLeft) return;
    bytes += (free - blocksLeft) * bsize;
  }
}
