import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import type { LayerBuilder } from '@dsec/erofs';
import { type Digest, DsecError, digestOfHex, formatBytes, MIB } from '@dsec/std';
import type { ByteSource, BytesListener } from './byte-source.ts';
import { type Compression, openInput } from './compression.ts';
import type { ImageFile, ImageFiles } from './image-files.ts';
import type { ImportLimits } from './limits.ts';
import { shown } from './member-path.ts';
import type { Pace } from './pace.ts';
import { importTar } from './tar.ts';

const READ_BYTES = MIB;

interface Context {
  readonly limits: ImportLimits;
  readonly pace: Pace;
}

/** What a manifest says of a blob. A document that nothing describes is read as it is. */
export interface BlobClaim {
  readonly digest: Digest;
  readonly size?: number;
}

/** Reads a small file of the image whole, and checks it against the claim. */
export function readDocument(
  files: ImageFiles,
  name: string,
  limits: ImportLimits,
  claim?: BlobClaim,
): { bytes: Buffer; digest: Digest } {
  const file = openImageFile(files, name);
  try {
    const length = checkSize(file, name, claim?.size);
    if (length > limits.imageDocumentBytesMax) {
      const most = formatBytes(limits.imageDocumentBytesMax);
      throw new DsecError('import-limit', `${shown(name)} of the image is larger than ${most}`);
    }
    const bytes = Buffer.alloc(length);
    readFully(file, 0, (piece, at) => bytes.set(piece, at));
    const digest = digestOfHex(createHash('sha256').update(bytes).digest('hex'));
    if (claim !== undefined) checkDigest(digest, claim.digest, name);
    return { bytes, digest };
  } finally {
    file.close();
  }
}

/** What is known of a layer before it is read. */
export interface LayerClaim {
  readonly name: string;
  readonly stored?: BlobClaim;
  /** Digest of the tar itself, from the image's configuration. */
  readonly content: Digest;
  /** What the media type says; absent where none is given. */
  readonly compression?: Compression;
}

/**
 * Gives one layer of an image to the builder and checks size, compression and digests on the way. They are
 * known only at the end, so the builder has by then seen what a lie contains; the import as a whole fails.
 */
export async function importLayerBlob(
  files: ImageFiles,
  claim: LayerClaim,
  builder: LayerBuilder,
  context: Context,
): Promise<void> {
  const { name } = claim;
  const file = openImageFile(files, name);
  try {
    checkSize(file, name, claim.stored?.size);
    const stored = createHasher();
    const content = createHasher();
    // Of a layer that is not compressed the two are one.
    const isOne = claim.stored?.digest === claim.content;
    const { source, compression } = await openInput(file.fd, {
      ...context,
      range: { start: file.start, end: file.end },
      onStored: claim.stored && stored.update,
      onContent: isOne ? undefined : content.update,
    });
    try {
      if (isOne && compression !== 'none') {
        throw invalid(name, 'is compressed, but has the digest of its content');
      }
      if (claim.compression !== undefined && claim.compression !== compression) {
        throw invalid(name, `is ${compression}, not ${claim.compression} as its media type says`);
      }
      // The digests tell whether it is all there.
      await importTar(source, builder, { ...context, endMark: 'optional' });
      await drain(source);
    } finally {
      await source.close();
    }
    if (claim.stored !== undefined) {
      // What follows a compressed stream is not read by its decoder, but is part of the blob.
      readFully(file, stored.bytes, stored.update);
      checkDigest(stored.digest(), claim.stored.digest, name);
    }
    if (!isOne) checkDigest(content.digest(), claim.content, name);
  } finally {
    file.close();
  }
}

function createHasher() {
  const hash = createHash('sha256');
  let bytes = 0;
  const update: BytesListener = (piece) => {
    hash.update(piece);
    bytes += piece.length;
  };
  return {
    update,
    get bytes() {
      return bytes;
    },
    digest: () => digestOfHex(hash.digest('hex')),
  };
}

/** As `files.open`; `import-invalid` when it is missing. */
export function openImageFile(files: ImageFiles, name: string): ImageFile {
  const file = files.open(name);
  if (file === undefined) throw invalid(name, 'is missing');
  return file;
}

function checkSize(file: ImageFile, name: string, claimed: number | undefined): number {
  const length = file.end - file.start;
  if (claimed !== undefined && claimed !== length) {
    throw invalid(name, `has ${length} bytes, not ${claimed} as the image says`);
  }
  return length;
}

function checkDigest(digest: Digest, claimed: Digest, name: string): void {
  if (digest !== claimed) throw invalid(name, `has the digest ${digest}, not ${claimed}`);
}

async function drain(source: ByteSource): Promise<void> {
  while ((await source.fill(1)) > 0) source.take(source.buffered);
}

/** Reads from `offset` in the file to its end. */
function readFully(
  { fd, start, end }: ImageFile,
  offset: number,
  visit: (piece: Buffer, at: number) => void,
): void {
  const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, end - start - offset));
  for (let at = start + offset; at < end; ) {
    const got = readSync(fd, buffer, 0, Math.min(buffer.length, end - at), at);
    if (got === 0) throw new DsecError('conflict', 'the image changed while it was read');
    visit(buffer.subarray(0, got), at - start);
    at += got;
  }
}

function invalid(name: string, why: string): DsecError {
  return new DsecError('import-invalid', `${shown(name)} of the image ${why}`);
}
