import type { LayerDescription } from '@dsec/layers';
import { formatBytes } from '@dsec/std';
import { printJson, renderTable } from '../output.ts';

/** One layer, for people or for programs; `more` is for programs only. */
export function printLayer(shown: LayerDescription, json: boolean, more: object = {}): void {
  if (json) printJson({ ...layerJson(shown), ...more });
  else process.stdout.write(`${renderTable([], showRows(shown))}\n`);
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

export function layerJson({ record, manifest }: LayerDescription): object {
  return {
    ...record,
    metaBytes: manifest.metaBytes,
    devices: manifest.devices,
    stats: manifest.stats,
  };
}
