/** What tests outside of this package look at behind its face. */
export { digestOf } from '../../src/durable-file.ts';
export { runImport } from '../../src/import-job.ts';
export { encodeRecord } from '../../src/record-file.ts';
export { newStageName } from '../../src/stage.ts';
export { blobPaths, layerPaths, nodeLayerPaths } from '../../src/store-layout.ts';
