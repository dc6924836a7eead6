import {
  createLayerStore,
  LAYER_KINDS,
  type LayerStore,
  listLayers,
  type RefFilter,
} from '@dsec/layers';
import { DsecError, formatBytes, parseName } from '@dsec/std';
import { hasLayerServer, withClient } from '../client/connect.ts';
import { listServerLayers } from '../client/server-layers.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { makeStateDirectories } from '../config.ts';
import { printJson, renderTable } from '../output.ts';
import { endWithProblems, type LayerProblem, problemOf } from './layer-problems.ts';
import { layerJson, type ShownLayer } from './layer-rows.ts';

export async function run({ args, json, paths, settings }: Invocation): Promise<void> {
  const filter = parseFilter(args[0]);
  if (hasLayerServer(settings)) {
    await withClient(settings, async (client) => {
      const { layers, lost } = await listServerLayers(client, filter);
      const problems = lost.map(({ ref, layerId }) =>
        problemOf(ref, new DsecError('data-loss', `the server has no whole layer ${layerId}`)),
      );
      printAll(layers, problems, json);
    });
    return;
  }
  makeStateDirectories(paths);
  await listLocal(await createLayerStore(paths.store), filter, json);
}

function parseFilter(filter: string | undefined): RefFilter {
  if (filter === undefined) return {};
  const [kindText, name, ...more] = filter.split('/');
  const kind = LAYER_KINDS.find((known) => known === kindText);
  if (kind === undefined) {
    throw new DsecError('invalid-argument', `a layer kind is one of ${LAYER_KINDS.join(', ')}`);
  }
  if (more.length > 0) throw new DsecError('invalid-argument', 'a filter is a kind, or kind/name');
  return name === undefined ? { kind } : { kind, name: parseName(name, 'layer name') };
}

/** Damaged ones do not hide the others; the exit code tells of them. */
async function listLocal(store: LayerStore, filter: RefFilter, json: boolean): Promise<void> {
  const layers: ShownLayer[] = [];
  const problems: LayerProblem[] = [];
  for await (const found of listLayers(store, filter)) {
    if ('error' in found) problems.push(problemOf(found.ref, found.error));
    else layers.push(found);
  }
  printAll(layers, problems, json);
}

function printAll(
  layers: readonly ShownLayer[],
  problems: readonly LayerProblem[],
  json: boolean,
): void {
  if (json) printJson({ layers: layers.map(layerJson), problems });
  else process.stdout.write(`${renderTable(LIST_HEAD, layers.map(listRow))}\n`);
  endWithProblems(problems, json);
}

const LIST_HEAD = ['LAYER', 'ID', 'ENTRIES', 'CONTENT', 'DATA', 'METADATA', 'SOURCE', 'CREATED'];

function listRow({ record, manifest, dataBytes }: ShownLayer): string[] {
  return [
    record.ref,
    record.layerId.slice('sha256:'.length, 'sha256:'.length + 12),
    String(manifest.stats.entries),
    formatBytes(manifest.stats.contentBytes),
    formatBytes(dataBytes),
    formatBytes(manifest.metaBytes),
    record.source?.kind ?? '',
    new Date(record.createdAtMs).toISOString().slice(0, 19).replace('T', ' '),
  ];
}
