import { assert, DsecError } from '@dsec/std';
import { type BlobIndex, openBlobIndex } from './blob-index.ts';
import {
  assertReady,
  type Build,
  findSpot,
  hide,
  makeOpaque,
  openDirectory,
  openSpot,
  put,
  takeHead,
} from './build.ts';
import { createChunkStore } from './chunk-store.ts';
import { CHUNK_MEMORY_BYTES } from './chunk-table.ts';
import { checkDevice, checkTarget, createImportBudget, invalid } from './entry-checks.ts';
import { chunksOf, encodeDevice } from './format.ts';
import { sealLayer } from './layer-seal.ts';
import type {
  BuilderOptions,
  ByteString,
  DeviceNumber,
  FileSink,
  InodeAttributes,
  LayerBuilder,
} from './model.ts';
import {
  IMPLICIT_DIRECTORY,
  isWhiteout,
  newDirectory,
  newFile,
  newSpecial,
  newSymlink,
} from './tree.ts';
import { createTreeEditor } from './tree-edit.ts';
import { createXattrPool } from './xattr-pool.ts';

export const DEDUP_SOURCES_MAX = 16;

/**
 * The builder of `model.ts`. A plain char device 0:0 is a whiteout, in both modes: overlayfs would take it
 * for one, and archives of overlay upper directories hold whiteouts in this form. So is a hard link to a
 * whiteout, since overlayfs links its whiteouts. Throws `data-loss` for a damaged index of a dedup source.
 */
export function createLayerBuilder(options: BuilderOptions): LayerBuilder {
  if (options.dedupSources.length > DEDUP_SOURCES_MAX) {
    throw new DsecError('invalid-argument', `at most ${DEDUP_SOURCES_MAX} dedup sources`);
  }
  const indexes = options.dedupSources.map(({ blobId, index }) => openBlobIndex(blobId, index));
  const build = startBuild(options, indexes);
  return {
    progress: {
      get entries() {
        return build.budget.entries;
      },
      get contentBytes() {
        return build.contentBytes;
      },
    },
    directory(path, attributes) {
      assertReady(build);
      openDirectory(build, path, takeHead(build, path, 'directory', attributes));
    },
    file: (path, attributes, sizeBytes) => openFile(build, path, attributes, sizeBytes),
    symlink(path, attributes, target) {
      checkTarget(path, target);
      const head = takeHead(build, path, 'symlink', attributes);
      build.budget.addTarget(path, target);
      put(build, openSpot(build, path), newSymlink(head, target));
    },
    hardLink: (path, target) => addHardLink(build, path, target),
    device: (path, attributes, device) => addDevice(build, path, attributes, device),
    fifo(path, attributes) {
      const head = takeHead(build, path, 'fifo', attributes);
      put(build, openSpot(build, path), newSpecial(head, 'fifo', 0));
    },
    socket(path, attributes) {
      const head = takeHead(build, path, 'socket', attributes);
      put(build, openSpot(build, path), newSpecial(head, 'socket', 0));
    },
    whiteout: (path) => hide(build, path),
    opaque(path) {
      // Overlayfs joins the roots of all layers whatever they are marked with.
      if (path === '' && !build.applies) throw invalid(path, 'the root of a diff hides nothing');
      build.budget.addEntry(path);
      makeOpaque(build, openDirectory(build, path, undefined));
    },
    nextSourceLayer() {
      assertReady(build);
      assert(build.applies, 'only whiteouts that are applied know image layers');
      build.layer += 1;
    },
    finish() {
      assertReady(build);
      build.finished = true;
      build.chunks.finish();
      return sealLayer(build, options.dedupSources, indexes);
    },
  };
}

function startBuild(options: BuilderOptions, indexes: readonly BlobIndex[]): Build {
  const chunks = createChunkStore(options.blob, indexes);
  return {
    limits: options.limits,
    applies: options.whiteouts === 'apply',
    budget: createImportBudget(options.limits),
    pool: createXattrPool(),
    chunks,
    editor: createTreeEditor((file) => chunks.release(file.chunkStart, chunksOf(file.sizeBytes))),
    root: newDirectory(IMPLICIT_DIRECTORY),
    layer: 0,
    contentBytes: 0,
    chargedChunks: 0,
    fileIsOpen: false,
    finished: false,
  };
}

function addHardLink(build: Build, path: ByteString, target: ByteString): void {
  build.budget.addEntry(path);
  const spot = openSpot(build, path);
  // Only now, since a directory on the way may have replaced the target.
  const inode = findSpot(build, target)?.entry?.inode;
  if (inode === undefined) throw invalid(path, 'is a hard link to nothing');
  if (inode.kind === 'directory') throw invalid(path, 'is a hard link to a directory');
  if (isWhiteout(inode)) hide(build, path);
  else put(build, spot, inode);
}

function addDevice(
  build: Build,
  path: ByteString,
  attributes: InodeAttributes,
  device: DeviceNumber,
): void {
  checkDevice(path, device);
  const { kind, major, minor } = device;
  if (kind === 'char' && major === 0 && minor === 0) {
    hide(build, path);
    return;
  }
  const head = takeHead(build, path, kind, attributes);
  put(build, openSpot(build, path), newSpecial(head, kind, encodeDevice(major, minor)));
}

function openFile(
  build: Build,
  path: ByteString,
  attributes: InodeAttributes,
  sizeBytes: number,
): FileSink {
  const head = takeHead(build, path, 'file', attributes);
  build.budget.addFile(path, sizeBytes);
  put(build, openSpot(build, path), newFile(head, sizeBytes, build.chunks.refs.length));
  build.fileIsOpen = true;
  return createFileSink(build, path, sizeBytes);
}

function createFileSink(build: Build, path: ByteString, sizeBytes: number): FileSink {
  let left = sizeBytes;
  let open = true;
  const take = (length: number) => {
    assert(open, 'an ended file takes no more content');
    left -= length;
    build.contentBytes += length;
    if (left < 0) throw invalid(path, `has more content than its size of ${sizeBytes} bytes`);
  };
  return {
    write(bytes) {
      take(bytes.length);
      build.chunks.write(bytes);
      chargeChunks(build, path);
    },
    hole(length) {
      assert(Number.isSafeInteger(length) && length >= 0, 'a hole has a length');
      take(length);
      build.chunks.hole(length);
    },
    end() {
      take(0);
      open = false;
      build.fileIsOpen = false;
      if (left > 0) throw invalid(path, `ends ${left} bytes before its size`);
      build.chunks.endFile();
      chargeChunks(build, path);
    },
  };
}

function chargeChunks(build: Build, path: ByteString): void {
  const { count } = build.chunks.table;
  if (count === build.chargedChunks) return;
  build.budget.addMemory(path, (count - build.chargedChunks) * CHUNK_MEMORY_BYTES);
  build.chargedChunks = count;
}
