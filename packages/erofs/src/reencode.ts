import { decodeDevice } from './format.ts';
import type { ErofsImage } from './image.ts';
import { readContent, readLink } from './image-content.ts';
import type { ImageInode } from './image-inode.ts';
import { readXattrs } from './image-xattrs.ts';
import type { ByteString, InodeAttributes, LayerBuilder } from './model.ts';
import { type WalkLimits, walkImage } from './walk.ts';
import { OPAQUE_VALUE, OPAQUE_XATTR } from './xattr-policy.ts';

/**
 * Reads an image, whoever made it, and gives its tree to a builder: an image from elsewhere is never mounted,
 * only its content is taken. Whiteouts and opaque directories stay what they are; the builder filters the
 * other xattrs. Throws `layer-invalid` for a damaged image and whatever the builder throws.
 */
export function reencode(image: ErofsImage, builder: LayerBuilder, limits: WalkLimits): void {
  const firstPath = new Map<number, ByteString>();
  for (const { path, inode } of walkImage(image, limits)) {
    const first = firstPath.get(inode.nid);
    if (first !== undefined) {
      builder.hardLink(path, first);
      continue;
    }
    if (inode.kind !== 'directory' && inode.nlink > 1) firstPath.set(inode.nid, path);
    addEntry(image, builder, path, inode);
  }
}

function addEntry(
  image: ErofsImage,
  builder: LayerBuilder,
  path: ByteString,
  inode: ImageInode,
): void {
  const { kind, mode, uid, gid, mtimeSec, mtimeNsec } = inode;
  const xattrs = readXattrs(image, inode);
  const attributes: InodeAttributes = { mode, uid, gid, mtimeSec, mtimeNsec, xattrs };
  if (kind === 'directory') {
    const isOpaque = xattrs.get(OPAQUE_XATTR)?.equals(OPAQUE_VALUE) ?? false;
    builder.directory(path, attributes);
    if (isOpaque && path !== '') builder.opaque(path);
  } else if (kind === 'file') {
    const sink = builder.file(path, attributes, inode.sizeBytes);
    for (const part of readContent(image, inode)) {
      if (part.kind === 'hole') sink.hole(part.length);
      else sink.write(part.bytes);
    }
    sink.end();
  } else if (kind === 'symlink') {
    builder.symlink(path, attributes, readLink(image, inode));
  } else if (kind === 'fifo' || kind === 'socket') {
    builder[kind](path, attributes);
  } else {
    builder.device(path, attributes, { kind, ...decodeDevice(inode.union) });
  }
}
