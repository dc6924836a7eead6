import {
  createLayerStore,
  formatLayerRef,
  importLayer,
  parseLayerRef,
  showLayer,
} from '@dsec/layers';
import { type Invocation, listFlag } from '../command-line/invocation.ts';
import { makeStateDirectories } from '../config.ts';
import { createByteProgress, printWarning } from '../output.ts';
import { withInterrupt } from './interrupt.ts';
import { printLayer } from './layer-rows.ts';
import { importLimitsOf, importSourceOf, sourceOptionsOf } from './layer-source.ts';

export async function run({ args, flags, json, paths }: Invocation): Promise<void> {
  const [text = '', path = ''] = args;
  const ref = parseLayerRef(text);
  const source = importSourceOf(path, sourceOptionsOf(flags));
  const limits = importLimitsOf(listFlag(flags, 'limit'));
  makeStateDirectories(paths);
  const store = await createLayerStore(paths.store);
  const progress = createByteProgress(`import ${formatLayerRef(ref)}`);
  const imported = await withInterrupt((signal) =>
    importLayer({
      ...{ store, ...ref, source, signal, limits, dedup: listFlag(flags, 'dedup') },
      onProgress: ({ bytes, bytesTotal, entries }) =>
        progress.update(bytes, bytesTotal ?? undefined, `${entries} entries`),
    }),
  ).finally(() => progress.finish());
  const { repaired } = imported;
  const shown = await showLayer(store, imported.record.ref);
  if (!json) {
    for (const file of repaired) printWarning(`repaired ${file}, which was damaged in the store`);
  }
  printLayer(shown, json, { repaired });
}
