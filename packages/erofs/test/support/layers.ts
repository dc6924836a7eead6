/** Layers in memory, for tests that need no file. */
import {
  BLOCK_BYTES,
  type BlobSink,
  type BuilderLimits,
  type BuilderOptions,
  type BuiltLayer,
  createLayerBuilder,
  type ErofsImage,
  type InodeAttributes,
  type LayerBuilder,
  memorySource,
  openErofs,
  readContent,
  readLink,
  readXattrs,
  validateLayer,
  walkImage,
} from '../../src/index.ts';

export const LIMITS: BuilderLimits = {
  entriesMax: 100_000,
  contentBytesMax: 2 ** 45,
  fileBytesMax: 2 ** 45,
  depthMax: 100,
  xattrBytesPerInodeMax: 100_000,
  xattrBytesMax: 2 ** 24,
  metaBytesMax: 2 ** 27,
  memoryBytesMax: 2 ** 30,
};

export interface MemoryBlob extends BlobSink {
  readonly bytes: Buffer;
  readonly appends: number;
  readonly discarded: readonly { readonly startBlock: number; readonly blocks: number }[];
}

export function memoryBlob(): MemoryBlob {
  let bytes = Buffer.alloc(0);
  let appends = 0;
  const discarded: { startBlock: number; blocks: number }[] = [];
  return {
    discarded,
    get bytes() {
      return bytes;
    },
    get appends() {
      return appends;
    },
    append(more) {
      appends += 1;
      bytes = Buffer.concat([bytes, more]);
    },
    discard(startBlock, blocks) {
      discarded.push({ startBlock, blocks });
      bytes.fill(0, startBlock * BLOCK_BYTES, (startBlock + blocks) * BLOCK_BYTES);
    },
    flush() {},
  };
}

export function attributes(change: Partial<InodeAttributes> = {}): InodeAttributes {
  return { mode: 0o644, uid: 0, gid: 0, mtimeSec: 0, mtimeNsec: 0, xattrs: new Map(), ...change };
}

/** Xattrs from text. */
export function xattrs(values: Readonly<Record<string, string | Uint8Array>>) {
  return new Map(Object.entries(values).map(([name, value]) => [name, Buffer.from(value)]));
}

export interface MemoryLayer {
  readonly built: BuiltLayer;
  readonly blob: MemoryBlob;
}

export function build(
  fill: (builder: LayerBuilder) => void,
  options: Partial<BuilderOptions> = {},
): MemoryLayer {
  const blob = memoryBlob();
  const builder = createLayerBuilder({
    blob,
    whiteouts: 'keep',
    dedupSources: [],
    limits: LIMITS,
    ...options,
  });
  fill(builder);
  return { built: builder.finish(), blob };
}

export function addFile(
  builder: LayerBuilder,
  path: string,
  content: string | Uint8Array,
  change: Partial<InodeAttributes> = {},
): void {
  const bytes = Buffer.from(content);
  const sink = builder.file(path, attributes(change), bytes.length);
  sink.write(bytes);
  sink.end();
}

/** Opens a layer that passed the validator; `others` are the blobs after its own. */
export function openLayer(layer: MemoryLayer, others: readonly Buffer[] = []): ErofsImage {
  validateLayer(
    layer.built.meta,
    { deviceBlocks: layer.built.devices.map((d) => d.blocks) },
    LIMITS,
  );
  const own = layer.built.blob === undefined ? [] : [layer.blob.bytes];
  return openErofs(memorySource(layer.built.meta), [...own, ...others].map(memorySource));
}

/** One line for each path: enough to see which entries there are and what they hold. */
export function show(image: ErofsImage): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const { path, inode } of walkImage(image, LIMITS)) {
    const { kind, mode } = inode;
    const isWhiteout = kind === 'char' && inode.union === 0;
    const parts: string[] = [isWhiteout ? 'whiteout' : kind, mode.toString(8)];
    if (kind === 'symlink') parts.push(readLink(image, inode));
    if (kind === 'file') parts.push(contentOf(image, inode).toString('latin1'));
    for (const [name, value] of readXattrs(image, inode)) {
      parts.push(`${name}=${value.toString('latin1')}`);
    }
    shown[path] = parts.join(' ');
  }
  return shown;
}

export function contentOf(image: ErofsImage, inode: Parameters<typeof readContent>[1]): Buffer {
  const parts = Array.from(readContent(image, inode), (part) =>
    part.kind === 'data' ? part.bytes : Buffer.alloc(part.length),
  );
  return Buffer.concat(parts);
}

export function showLayer(layer: MemoryLayer, others: readonly Buffer[] = []) {
  return show(openLayer(layer, others));
}

/** Bytes without a pattern, the same for the same seed. */
export function noise(length: number, seed: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let index = 0; index < length; index += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[index] = state >>> 24;
  }
  return bytes;
}
