import { openLayerStore, showLayer } from '@dsec/layers';
import type { Invocation } from '../command-line/invocation.ts';
import { checkStateDirectories } from '../config.ts';
import { printLayer } from './layer-rows.ts';

export async function run({ args: [ref = ''], json, paths }: Invocation): Promise<void> {
  checkStateDirectories(paths);
  printLayer(await showLayer(await openLayerStore(paths.store), ref), json);
}
