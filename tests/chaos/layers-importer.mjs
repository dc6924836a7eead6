// Imports a layer in a process of its own: `node layers-importer.mjs <store> <ref> <source as JSON>`.
// Prints one line
// of JSON: {"layerId"} or {"code", "message"}. Runs the compiled packages, as users do.
import { importLayer, openLayerStore, parseLayerRef } from '@dsec/layers';

const [storeRoot, ref, source] = process.argv.slice(2);
try {
  const store = await openLayerStore(storeRoot);
  const { record } = await importLayer({
    store,
    ...parseLayerRef(ref),
    source: JSON.parse(source),
  });
  console.log(JSON.stringify({ layerId: record.layerId }));
} catch (error) {
  console.log(JSON.stringify({ code: error.code, message: error.message }));
}
