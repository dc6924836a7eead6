import { openLayerStore, showLayer } from '@dsec/layers';
import { hasLayerServer, withClient } from '../client/connect.ts';
import { findServerLayer } from '../client/server-layers.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { checkStateDirectories } from '../config.ts';
import { printLayer } from './layer-rows.ts';

export async function run(invocation: Invocation): Promise<void> {
  const { args, json, paths, settings } = invocation;
  const [ref = ''] = args;
  if (hasLayerServer(settings)) {
    await withClient(settings, async (client) => {
      printLayer(await findServerLayer(client, ref), json);
    });
    return;
  }
  checkStateDirectories(paths);
  printLayer(await showLayer(await openLayerStore(paths.store), ref), json);
}
