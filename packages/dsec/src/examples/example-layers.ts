import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  createLayerStore,
  type ImportSource,
  importLayer,
  type LayerDescription,
  type LayerKind,
  type LayerStore,
  showLayer,
} from '@dsec/layers';
import { DsecError, formatBytes } from '@dsec/std';
import { makeStateDirectory, type StatePaths } from '../config.ts';
import { createByteProgress } from '../output.ts';
import { makeDistributionBase } from './base.ts';
import { makeToolkitTree, makeWorkspaceTree } from './trees.ts';

interface ExampleLayer {
  readonly kind: LayerKind;
  readonly name: string;
  readonly version: string;
  source(scratch: string): Promise<ImportSource>;
}

export interface ExampleOptions {
  readonly paths: StatePaths;
  readonly signal: AbortSignal;
  say(line: string): void;
}

/**
 * Makes what is missing of the example layers: a base of this machine's own distribution, a workspace with
 * failing tests, a toolkit. Returns their names from the base up. Needs root for the base.
 */
export async function makeExampleLayers(options: ExampleOptions): Promise<readonly string[]> {
  const { paths, say } = options;
  for (const path of [paths.root, paths.store, paths.cache]) makeStateDirectory(path);
  const store = await createLayerStore(paths.store);
  const refs: string[] = [];
  for (const layer of exampleLayers(options)) {
    const made = await importOnce(store, layer, options);
    refs.push(made.record.ref);
    say(describe(made));
  }
  return refs;
}

function exampleLayers({ paths, signal, say }: ExampleOptions): readonly ExampleLayer[] {
  const version = '1.0.0';
  return [
    {
      ...{ kind: 'base', name: 'example', version },
      async source() {
        say(
          '  base: installing packages of the distribution into a new root; about a minute, once',
        );
        const { tarPath } = await makeDistributionBase(paths.cache, signal);
        return { kind: 'tar', path: tarPath };
      },
    },
    {
      ...{ kind: 'workspace', name: 'spans', version },
      async source(scratch) {
        await makeWorkspaceTree(join(scratch, 'tree'), signal);
        return { kind: 'directory', path: join(scratch, 'tree') };
      },
    },
    {
      ...{ kind: 'toolkit', name: 'codestat', version },
      async source(scratch) {
        makeToolkitTree(join(scratch, 'tree'));
        return { kind: 'directory', path: join(scratch, 'tree') };
      },
    },
  ];
}

async function importOnce(
  store: LayerStore,
  { kind, name, version, source }: ExampleLayer,
  { paths, signal }: ExampleOptions,
): Promise<LayerDescription> {
  const ref = `${kind}/${name}:${version}`;
  try {
    return await showLayer(store, ref);
  } catch (thrown) {
    if (!(thrown instanceof DsecError) || thrown.code !== 'not-found') throw thrown;
  }
  const scratch = mkdtempSync(join(paths.root, 'example-'));
  const progress = createByteProgress(ref);
  try {
    await importLayer({
      ...{ store, kind, name, version, signal, source: await source(scratch) },
      onProgress: ({ bytes, bytesTotal, entries }) =>
        progress.update(bytes, bytesTotal ?? undefined, `${entries} entries`),
    });
  } finally {
    progress.finish();
    rmSync(scratch, { recursive: true, force: true });
  }
  return showLayer(store, ref);
}

function describe({ record, manifest, dataBytes }: LayerDescription): string {
  const share = (100 * manifest.metaBytes) / (manifest.metaBytes + dataBytes);
  return (
    `  ${record.ref}: ${manifest.stats.entries} entries, ${formatBytes(dataBytes)} of data, ` +
    `${formatBytes(manifest.metaBytes)} of metadata (${share.toFixed(2)} %)`
  );
}
