import { readdir } from 'node:fs/promises';
import { asDsecError, type Digest, digestOfHex } from '@dsec/std';
import { type LayerStore, layersDirectory } from './store-layout.ts';

const HEX = /^[0-9a-f]{64}$/;

/** Every layer that is published, named or not, by id. */
export async function listLayerIds(store: LayerStore): Promise<readonly Digest[]> {
  try {
    const names = await readdir(layersDirectory(store));
    return names
      .filter((name) => HEX.test(name))
      .sort()
      .map(digestOfHex);
  } catch (thrown) {
    throw asDsecError(thrown);
  }
}
