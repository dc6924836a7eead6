import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import {
  type ComposedRoot,
  composeRoot,
  createLayerStore,
  type ImportSource,
  importLayer,
  type LayerDescription,
  type LayerKind,
  type LayerStore,
  openNodeLayers,
  planMounts,
  readManifest,
  resolveEnvironment,
  showLayer,
} from '@dsec/layers';
import { overlayFormOf } from '@dsec/linux';
import { createCleanupStack, DsecError, formatBytes, formatDuration } from '@dsec/std';
import { makeStateDirectory, type StatePaths } from '../config.ts';

import { createByteProgress } from '../output.ts';
import { makeDistributionBase } from './base.ts';
import { makeToolkitTree, makeWorkspaceTree } from './trees.ts';

interface ExampleLayer {
  readonly kind: LayerKind;
  readonly name: string;
  readonly version: string;
  source(): Promise<ImportSource>;
}

/**
 * Makes what is missing of the example layers, composes them, and shows that the result is what it
 * should be.
 */
export async function runExample(paths: StatePaths): Promise<void> {
  for (const path of Object.values(paths)) makeStateDirectory(path);
  const scratch = mkdtempSync(join(paths.root, 'example-'));
  const cleanup = createCleanupStack();
  cleanup.push('scratch', () => rmSync(scratch, { recursive: true, force: true }));
  try {
    const store = await createLayerStore(paths.store);
    const refs: string[] = [];
    for (const layer of exampleLayers(paths, scratch)) {
      const imported = await importOnce(store, layer);
      refs.push(imported.record.ref);
      say(describe(imported));
    }
    await showComposedRoot(store, paths, { refs, scratch });
  } finally {
    await cleanup.run();
  }
}

function exampleLayers(paths: StatePaths, scratch: string): ExampleLayer[] {
  const tree = (name: string) => join(scratch, name);
  return [
    {
      kind: 'base',
      name: 'example',
      version: '1.0.0',
      async source() {
        say('base: installing Debian or Ubuntu packages into a new root; about a minute, once');
        const { tarPath } = await makeDistributionBase(paths.cache);
        return { kind: 'tar', path: tarPath };
      },
    },
    {
      kind: 'workspace',
      name: 'spans',
      version: '1.0.0',
      async source() {
        await makeWorkspaceTree(tree('workspace'));
        return { kind: 'directory', path: tree('workspace') };
      },
    },
    {
      kind: 'toolkit',
      name: 'codestat',
      version: '1.0.0',
      async source() {
        makeToolkitTree(tree('toolkit'));
        return { kind: 'directory', path: tree('toolkit') };
      },
    },
  ];
}

async function importOnce(store: LayerStore, layer: ExampleLayer): Promise<LayerDescription> {
  const ref = `${layer.kind}/${layer.name}:${layer.version}`;
  try {
    return await showLayer(store, ref);
  } catch (thrown) {
    if (!(thrown instanceof DsecError) || thrown.code !== 'not-found') throw thrown;
  }
  const source = await layer.source();
  const progress = createByteProgress(ref);
  try {
    await importLayer({
      store,
      kind: layer.kind,
      name: layer.name,
      version: layer.version,
      source,
      onProgress: ({ bytes, bytesTotal, entries }) =>
        progress.update(bytes, bytesTotal ?? undefined, `${entries} entries`),
    });
  } finally {
    progress.finish();
  }
  return showLayer(store, ref);
}

function describe({ record, manifest, dataBytes }: LayerDescription): string {
  const share = (100 * manifest.metaBytes) / (manifest.metaBytes + dataBytes);
  return (
    `${record.ref}: ${manifest.stats.entries} entries, ${formatBytes(dataBytes)} of data, ` +
    `${formatBytes(manifest.metaBytes)} of metadata (${share.toFixed(2)} %)`
  );
}

interface Composition {
  readonly refs: readonly string[];
  readonly scratch: string;
}

async function showComposedRoot(
  store: LayerStore,
  paths: StatePaths,
  { refs, scratch }: Composition,
): Promise<void> {
  const environment = await resolveEnvironment(store, refs);
  const form = overlayFormOf(release());
  const node = await openNodeLayers({ store, directory: paths.node, form, directIo: false });
  const layers = await Promise.all(
    environment.layers.map(async ({ kind, layerId }) => ({
      kind,
      manifest: await readManifest(store, layerId),
    })),
  );
  const plan = planMounts({
    form,
    storeRoot: store.root,
    nodeDirectory: paths.node,
    layers,
    upperDirectory: join(scratch, 'upper'),
    allowSetuid: false,
  });
  const started = performance.now();
  const root = await composeRoot(node, plan);
  try {
    const took = formatDuration(performance.now() - started);
    say(`composed ${refs.join(' + ')} to one root in ${took} (metadata checked, ${form} form)`);
    await inspect(root, join(scratch, 'root'));
  } finally {
    await root.close();
  }
}

/** Looks at the root from the host. Nothing in it is executed. */
async function inspect(root: ComposedRoot, target: string): Promise<void> {
  mkdirSync(target);
  root.attach(target);
  const read = (path: string) => readFileSync(join(target, path), 'utf8');
  say(`  /etc/os-release      ${/^PRETTY_NAME="?([^"\n]*)/m.exec(read('etc/os-release'))?.[1]}`);
  say(`  /workspace/spans     ${read('workspace/spans/README.md').split('\n')[0]}`);
  say(`  /opt/codestat        ${read('opt/codestat/codestat/__init__.py').split('\n')[0]}`);
  writeFileSync(join(target, 'workspace/spans/note.txt'), 'written to the upper, not to a layer\n');
  say(`  written to its upper ${read('workspace/spans/note.txt').trim()}`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
