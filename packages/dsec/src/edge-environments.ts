import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EnvironmentSource } from '@dsec/edge';
import { createLayerStore, type LayerStore, resolveEnvironment } from '@dsec/layers';
import { DsecError, parseName } from '@dsec/std';
import type { StatePaths } from './config.ts';

const FILE_BYTES_MAX = 65_536;

/**
 * Layers of this node's store, and named environments of the state root: `environments/<name>.json` holds
 * the list of layers that the name stands for.
 */
export function openEnvironments({ root, store }: StatePaths): EnvironmentSource {
  const directory = join(root, 'environments');
  let opening: Promise<LayerStore> | undefined;
  /** Once; a store that could not be opened is tried again. */
  const opened = async () => {
    opening ??= createLayerStore(store);
    try {
      return await opening;
    } catch (thrown) {
      opening = undefined;
      throw thrown;
    }
  };
  return {
    async layersOf(name) {
      const text = await readOptional(join(directory, `${parseName(name, 'environment')}.json`));
      if (text === undefined) {
        throw new DsecError('not-found', `there is no environment ${name} on this node`);
      }
      return layersIn(text, name);
    },
    resolve: async (refs) => resolveEnvironment(await opened(), refs),
  };
}

function layersIn(text: string, name: string): readonly string[] {
  const fail = () =>
    new DsecError('data-loss', `the file of the environment ${name} is not a list of layers`);
  if (text.length > FILE_BYTES_MAX) throw fail();
  try {
    const layers: unknown = JSON.parse(text);
    if (Array.isArray(layers) && layers.every((layer) => typeof layer === 'string')) return layers;
  } catch {
    // Not even JSON.
  }
  throw fail();
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw thrown;
  }
}
