import {
  createLayerStore,
  formatLayerRef,
  importLayer,
  LAYER_KINDS,
  type LayerDescription,
  type LayerStore,
  listLayers,
  openLayerStore,
  parseLayerRef,
  type RefFilter,
  removeRef,
  showLayer,
} from '@dsec/layers';
import { DsecError, formatBytes, parseName } from '@dsec/std';
import type { Command } from 'commander';
import { checkStateDirectories, makeStateDirectories } from '../config.ts';
import { createByteProgress, printJson, printWarning, renderTable } from '../output.ts';
import { globalOptions, withInterrupt } from './globals.ts';
import { endWithProblems, type LayerProblem, problemOf } from './layer-problems.ts';
import { importLimitsOf, importSourceOf, type SourceOptions } from './layer-source.ts';
import { addVerifyCommand } from './layer-verify.ts';

export function addLayerCommands(program: Command): void {
  const layer = program.command('layer').description('make, list and check layers');
  addImport(layer);

  layer
    .command('ls')
    .description('list layers, newest version first')
    .argument('[filter]', `a kind (${LAYER_KINDS.join(', ')}), or kind/name`)
    .action(async (filter: string | undefined, _options: unknown, command: Command) => {
      const { json, paths } = globalOptions(command);
      makeStateDirectories(paths);
      await listAll(await createLayerStore(paths.store), parseFilter(filter), json);
    });

  layer
    .command('show')
    .description('show one layer')
    .argument('<ref>', 'kind/name:version; the version may be ^1, ~1.2 or latest')
    .action(async (ref: string, _options: unknown, command: Command) => {
      const { json, paths } = globalOptions(command);
      checkStateDirectories(paths);
      const shown = await showLayer(await openLayerStore(paths.store), ref);
      if (json) printJson(layerJson(shown));
      else process.stdout.write(`${renderTable([], showRows(shown))}\n`);
    });

  layer
    .command('rm')
    .description('remove the name of a layer; its data stays for whoever else uses it')
    .argument('<ref>', 'kind/name:version, in full')
    .action(async (text: string, _options: unknown, command: Command) => {
      const { json, paths } = globalOptions(command);
      const ref = parseLayerRef(text);
      checkStateDirectories(paths);
      await removeRef(await openLayerStore(paths.store), ref);
      if (json) printJson({ removed: formatLayerRef(ref) });
      else process.stdout.write(`removed ${formatLayerRef(ref)}\n`);
    });

  addVerifyCommand(layer);
}

function addImport(layer: Command): void {
  layer
    .command('import')
    .description('make a layer from a directory, tar, OCI layout or docker archive')
    .argument('<ref>', 'the new name: kind/name:version, such as base/debian:12.0.0')
    .argument(
      '<source>',
      'a path (a FIFO is waited for), or - for a tar (plain, gzip, zstd) on standard input',
    )
    .option('--type <type>', 'auto, tar, directory, oci-layout or docker-archive', 'auto')
    .option('--platform <platform>', 'of a multi-platform image: os/architecture[/variant]')
    .option('--reference <name>', 'which image of an archive that holds several')
    .option('--overlay-upper', 'the directory is the upper of an overlay: keep its whiteouts')
    .option(
      '--dedup <ref>',
      'a layer whose data the new one may share; may be repeated',
      collect,
      [],
    )
    .option(
      '--limit <name=value>',
      'another import limit, such as entriesMax=2000000; may be repeated',
      collect,
      [],
    )
    .action(async (text: string, path: string, options: ImportFlags, command: Command) => {
      const { json, paths } = globalOptions(command);
      const ref = parseLayerRef(text);
      const source = importSourceOf(path, options);
      makeStateDirectories(paths);
      const store = await createLayerStore(paths.store);
      const progress = createByteProgress(`import ${formatLayerRef(ref)}`);
      const imported = await withInterrupt((signal) =>
        importLayer({
          store,
          ...ref,
          source,
          signal,
          dedup: options.dedup,
          limits: importLimitsOf(options.limit),
          onProgress: ({ bytes, bytesTotal, entries }) =>
            progress.update(bytes, bytesTotal ?? undefined, `${entries} entries`),
        }),
      ).finally(() => progress.finish());
      const { repaired } = imported;
      const shown = await showLayer(store, imported.record.ref);
      if (json) return printJson({ ...layerJson(shown), repaired });
      for (const file of repaired) printWarning(`repaired ${file}, which was damaged in the store`);
      process.stdout.write(`${renderTable([], showRows(shown))}\n`);
    });
}

interface ImportFlags extends SourceOptions {
  readonly dedup: string[];
  readonly limit: string[];
}

const collect = (value: string, before: string[]) => [...before, value];

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
async function listAll(store: LayerStore, filter: RefFilter, json: boolean): Promise<void> {
  const layers: LayerDescription[] = [];
  const problems: LayerProblem[] = [];
  for await (const found of listLayers(store, filter)) {
    if ('error' in found) problems.push(problemOf(found.ref, found.error));
    else layers.push(found);
  }
  if (json) printJson({ layers: layers.map(layerJson), problems });
  else process.stdout.write(`${renderTable(LIST_HEAD, layers.map(listRow))}\n`);
  endWithProblems(problems, json);
}

const LIST_HEAD = ['LAYER', 'ID', 'ENTRIES', 'CONTENT', 'DATA', 'METADATA', 'SOURCE', 'CREATED'];

function listRow({ record, manifest, dataBytes }: LayerDescription): string[] {
  return [
    record.ref,
    record.layerId.slice('sha256:'.length, 'sha256:'.length + 12),
    String(manifest.stats.entries),
    formatBytes(manifest.stats.contentBytes),
    formatBytes(dataBytes),
    formatBytes(manifest.metaBytes),
    record.source.kind,
    new Date(record.createdAtMs).toISOString().slice(0, 19).replace('T', ' '),
  ];
}

function showRows({ record, manifest, dataBytes }: LayerDescription): string[][] {
  const { stats } = manifest;
  return [
    ['layer', record.ref],
    ['id', record.layerId],
    ['tree', record.treeDigest],
    ['source', [record.source.kind, record.source.digest ?? ''].join(' ').trim()],
    ['created', new Date(record.createdAtMs).toISOString()],
    ['entries', `${stats.entries} (${stats.inodes} inodes)`],
    ['content', `${formatBytes(stats.contentBytes)}, of it holes ${formatBytes(stats.holeBytes)}`],
    ['data', `${formatBytes(dataBytes)} in ${manifest.devices.length} blobs`],
    ['metadata', formatBytes(manifest.metaBytes)],
    ['stored', `${formatBytes(stats.storedBytes)} new, ${formatBytes(stats.sharedBytes)} shared`],
    ['dropped xattrs', String(stats.droppedXattrs)],
  ];
}

function layerJson({ record, manifest }: LayerDescription): object {
  return {
    ...record,
    metaBytes: manifest.metaBytes,
    devices: manifest.devices,
    stats: manifest.stats,
  };
}
