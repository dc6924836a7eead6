import { type BlobIndex, type ByteSource, fileSource, verifyBlob } from '@dsec/erofs';
import { type Digest, DsecError } from '@dsec/std';
import { openRegularFile, promised } from './durable-file.ts';
import { blobPaths, type LayerStore } from './store-layout.ts';

/** A longer index is not read: Node's buffers end there. */
export const INDEX_BYTES_MAX = 2 ** 31 - 1;

/**
 * Reads a published blob's data and compares every chunk with its digest. `data-loss` when it differs, is
 * missing or is no plain file. Synchronous between chunks: for workers.
 */
export async function verifyBlobData(
  store: LayerStore,
  blob: { readonly blobId: Digest; readonly bytes: number; readonly index: BlobIndex },
  onBytes: (bytes: number) => void = () => {},
): Promise<void> {
  const { handle, size } = await promised(openRegularFile(blobPaths(store, blob.blobId).data));
  try {
    if (size !== blob.bytes) {
      throw new DsecError('data-loss', `blob ${blob.blobId} has ${size} bytes, not ${blob.bytes}`);
    }
    verifyBlob(blob.index, countedSource(fileSource(handle.fd, size), onBytes));
  } finally {
    await handle.close();
  }
}

function countedSource(source: ByteSource, onBytes: (bytes: number) => void): ByteSource {
  return {
    sizeBytes: source.sizeBytes,
    read(offset, length) {
      onBytes(length);
      return source.read(offset, length);
    },
  };
}
