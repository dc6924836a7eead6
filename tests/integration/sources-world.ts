/** How the tests of import sources build a layer of one, and what they compare it with. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type BuilderLimits,
  createFileBlobSink,
  createLayerBuilder,
  type LayerBuilder,
} from '@dsec/erofs';
import { type ImportSource, importSource, type SourceInfo } from '@dsec/layers';
import { punchHole } from '@dsec/linux';
import type { Listing, Shown } from './erofs-tree.ts';
import { LIMITS, listHost, listImage, openFiles, plain } from './erofs-world.ts';

export interface BuiltSource {
  readonly info: SourceInfo;
  readonly listing: Listing;
  readonly layerId: string;
  readonly treeDigest: string;
}

export interface BuildSettings {
  readonly whiteouts?: 'keep' | 'apply';
  readonly limits?: BuilderLimits;
}

let made = 0;

/** Builds a layer of a source in `directory` and reads it back with our reader. */
export async function buildSource(
  directory: string,
  source: ImportSource,
  { whiteouts = 'apply', limits = LIMITS }: BuildSettings = {},
): Promise<BuiltSource> {
  made += 1;
  const metaPath = join(directory, `${made}.meta`);
  const blobPath = join(directory, `${made}.blob`);
  const fd = openSync(blobPath, 'w+');
  try {
    const builder: LayerBuilder = createLayerBuilder({
      blob: createFileBlobSink(fd, punchHole),
      whiteouts,
      dedupSources: [],
      limits,
    });
    const info = await importSource(builder, source);
    const built = builder.finish();
    writeFileSync(metaPath, built.meta);
    const files = openFiles(metaPath, built.blob === undefined ? [] : [blobPath]);
    try {
      const listing = listImage(files.image);
      return { info, listing, layerId: built.layerId, treeDigest: built.treeDigest };
    } finally {
      files.close();
    }
  } finally {
    closeSync(fd);
  }
}

/** Unpacks with GNU tar, as root with everything that it can restore, into a fresh directory. */
export function unpack(directory: string, archive: string): string {
  made += 1;
  const target = join(directory, `unpacked${made}`);
  mkdirSync(target, 0o755);
  const restore = [
    '--numeric-owner',
    '--same-owner',
    '--xattrs',
    '--xattrs-include=*',
    '--delay-directory-restore',
  ];
  execFileSync('tar', ['-x', '-p', '-f', archive, '-C', target, ...restore], { stdio: 'pipe' });
  return target;
}

/**
 * What both listings must agree on, printed well; `ignored` properties are those that a format does not keep.
 */
export function comparable(
  listing: Listing,
  ...ignored: readonly (keyof Shown)[]
): Record<string, Partial<Shown>> {
  const shown = plain(listing) as Record<string, Partial<Shown>>;
  return Object.fromEntries(
    Object.entries(shown).map(([path, entry]) => {
      const kept = Object.entries(entry).filter(([key]) => !ignored.includes(key as keyof Shown));
      return [path, Object.fromEntries(kept)];
    }),
  );
}

export { listHost };
