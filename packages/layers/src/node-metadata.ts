import { rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type BuilderLimits, type ValidLayer, validateLayer } from '@dsec/erofs';
import { syncDirectory } from '@dsec/linux';
import { asDsecError, type Digest, DsecError } from '@dsec/std';
import { createFile, digestOf, promised, readBounded, syncFile } from './durable-file.ts';
import { createStage, newStageName } from './stage.ts';
import { layerPaths, nodeLayerPaths } from './store-layout.ts';

/** What the manifest says of a layer's metadata; the metadata must agree. */
export interface ExpectedMetadata {
  readonly layerId: Digest;
  readonly metaBytes: number;
  readonly devices: readonly { readonly blobId: Digest; readonly blocks: number }[];
}

export interface PrepareJob {
  readonly type: 'prepare';
  readonly storeRoot: string;
  readonly nodeDirectory: string;
  readonly layer: ExpectedMetadata;
}

/** What the import allowed is not asked again: a validation is bounded by the metadata's length. */
const STORED_LIMITS: BuilderLimits = {
  entriesMax: Number.MAX_SAFE_INTEGER,
  contentBytesMax: Number.MAX_SAFE_INTEGER,
  fileBytesMax: Number.MAX_SAFE_INTEGER,
  depthMax: Number.MAX_SAFE_INTEGER,
  xattrBytesPerInodeMax: Number.MAX_SAFE_INTEGER,
  xattrBytesMax: Number.MAX_SAFE_INTEGER,
  memoryBytesMax: Number.MAX_SAFE_INTEGER,
  metaBytesMax: Number.MAX_SAFE_INTEGER,
};

/**
 * The kernel parses EROFS as root, so it sees only metadata that our validator has passed, from a file
 * that nobody but this node's root can write (THREATS B2). This makes that file: copy, digest, validate,
 * rename. Runs in a worker.
 */
export async function prepareNodeMetadata(job: PrepareJob): Promise<void> {
  const { layer, nodeDirectory } = job;
  const target = nodeLayerPaths(nodeDirectory, layer.layerId).meta;
  const local = await readLocal(target, layer.metaBytes);
  if (local !== undefined && digestOf(local) === layer.layerId) {
    validateMetadata(local, layer);
    return;
  }
  const source = layerPaths({ root: job.storeRoot }, layer.layerId).meta;
  const meta = await readMetadata(source, layer);
  validateMetadata(meta, layer);
  const stage = await createStage(join(nodeDirectory, 'tmp'), newStageName());
  try {
    const staged = join(stage.path, 'meta.erofs');
    await createFile(staged, meta);
    await syncFile(staged);
    await rename(staged, target);
    await syncDirectory(dirname(target));
  } finally {
    await stage.discard();
  }
}

/** Reads published metadata whose digest is right; `data-loss` otherwise, also when it is missing. */
export async function readMetadata(path: string, layer: ExpectedMetadata): Promise<Buffer> {
  const meta = await promised(readBounded(path, layer.metaBytes));
  const found = digestOf(meta);
  if (found !== layer.layerId) {
    throw new DsecError('data-loss', `metadata of ${layer.layerId} has digest ${found}`);
  }
  return meta;
}

/**
 * Validates metadata and holds the manifest's device list against the device table that the kernel will
 * use.
 */
export function validateMetadata(meta: Uint8Array, layer: ExpectedMetadata): ValidLayer {
  const deviceBlocks = layer.devices.map(({ blocks }) => blocks);
  const valid = validateLayer(meta, { deviceBlocks }, STORED_LIMITS);
  const agrees = valid.devices.every((device, position) => {
    const listed = layer.devices[position];
    return device.blobId === listed?.blobId && device.blocks === listed.blocks;
  });
  if (!agrees) {
    throw new DsecError(
      'layer-invalid',
      `the manifest of ${layer.layerId} lists other devices than its metadata`,
    );
  }
  return valid;
}

/** The node's copy; a damaged or foreign one counts as none, since it is only a copy. */
async function readLocal(path: string, bytesMax: number): Promise<Buffer | undefined> {
  try {
    return await readBounded(path, bytesMax);
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code === 'not-found' || error.code === 'data-loss') return undefined;
    throw error;
  }
}
