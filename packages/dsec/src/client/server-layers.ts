/** Layers of a server, in the shape that those of a local store are shown in. */
import type { Client, LayerKind } from '@dsec/libdsec';
import type { Layer, LayerRef } from '@dsec/protocol';
import type { ShownLayer } from '../commands/layer-rows.ts';

export interface ServerLayers {
  readonly layers: readonly ShownLayer[];
  /** Names whose layer the server does not have, or not whole. */
  readonly lost: readonly LayerRef[];
}

/** Names by kind, then name, newest version first, each with its layer. */
export async function listServerLayers(
  client: Client,
  filter: { readonly kind?: LayerKind; readonly name?: string },
): Promise<ServerLayers> {
  const known = new Map<string, Layer>();
  for await (const layer of client.layers.list()) known.set(layer.layerId, layer);
  const layers: ShownLayer[] = [];
  const lost: LayerRef[] = [];
  for await (const record of client.layers.refs(filter)) {
    const layer = known.get(record.layerId);
    if (layer === undefined) lost.push(record);
    else layers.push(shownLayer(record, layer));
  }
  return { layers, lost };
}

export async function findServerLayer(client: Client, selector: string): Promise<ShownLayer> {
  const record = await client.layers.resolve(selector);
  return shownLayer(record, await client.layers.get(record.layerId));
}

function shownLayer(record: LayerRef, layer: Layer): ShownLayer {
  const { metaBytes, devices, entries, contentBytes, storedBytes, sharedBytes } = layer;
  return {
    record,
    manifest: {
      ...{ metaBytes, devices },
      stats: { entries, contentBytes, storedBytes, sharedBytes },
    },
    dataBytes: devices.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}
