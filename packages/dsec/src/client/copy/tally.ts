import { formatBytes } from '@dsec/std';
import { createByteProgress, printWarning } from '../../output.ts';
import { show } from './place.ts';

/** What a copy has done so far, told as it goes on. */
export interface Tally {
  /** Bytes of files that have gone over. */
  bytes(count: number): void;
  file(): void;
  directory(): void;
  link(): void;
  /** What is left out, and why. */
  skip(path: Uint8Array, why: string): void;
  /** So far. */
  readonly result: CopyResult;
  finish(): void;
}

export interface CopyResult {
  readonly files: number;
  readonly directories: number;
  readonly links: number;
  readonly skipped: number;
  readonly bytes: number;
}

/** Each of them is told of. */
const SKIPS_TOLD_MAX = 20;

export function createTally(label: string, totalBytes: number | undefined): Tally {
  const progress = createByteProgress(label);
  const result = { files: 0, directories: 0, links: 0, skipped: 0, bytes: 0 };
  return {
    result,
    bytes(count) {
      result.bytes += count;
      const note = result.files === 0 ? '' : `${result.files} files`;
      progress.update(result.bytes, totalBytes, note);
    },
    file() {
      result.files += 1;
    },
    directory() {
      result.directories += 1;
    },
    link() {
      result.links += 1;
    },
    skip(path, why) {
      result.skipped += 1;
      if (result.skipped <= SKIPS_TOLD_MAX) printWarning(`left out ${show(path)}: ${why}`);
    },
    finish() {
      progress.finish();
      const more = result.skipped - SKIPS_TOLD_MAX;
      if (more > 0) printWarning(`left out ${more} more`);
    },
  };
}

export function describeCopy({ files, directories, links, bytes }: CopyResult): string {
  const parts = [
    `${files} ${files === 1 ? 'file' : 'files'}`,
    ...(directories === 0 ? [] : [`${directories} directories`]),
    ...(links === 0 ? [] : [`${links} links`]),
  ];
  return `copied ${parts.join(', ')}: ${formatBytes(bytes)}`;
}
