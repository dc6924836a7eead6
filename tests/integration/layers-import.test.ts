import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import {
  composeRoot,
  createLayerStore,
  type ImportSource,
  importLayer,
  type LayerStore,
  openNodeLayers,
  planMounts,
  readManifest,
  resolveEnvironment,
  verifyLayer,
} from '@dsec/layers';
import { makeNode, setFileTimes, setXattr } from '@dsec/linux';
import { DsecError } from '@dsec/std';
import { describe, expect, it, onTestFinished } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { isRoot, MOUNT_FORMS } from '../../packages/layers/test/support/mounts.ts';
import { codeOf, temporaryDirectory } from '../../packages/layers/test/support/temporary.ts';
import { listHost, plain } from './erofs-world.ts';

// Detached mounts are in nobody's mount table, so this file needs root but no namespace of its own.
const canRun = isRoot && MOUNT_FORMS.includes('descriptor');
if (!canRun) console.warn('layers-import: skipped, since it needs root and a kernel from 6.13');

/** A tree with one of everything that a layer must keep, and of what it must not. */
async function makeTree(): Promise<string> {
  const root = await temporaryDirectory();
  const at = (name: string | Buffer) => Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name)]);
  mkdirSync(at('usr/bin'), { recursive: true });
  writeFileSync(at('usr/bin/tool'), Buffer.alloc(200_001, 'tool'));
  chmodSync(at('usr/bin/tool'), 0o4755);
  linkSync(at('usr/bin/tool'), at('usr/bin/same'));
  symlinkSync('../usr/bin/tool', at('link'));
  symlinkSync('/absolute/and/absent', at('dangling'));
  writeFileSync(at(Buffer.from([0x66, 0xff, 0xfe, 0x0a])), 'not UTF-8');
  writeFileSync(at('sparse'), 'head');
  truncateSync(at('sparse'), 10_000_000);
  mkdirSync(at('tmp'));
  chmodSync(at('tmp'), 0o1777);
  writeFileSync(at('owned'), 'x');
  chownSync(at('owned'), 1234, 65_535);
  makeNode(at('null'), { mode: 0o020666, major: 1, minor: 3 });
  makeNode(at('disk'), { mode: 0o060600, major: 259, minor: 70_000 });
  makeNode(at('fifo'), { mode: 0o010644 });
  setXattr(at('owned'), 'user.note', Buffer.from('kept'));
  setXattr(at('usr'), 'trusted.overlay.redirect', Buffer.from('/answers'));
  setXattr(at('usr'), 'trusted.overlay.opaque', Buffer.from('x'));
  setXattr(at('owned'), 'user.overlay.metacopy', Buffer.from(''));
  setFileTimes(at('owned'), { access: 'omit', modification: 1_234_567_890_123_456_789n });
  lutimesSync(at('link'), 1, 2);
  let deep = 'deep';
  for (let level = 0; level < 60; level += 1) deep += '/d';
  mkdirSync(at(deep), { recursive: true });
  writeFileSync(at(`${deep}/f`), 'deep');
  return root;
}

/** Mounts one layer alone and lists it. */
async function listLayer(store: LayerStore, ref: string) {
  const node = await openNodeLayers({
    store,
    directory: join(await temporaryDirectory(), 'node'),
    form: 'descriptor',
    directIo: false,
  });
  const { layers } = await resolveEnvironment(store, [ref]);
  const manifest = await readManifest(store, layers[0]?.layerId as never);
  const root = await composeRoot(
    node,
    planMounts({
      form: 'descriptor',
      storeRoot: store.root,
      nodeDirectory: node.directory,
      layers: [{ kind: 'base', manifest }],
      upperDirectory: undefined,
      allowSetuid: true,
    }),
  );
  onTestFinished(() => root.close());
  return plain(listHost(`/proc/self/fd/${root.mount.fd}/.`));
}

/** What the tree shows once the planted names are gone. */
function listSource(root: string) {
  const listing = plain(listHost(root));
  for (const shown of Object.values(listing)) {
    for (const name of Object.keys(shown.xattrs)) {
      if (name.includes('.overlay.')) delete (shown.xattrs as Record<string, string>)[name];
    }
  }
  return listing;
}

describe.runIf(canRun)('import, mount and compare (needs root and a kernel from 6.13)', () => {
  compileFirst();

  const sources: [string, (tree: string, place: string) => ImportSource][] = [
    ['a directory', (path) => ({ kind: 'directory', path })],
    ['a tar', (tree, place) => pack(tree, place, [])],
    ['a gzip tar', (tree, place) => pack(tree, place, ['--gzip'])],
  ];

  it.each(sources)('%s', async (_name, makeSource) => {
    const tree = await makeTree();
    const source = makeSource(tree, await temporaryDirectory());
    const store = await createLayerStore(join(await temporaryDirectory(), 'store'));
    const { record, manifest } = await importLayer({
      store,
      kind: 'base',
      name: 'everything',
      version: '1.0.0',
      source,
    });
    expect(await listLayer(store, record.ref)).toEqual(listSource(tree));
    expect(manifest.stats.droppedXattrs).toBe(3);
    expect((await verifyLayer(store, record.layerId)).problems).toEqual([]);
  });

  it('notices every kind of damage', async () => {
    const tree = await makeTree();
    const store = await createLayerStore(join(await temporaryDirectory(), 'store'));
    const options = { store, kind: 'base', name: 'b', version: '1.0.0' } as const;
    const { record, manifest } = await importLayer({
      ...options,
      source: { kind: 'directory', path: tree },
    });
    const layer = join(store.root, 'layers', record.layerId.slice(7));
    const blob = join(store.root, 'blobs', manifest.devices[0]?.blobId.slice(7) ?? '');
    const flip = (path: string, offset: number) => {
      const bytes = readFileSync(path);
      bytes[offset] = (bytes[offset] ?? 0) ^ 0x20;
      chmodSync(path, 0o644);
      writeFileSync(path, bytes);
    };
    const places: [string, number][] = [
      [join(blob, 'data'), 70_000],
      [join(blob, 'index'), 3],
      [join(layer, 'meta.erofs'), 5000],
    ];
    for (const [path, offset] of places) {
      flip(path, offset);
      const { problems } = await verifyLayer(store, record.layerId);
      expect(
        problems.map(({ code }) => code),
        path,
      ).toEqual(['data-loss']);
      flip(path, offset);
      expect((await verifyLayer(store, record.layerId)).problems).toEqual([]);
    }
    const rest = join(store.root, 'rest');
    for (const path of [...places.map(([path]) => path), join(layer, 'layer.json')]) {
      renameSync(path, rest);
      const verification = verifyLayer(store, record.layerId).then(({ problems }) => {
        if (problems[0] !== undefined) throw new DsecError(problems[0].code, problems[0].message);
      });
      expect(await codeOf(verification), path).toBe('data-loss');
      renameSync(rest, path);
    }
    truncateSync(join(blob, 'data'), 4096);
    flip(join(layer, 'meta.erofs'), 5000);
    expect((await verifyLayer(store, record.layerId)).problems).toHaveLength(2);
  });
});

function pack(tree: string, place: string, options: readonly string[]): ImportSource {
  const path = join(place, 'tree.tar');
  const args = ['--format=posix', '--numeric-owner', '--xattrs', '--xattrs-include=*', '--sparse'];
  const result = spawnSync('tar', [...args, ...options, '-cf', path, '-C', tree, '.']);
  if (result.status !== 0) throw new Error(`tar: ${result.stderr}`);
  return { kind: 'auto', path };
}
