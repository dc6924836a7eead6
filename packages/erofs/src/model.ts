/**
 * The seam between whoever reads a source (tar, directory, OCI image, overlay upper) and whoever encodes it.
 * A source calls the methods of a `LayerBuilder` in the order in which it meets entries; the builder holds
 * the tree, cuts file data into chunks, and appends new chunks to one blob. Everything here is synchronous:
 * builds run in worker processes.
 */
import type { Digest } from '@dsec/std';

/**
 * Bytes as a string, one character (U+0000 to U+00FF) a byte: what `Buffer.toString('latin1')` gives. Linux
 * names are bytes, not text, so paths, link targets and xattr names are carried like this everywhere below
 * the API.
 */
export type ByteString = string;

export const BLOCK_BYTES = 4096;
export const CHUNK_BYTES = 65_536;
/** Sandboxes have 65,536 ids; a layer may name no others. */
export const ID_MAX = 65_535;

export interface InodeAttributes {
  /** Permission, setuid, setgid and sticky bits: 0 to 0o7777. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Whole seconds since the epoch; may be negative. */
  readonly mtimeSec: number;
  /** 0 to 999,999,999, added to `mtimeSec`. */
  readonly mtimeNsec: number;
  /** Full names (`user.x`, `security.capability`, `system.posix_acl_access`, …). Filtered by `keepXattr`. */
  readonly xattrs: ReadonlyMap<ByteString, Uint8Array>;
}

/** Receives the content of one regular file, in order. */
export interface FileSink {
  /** The bytes are consumed before the call returns; the caller may reuse the buffer. */
  write(bytes: Uint8Array): void;
  /** The next `length` bytes are zeros that take no space. */
  hole(length: number): void;
  /** Throws `import-invalid` unless exactly the announced size was given. */
  end(): void;
}

/**
 * Paths are relative to the layer's root, without leading, trailing or doubled slashes and without `.` or
 * `..` parts; the empty path is the root. Missing parents are created as 0755 root:root. A path through a
 * non-directory replaces it and never follows it. A later entry replaces an earlier one of the same path,
 * except that a directory over a directory keeps the children. Every violation of a rule or limit throws
 * `import-invalid` or `import-limit`.
 */
export interface LayerBuilder {
  directory(path: ByteString, attributes: InodeAttributes): void;
  file(path: ByteString, attributes: InodeAttributes, sizeBytes: number): FileSink;
  symlink(path: ByteString, attributes: InodeAttributes, target: ByteString): void;
  /** `target` is a path in this layer, already added, and not a directory. */
  hardLink(path: ByteString, target: ByteString): void;
  /** A char device 0:0 is a whiteout: overlayfs takes it for one, and uppers hold whiteouts in this form. */
  device(path: ByteString, attributes: InodeAttributes, device: DeviceNumber): void;
  fifo(path: ByteString, attributes: InodeAttributes): void;
  socket(path: ByteString, attributes: InodeAttributes): void;
  /**
   * Hides the path of lower layers: recorded as an overlay whiteout, or, with `whiteouts: 'apply'`, removed
   * here. What this source layer itself has at the path stays: a directory then is opaque.
   */
  whiteout(path: ByteString): void;
  /**
   * Hides what lower layers have in this directory. With `whiteouts: 'apply'` its present children are
   * removed. The root cannot be opaque with `keep`: overlayfs joins the roots of all layers.
   */
  opaque(path: ByteString): void;
  /**
   * With `whiteouts: 'apply'`: starts the next image layer. A whiteout or opaque mark then removes only what
   * earlier image layers put there, whatever its place within its own archive (the OCI rule).
   */
  nextSourceLayer(): void;
  /** Lays the tree out. The builder cannot be used afterwards. */
  finish(): BuiltLayer;
  readonly progress: { readonly entries: number; readonly contentBytes: number };
}

export type DeviceNumber = {
  readonly kind: 'char' | 'block';
  readonly major: number;
  readonly minor: number;
};

/** Where new chunks go: appended in order, each padded to whole blocks. */
export interface BlobSink {
  /** `bytes` may be reused by the caller after the call returns. */
  append(bytes: Uint8Array): void;
  /**
   * Gives the blocks of a chunk that no file refers to any more back to the file system; they read as zeros.
   */
  discard(startBlock: number, blocks: number): void;
  /** Everything appended so far has reached the descriptor (not yet fsynced). */
  flush(): void;
}

/** A blob that already exists in the store and whose chunks may be referred to instead of stored again. */
export interface DedupSource {
  readonly blobId: Digest;
  /** The blob's index, as `BuiltBlob.index`. */
  readonly index: Uint8Array;
}

export interface BuilderOptions {
  readonly blob: BlobSink;
  /** `keep`: the result is a diff for overlayfs. `apply`: the result is a whole tree without whiteouts. */
  readonly whiteouts: 'keep' | 'apply';
  /** In the order in which they are tried; at most 16. */
  readonly dedupSources: readonly DedupSource[];
  readonly limits: BuilderLimits;
}

export interface BuilderLimits {
  readonly entriesMax: number;
  /** Sum of announced file sizes. */
  readonly contentBytesMax: number;
  readonly fileBytesMax: number;
  readonly depthMax: number;
  /** Sum of the value and name lengths of one inode's xattrs. */
  readonly xattrBytesPerInodeMax: number;
  /** Sum of those of all inodes. */
  readonly xattrBytesMax: number;
  /** Encoded metadata; names, link targets and chunks count while the tree grows. */
  readonly metaBytesMax: number;
  /** Memory for names, inodes, xattrs and chunks until they are encoded, as estimated while they come. */
  readonly memoryBytesMax: number;
}

export interface BuiltBlob {
  /** sha256 of `index`, which holds the digest of every chunk: one name for the content and its placement. */
  readonly blobId: Digest;
  /** The end of the last live chunk. What the sink has beyond was discarded and may be cut off. */
  readonly blocks: number;
  /**
   * 40 bytes per live chunk, sorted by digest: sha256 (32), first block (u32 LE), length in blocks (u32 LE).
   * The digest covers the chunk's content padded with zeros to whole blocks.
   */
  readonly index: Uint8Array;
}

export interface BuiltLayer {
  /** The EROFS metadata image. Device slot i names `devices[i]` (64 hex digits) in its tag. */
  readonly meta: Uint8Array;
  /** sha256 of `meta`. */
  readonly layerId: Digest;
  /** Digest of paths, attributes and bytes, the same for every encoding of the same tree. */
  readonly treeDigest: Digest;
  /**
   * The blob that was written, or undefined when every chunk was found in a dedup source or there was no
   * data.
   */
  readonly blob: BuiltBlob | undefined;
  /** Blobs in device-table order: device id 1 is `devices[0]`. */
  readonly devices: readonly { readonly blobId: Digest; readonly blocks: number }[];
  readonly stats: LayerStats;
}

export interface LayerStats {
  readonly entries: number;
  readonly inodes: number;
  readonly contentBytes: number;
  readonly holeBytes: number;
  /** Chunk bytes found in this layer's own blob / in dedup sources / newly stored. */
  readonly ownDuplicateBytes: number;
  readonly sharedBytes: number;
  readonly storedBytes: number;
  readonly droppedXattrs: number;
}
