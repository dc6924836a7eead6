import type { LayerDescription } from '@dsec/layers';
import { formatBytes } from '@dsec/std';
import { printJson, renderTable } from '../output.ts';

type Manifest = LayerDescription['manifest'];
type Stats = Manifest['stats'];

/** A named layer; a server tells less of it than a local store. */
export interface ShownLayer {
  readonly record: Pick<LayerDescription['record'], 'ref' | 'createdAtMs'> & {
    readonly layerId: string;
    readonly treeDigest: string;
    readonly source?: LayerDescription['record']['source'];
  };
  readonly manifest: Pick<Manifest, 'metaBytes'> & {
    readonly devices: readonly { readonly blobId: string; readonly bytes: number }[];
    readonly stats: Pick<Stats, 'entries' | 'contentBytes' | 'storedBytes' | 'sharedBytes'> &
      Partial<Stats>;
  };
  readonly dataBytes: number;
}

/** One layer, for people or for programs; `more` is for programs only. */
export function printLayer(shown: ShownLayer, json: boolean, more: object = {}): void {
  if (json) printJson({ ...layerJson(shown), ...more });
  else process.stdout.write(`${renderTable([], showRows(shown))}\n`);
}

function showRows({ record, manifest, dataBytes }: ShownLayer): string[][] {
  const { stats } = manifest;
  const { inodes, holeBytes, droppedXattrs } = stats;
  const { source } = record;
  const inodeNote = inodes === undefined ? '' : ` (${inodes} inodes)`;
  const holeNote = holeBytes === undefined ? '' : `, of it holes ${formatBytes(holeBytes)}`;
  return [
    ['layer', record.ref],
    ['id', record.layerId],
    ['tree', record.treeDigest],
    ...(source === undefined
      ? []
      : [['source', [source.kind, source.digest ?? ''].join(' ').trim()]]),
    ['created', new Date(record.createdAtMs).toISOString()],
    ['entries', `${stats.entries}${inodeNote}`],
    ['content', `${formatBytes(stats.contentBytes)}${holeNote}`],
    ['data', `${formatBytes(dataBytes)} in ${manifest.devices.length} blobs`],
    ['metadata', formatBytes(manifest.metaBytes)],
    ['stored', `${formatBytes(stats.storedBytes)} new, ${formatBytes(stats.sharedBytes)} shared`],
    ...(droppedXattrs === undefined ? [] : [['dropped xattrs', String(droppedXattrs)]]),
  ];
}

export function layerJson({ record, manifest }: ShownLayer): object {
  return {
    ...record,
    metaBytes: manifest.metaBytes,
    devices: manifest.devices,
    stats: manifest.stats,
  };
}
