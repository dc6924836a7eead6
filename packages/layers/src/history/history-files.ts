/** The files of a directory or of a stored layer, one after the other, for who looks for what is in them. */
import { closeSync, createReadStream, type Dirent, fstatSync, openSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileSource, memorySource, openErofs, readContent, walkImage } from '@dsec/erofs';
import type { Digest } from '@dsec/std';
import { readMetadata, validateMetadata } from '../node-metadata.ts';
import { readManifest } from '../store-directory.ts';
import { blobPaths, type LayerStore, layerPaths } from '../store-layout.ts';

export interface HistoryFile {
  /** From the root, a character a byte. */
  readonly path: string;
  readonly sizeBytes: number;
  /** May be called more than once. */
  chunks(): AsyncIterable<Buffer> | Iterable<Buffer>;
}

const LIMITS = { entriesMax: 20_000_000, depthMax: 4096 };
const ZEROS = Buffer.alloc(1024 * 1024);

/** Regular files; what links lead to is not followed. */
export async function* directoryFiles(root: string, below = ''): AsyncGenerator<HistoryFile> {
  const at = (path: string) =>
    Buffer.concat([Buffer.from(`${root}/`), Buffer.from(path, 'latin1')]);
  const options = { withFileTypes: true, encoding: 'buffer' } as const;
  for (const entry of (await readdir(at(below), options)) as unknown as Dirent<Buffer>[]) {
    const path = join(below, entry.name.toString('latin1'));
    if (entry.isDirectory()) yield* directoryFiles(root, path);
    if (!entry.isFile()) continue;
    const fd = openSync(at(path), 'r');
    const { size } = fstatSync(fd);
    closeSync(fd);
    yield { path, sizeBytes: size, chunks: () => createReadStream(at(path)) };
  }
}

/** Its files, and behind them its data as they lie in the store, whatever of them its files use. */
export async function* layerFiles(store: LayerStore, layerId: Digest): AsyncGenerator<HistoryFile> {
  const manifest = await readManifest(store, layerId);
  const meta = await readMetadata(layerPaths(store, layerId).meta, manifest);
  validateMetadata(meta, manifest);
  const blobs = manifest.devices.map(({ blobId }) => blobPaths(store, blobId).data);
  const fds = blobs.map((path) => openSync(path, 'r'));
  try {
    const sources = fds.map((fd) => fileSource(fd, fstatSync(fd).size));
    const image = openErofs(memorySource(meta), sources);
    for (const { path, inode } of walkImage(image, LIMITS)) {
      if (inode.kind !== 'file') continue;
      const chunks = function* () {
        for (const part of readContent(image, inode)) {
          if (part.kind === 'data') yield part.bytes;
          else yield* zeros(part.length);
        }
      };
      yield { path, sizeBytes: inode.sizeBytes, chunks };
    }
    for (const [index, path] of blobs.entries()) {
      const sizeBytes = sources[index]?.sizeBytes ?? 0;
      yield { path: `(data ${index})`, sizeBytes, chunks: () => createReadStream(path) };
    }
  } finally {
    for (const fd of fds) closeSync(fd);
  }
}

function* zeros(length: number): Generator<Buffer> {
  for (let left = length; left > 0; left -= ZEROS.length) {
    yield ZEROS.subarray(0, Math.min(left, ZEROS.length));
  }
}
