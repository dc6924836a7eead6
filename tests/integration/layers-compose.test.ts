import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import {
  type ComposedRoot,
  composeRoot,
  createLayerStore,
  type LayerStore,
  type MountPlanInput,
  type NodeLayers,
  openNodeLayers,
  planMounts,
  readManifest,
  resolveEnvironment,
} from '@dsec/layers';
import { setXattr } from '@dsec/linux';
import { type Digest, MIB } from '@dsec/std';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { buildLayer } from '../../packages/layers/test/support/build-layer.ts';
import {
  blobPaths,
  digestOf,
  encodeRecord,
  layerPaths,
  nodeLayerPaths,
} from '../../packages/layers/test/support/internals.ts';
import {
  canMount,
  MOUNT_FORMS,
  mountScratchDisk,
  mountTable,
  rerunInPrivateNamespace,
} from '../../packages/layers/test/support/mounts.ts';
import { codeOf, temporaryDirectory } from '../../packages/layers/test/support/temporary.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

describe.runIf(canMount).each(MOUNT_FORMS)('layers composed in %s form (needs root)', (form) => {
  let place: string;
  let store: LayerStore;
  let node: NodeLayers;
  let tableBefore: string[];

  /** Other tests may mount in this namespace meanwhile, below directories of their own. */
  const ownTable = () =>
    mountTable().filter((line) => line.includes(place) || !/\/dsec-[a-z]+-\w{6}\//.test(line));

  beforeEach(async () => {
    place = await temporaryDirectory();
    mountScratchDisk(place, 64 * MIB);
    tableBefore = ownTable();
    store = await createLayerStore(join(place, 'store'));
    node = await openNode();
  });

  const openNode = (directory = join(place, 'node')) =>
    openNodeLayers({ store, directory, form, directIo: false });

  interface RootOptions {
    readonly upper?: string;
    readonly allowSetuid?: boolean;
    readonly nodeDirectory?: string;
  }

  async function planOf(refs: readonly string[], options: RootOptions = {}) {
    const environment = await resolveEnvironment(store, refs);
    const layers: MountPlanInput['layers'][number][] = [];
    for (const { kind, layerId } of environment.layers) {
      layers.push({ kind, manifest: await readManifest(store, layerId) });
    }
    return planMounts({
      form,
      storeRoot: store.root,
      nodeDirectory: options.nodeDirectory ?? join(place, 'node'),
      layers,
      upperDirectory: options.upper,
      allowSetuid: options.allowSetuid ?? true,
    });
  }

  /** Composes, attaches at a new directory, and undoes it all when the test ends, before the tmpfs goes. */
  async function compose(refs: readonly string[], options: RootOptions = {}, on = node) {
    if (options.upper !== undefined) mkdirSync(options.upper, { recursive: true });
    const root = await composeRoot(on, await planOf(refs, options));
    onTestFinished(() => root.close());
    return { root, path: show(root) };
  }

  let shown = 0;
  function show(root: ComposedRoot): string {
    const path = join(place, `root${shown++}`);
    mkdirSync(path);
    root.attach(path);
    return path;
  }

  const newUpper = () => join(place, `upper${shown++}`);

  it('shows diffs over toolkits over the workspace over the base', async () => {
    const refs = ['base/b:1.0.0', 'workspace/w:1.0.0', 'toolkit/t:1.0.0', 'toolkit/u:1.0.0'];
    const all = [...refs, 'diff/d:1.0.0'];
    for (const [position, ref] of all.entries()) {
      await buildLayer(store, ref, (tree) => {
        for (let name = position; name < all.length; name += 1) tree.file(`in${name}`, 'hidden');
        for (let name = 0; name <= position; name += 1) tree.file(`over${name}`, ref);
        tree.file(`only/${position}`, ref);
      });
    }
    const { path } = await compose([...all].reverse().concat(), { upper: newUpper() });
    const top = (name: string) => readFileSync(join(path, name), 'utf8');
    // `diff` is above everything; two toolkits keep the order in which the caller gave them.
    expect(top('over0')).toBe('diff/d:1.0.0');
    expect(all.map((ref, position) => top(`only/${position}`) === ref)).toEqual(
      all.map(() => true),
    );
    const { path: forward } = await compose(refs, { upper: newUpper() });
    expect(readFileSync(join(forward, 'over0'), 'utf8')).toBe('toolkit/u:1.0.0');
    expect(readFileSync(join(forward, 'over1'), 'utf8')).toBe('toolkit/u:1.0.0');
    expect(readdirSync(join(forward, 'only'))).toEqual(['0', '1', '2', '3']);
  });

  it('honours whiteouts and opaque directories of upper layers', async () => {
    await buildLayer(store, 'base/b:1.0.0', (tree) => {
      for (const name of ['gone', 'kept', 'etc/old', 'etc/other', 'usr/a']) tree.file(name, 'base');
    });
    await buildLayer(store, 'diff/d:1.0.0', (tree) => {
      tree.builder.whiteout('gone');
      tree.directory('etc');
      tree.builder.opaque('etc');
      tree.file('etc/new', 'diff');
      tree.builder.whiteout('usr');
    });
    const { path } = await compose(['base/b:1.0.0', 'diff/d:1.0.0'], { upper: newUpper() });
    expect(readdirSync(path).sort()).toEqual(['etc', 'kept']);
    expect(readdirSync(join(path, 'etc'))).toEqual(['new']);
  });

  it('keeps writes in the upper and nothing else', async () => {
    await buildLayer(store, 'base/b:1.0.0', (tree) => {
      tree.file('a', 'base');
      tree.file('b', 'base');
      tree.directory('', { mode: 0o751, uid: 3, gid: 4 });
    });
    const upper = newUpper();
    const { path, root } = await compose(['base/b:1.0.0'], { upper });
    expect(statSync(path)).toMatchObject({ uid: 3, gid: 4 });
    expect(statSync(path).mode & 0o7777).toBe(0o751);
    writeFileSync(join(path, 'a'), 'changed');
    rmSync(join(path, 'b'));
    mkdirSync(join(path, 'c'));
    expect(readdirSync(join(upper, 'upper')).sort()).toEqual(['a', 'b', 'c']);
    await root.close();

    const { path: again } = await compose(['base/b:1.0.0'], { upper });
    expect(readFileSync(join(again, 'a'), 'utf8')).toBe('changed');
    expect(readdirSync(again).sort()).toEqual(['a', 'c']);
    const { path: fresh } = await compose(['base/b:1.0.0'], { upper: newUpper() });
    expect(readFileSync(join(fresh, 'a'), 'utf8')).toBe('base');
  });

  it('is read-only without an upper, for one layer and for several', async () => {
    await buildLayer(store, 'base/b:1.0.0', (tree) => tree.file('a', 'base'));
    await buildLayer(store, 'toolkit/t:1.0.0', (tree) => tree.file('t', 'tool'));
    for (const refs of [['base/b:1.0.0'], ['base/b:1.0.0', 'toolkit/t:1.0.0']]) {
      const { path } = await compose(refs);
      expect(readFileSync(join(path, 'a'), 'utf8')).toBe('base');
      expect(() => writeFileSync(join(path, 'a'), 'x')).toThrow(/EROFS/);
    }
  });

  it('does not follow a planted redirect', async () => {
    await buildLayer(store, 'base/b:1.0.0', (tree) => tree.file('answers/a', 'secret'));
    const upper = newUpper();
    mkdirSync(join(upper, 'upper', 'x'), { recursive: true });
    setXattr(join(upper, 'upper', 'x'), 'trusted.overlay.redirect', Buffer.from('/answers'));
    const { path } = await compose(['base/b:1.0.0'], { upper });
    expect(readFileSync(join(path, 'answers', 'a'), 'utf8')).toBe('secret');
    expect(() => readFileSync(join(path, 'x', 'a'))).toThrow(/EPERM|ENOENT/);
  });

  it('mounts a layer once for all sandboxes that use it', async () => {
    const { layerId } = await buildLayer(store, 'base/b:1.0.0', (tree) => tree.file('a', 'base'));
    const first = await compose(['base/b:1.0.0'], { upper: newUpper() });
    const second = await compose(['base/b:1.0.0'], { upper: newUpper() });
    expect(node.users().get(layerId)).toBe(2);
    const erofs = mountTable().filter((line) => line.includes(' - erofs '));
    expect(erofs).toHaveLength(form === 'path' ? 1 : 0);
    // One more user sees the file system itself, and it is the same one.
    const [plan] = (await planOf(['base/b:1.0.0'])).layers;
    if (plan === undefined) throw new Error('the plan has a layer');
    const lease = await node.acquire(plan);
    const other = await (await openNode(join(place, 'node2'))).acquire({
      ...plan,
      metaPath: nodeLayerPaths(join(place, 'node2'), layerId).meta,
      mountPath: nodeLayerPaths(join(place, 'node2'), layerId).mount,
    });
    const deviceOf = (fd: number) => statSync(`/proc/self/fd/${fd}`).dev;
    expect(deviceOf(other.value.fd)).not.toBe(deviceOf(lease.value.fd));
    await other.release();
    await first.root.close();
    expect(readFileSync(join(second.path, 'a'), 'utf8')).toBe('base');
    expect(node.users().get(layerId)).toBe(2);
    await second.root.close();
    const again = await node.acquire(plan);
    expect(deviceOf(again.value.fd)).toBe(deviceOf(lease.value.fd));
    await again.release();
    await lease.release();
    expect(node.users().size).toBe(0);
  });

  it('leaves nothing in the mount table, also after a failure half-way', async () => {
    await buildLayer(store, 'base/b:1.0.0', (tree) => tree.file('a', 'base'));
    const broken = await buildLayer(store, 'toolkit/t:1.0.0', (tree) => tree.file('t', 'tool'));
    const { path, root } = await compose(['base/b:1.0.0', 'toolkit/t:1.0.0'], {
      upper: newUpper(),
    });
    expect(existsSync(join(path, 'a'))).toBe(true);
    await root.close();
    expect(ownTable()).toEqual(tableBefore);
    expect(node.users().size).toBe(0);

    const data = blobPaths(store, broken.devices[0]?.blobId as Digest).data;
    chmodSync(data, 0o644);
    truncateSync(data, 100);
    const plan = await planOf(['base/b:1.0.0', 'toolkit/t:1.0.0'], { upper: newUpper() });
    expect(await codeOf(composeRoot(node, plan))).toBe('data-loss');
    expect(ownTable()).toEqual(tableBefore);
    expect(node.users().size).toBe(0);
  });

  it('takes long names of stores and deep trees of directories', async () => {
    const long = join(place, 'long'.repeat(50), 'name'.repeat(50), 'of'.repeat(100));
    store = await createLayerStore(join(long, 'store'));
    const nodeDirectory = join(long, 'node');
    const deep = Array.from({ length: 400 }, () => 'd').join('/');
    await buildLayer(store, 'base/b:1.0.0', (tree) => tree.file(`${deep}/f`, 'deep'));
    await buildLayer(store, 'toolkit/t:1.0.0', (tree) => tree.file('t', 'tool'));
    const options = { upper: join(long, 'upper'), nodeDirectory };
    const on = await openNode(nodeDirectory);
    const { path } = await compose(['base/b:1.0.0', 'toolkit/t:1.0.0'], options, on);
    expect(readFileSync(join(path, deep, 'f'), 'utf8')).toBe('deep');
    writeFileSync(join(path, deep, 'g'), 'new');
    expect(readdirSync(join(path, deep)).sort()).toEqual(['f', 'g']);
  });

  it('sets nodev always and nosuid unless the environment needs set-user-id', async () => {
    await buildLayer(store, 'base/b:1.0.0', (tree) => tree.file('a', 'base'));
    const optionsOf = (path: string) => {
      const fields = mountTable()
        .find((line) => line.split(' ')[4] === path)
        ?.split(' ');
      return fields?.[5]?.split(',') ?? [];
    };
    const plain = await compose(['base/b:1.0.0'], { upper: newUpper(), allowSetuid: false });
    expect(optionsOf(plain.path)).toEqual(expect.arrayContaining(['rw', 'nosuid', 'nodev']));
    const setuid = await compose(['base/b:1.0.0'], { upper: newUpper(), allowSetuid: true });
    expect(optionsOf(setuid.path)).toContain('nodev');
    expect(optionsOf(setuid.path)).not.toContain('nosuid');
    const overlay = mountTable().find((line) => line.split(' ')[4] === setuid.path) ?? '';
    expect(overlay).toMatch(/redirect_dir=nofollow/);
    expect(overlay).not.toMatch(/metacopy=on/);
    // What a sandbox may read of its own mount table does not tell where its upper lies on the host.
    if (form === 'descriptor') expect(overlay).not.toContain(`${place}/upper`);
  });

  describe('refuses to show the kernel', () => {
    const build = () => buildLayer(store, 'base/b:1.0.0', (tree) => tree.file('a', 'base'));
    const attempt = async () => {
      const plan = await planOf(['base/b:1.0.0'], { upper: newUpper() });
      return codeOf(composeRoot(node, plan));
    };

    it('metadata that does not match its digest', async () => {
      const { layerId } = await build();
      const { meta } = layerPaths(store, layerId);
      const bytes = readFileSync(meta);
      bytes[2000] = (bytes[2000] ?? 0) ^ 1;
      chmodSync(meta, 0o644);
      writeFileSync(meta, bytes);
      expect(await attempt()).toBe('data-loss');
      expect(readdirSync(join(place, 'node', 'layers'))).toEqual([]);
      expect(readdirSync(join(place, 'node', 'tmp'))).toEqual([]);
    });

    it('an image with features of another writer, though its digest is right', async () => {
      const { layerId } = await build();
      const original = layerPaths(store, layerId);
      const bytes = readFileSync(original.meta);
      const FEATURE_INCOMPAT = 1024 + 80;
      bytes.writeUInt32LE(bytes.readUInt32LE(FEATURE_INCOMPAT) | 1, FEATURE_INCOMPAT);
      const foreignId = digestOf(bytes);
      const foreign = layerPaths(store, foreignId);
      mkdirSync(foreign.directory);
      writeFileSync(foreign.meta, bytes);
      const manifest = await readManifest(store, layerId);
      writeFileSync(foreign.manifest, encodeRecord({ ...manifest, layerId: foreignId }));
      const plan = planMounts({
        form,
        storeRoot: store.root,
        nodeDirectory: join(place, 'node'),
        layers: [{ kind: 'base', manifest: await readManifest(store, foreignId) }],
        upperDirectory: undefined,
        allowSetuid: true,
      });
      expect(await codeOf(composeRoot(node, plan))).toBe('layer-invalid');
    });

    it('a manifest that names other devices than the metadata', async () => {
      const { layerId } = await build();
      const other = await buildLayer(store, 'base/o:1.0.0', (tree) => tree.file('o', 'other'));
      const { manifest: path } = layerPaths(store, layerId);
      const manifest = await readManifest(store, layerId);
      const [device] = manifest.devices;
      chmodSync(path, 0o644);
      const blobId = other.devices[0]?.blobId;
      writeFileSync(path, encodeRecord({ ...manifest, devices: [{ ...device, blobId }] }));
      expect(await attempt()).toBe('layer-invalid');
    });

    it.each(['a link', 'a directory', 'nothing'])('%s in place of a blob', async (kind) => {
      const { devices } = await build();
      const { data } = blobPaths(store, devices[0]?.blobId as Digest);
      copyFileSync(data, join(place, 'elsewhere'));
      rmSync(data);
      if (kind === 'a link') symlinkSync(join(place, 'elsewhere'), data);
      if (kind === 'a directory') mkdirSync(data);
      expect(await attempt()).toBe('data-loss');
    });
  });

  it('repairs its own damaged copy of the metadata', async () => {
    const { layerId } = await buildLayer(store, 'base/b:1.0.0', (tree) => tree.file('a', 'base'));
    const { meta } = nodeLayerPaths(join(place, 'node'), layerId);
    writeFileSync(meta, 'rubbish');
    const { path } = await compose(['base/b:1.0.0'], { upper: newUpper() });
    expect(readFileSync(join(path, 'a'), 'utf8')).toBe('base');
    expect(digestOf(readFileSync(meta))).toBe(layerId);
  });
});
