import { closeSync, constants, fstatSync, readSync, statSync } from 'node:fs';
import { openAt } from '@dsec/linux';
import { DsecError, KIB } from '@dsec/std';
import { compressionOf, openInput } from './compression.ts';
import {
  type ImageFiles,
  LAYOUT_FILE,
  openImageArchive,
  openImageDirectory,
  SAVED_IMAGES_FILE,
} from './image-files.ts';
import { IMPORT_LIMITS_DEFAULT, type ImportLimits } from './limits.ts';
import { createPace, type Pace } from './pace.ts';
import { parseTarHeader, TAR_BLOCK_BYTES, tarBlockKind } from './tar-header.ts';

export type SourceKind = 'tar' | 'directory' | 'oci-layout' | 'docker-archive';

export interface DetectOptions {
  /** Default `IMPORT_LIMITS_DEFAULT`. */
  readonly limits?: ImportLimits;
  readonly signal?: AbortSignal | undefined;
}

interface Context {
  readonly limits: ImportLimits;
  readonly pace: Pace;
}

/** How much of a tar is looked at to tell what it holds. */
const START_BYTES = 16 * KIB;
const EXTENSION_TYPES = 'xgXLK';
/** What the first member of an archive that holds an image is called by docker, podman, skopeo and others. */
const IMAGE_MEMBERS: readonly RegExp[] = [
  /^(?:oci-layout|index\.json|manifest\.json|repositories|blobs(?:\/.*)?)$/,
  /^(?:sha256:)?[0-9a-f]{64}(?:[/.].*)?$/,
];

/** Formats that somebody may hand over for a layer, by the bytes that they are known by. */
const FOREIGN: readonly (readonly [what: string, at: number, magic: string])[] = [
  ['an EROFS image', 1024, '\xe2\xe1\xf5\xe0'],
  ['a squashfs image', 0, 'hsqs'],
  ['a squashfs image', 0, 'sqsh'],
  ['an ext2, ext3 or ext4 image', 1080, '\x53\xef'],
  ['an XFS image', 0, 'XFSB'],
  ['a Btrfs image', 65_600, '_BHRfS_M'],
  ['an ISO image', 32_769, 'CD001'],
  ['a qcow2 image', 0, 'QFI\xfb'],
  ['a VMDK image', 0, 'KDMV'],
  ['a VHDX image', 0, 'vhdxfile'],
  ['a disk image', 510, '\x55\xaa'],
  ['an xz file', 0, '\xfd7zXZ\0'],
  ['a bzip2 file', 0, 'BZh'],
  ['an lz4 file', 0, '\x04\x22\x4d\x18'],
  ['a zip file', 0, 'PK\x03\x04'],
  ['a cpio archive', 0, '07070'],
];
const FOREIGN_END = Math.max(...FOREIGN.map(([, at, magic]) => at + magic.length));

/**
 * Tells what a path holds, by content. Throws `import-invalid` for what cannot be a source: images of file
 * systems and disks are never mounted or parsed by the kernel here, whoever made them (THREATS B2).
 */
export async function detectSource(
  path: string,
  { limits = IMPORT_LIMITS_DEFAULT, signal }: DetectOptions = {},
): Promise<SourceKind> {
  const context = { limits, pace: createPace({ signal }) };
  const stat = statSync(path);
  if (stat.isDirectory()) {
    const files = openImageDirectory(path);
    try {
      // A `manifest.json` alone says little: many projects have one.
      return has(files, LAYOUT_FILE) ? 'oci-layout' : 'directory';
    } finally {
      files.close();
    }
  }
  // A writer that waits at a FIFO would take this look for its reader.
  if (stat.isFIFO()) return 'tar';
  const fd = openAt(path, { flags: constants.O_RDONLY | constants.O_NONBLOCK });
  try {
    if (!fstatSync(fd).isFile()) return 'tar';
    refuseForeign(fd);
    const { compression, firstName } = await lookInside(fd, context);
    if (!IMAGE_MEMBERS.some((member) => member.test(firstName ?? ''))) return 'tar';
    if (compression !== 'none') {
      const message =
        'this looks like a compressed image archive; decompress it, or say that it is a tar';
      throw new DsecError('import-invalid', message);
    }
  } finally {
    closeSync(fd);
  }
  return imageKind(path, context);
}

async function imageKind(path: string, context: Context): Promise<SourceKind> {
  const files = await openImageArchive(path, context);
  try {
    if (has(files, LAYOUT_FILE)) return 'oci-layout';
    return has(files, SAVED_IMAGES_FILE) ? 'docker-archive' : 'tar';
  } finally {
    files.close();
  }
}

function has(files: ImageFiles, name: string): boolean {
  const file = files.open(name);
  file?.close();
  return file !== undefined;
}

/** Throws `import-invalid`, saying what it is, unless a regular file can be a tar or a compressed one. */
export function refuseForeign(fd: number): void {
  const start = Buffer.alloc(FOREIGN_END);
  const bytes = start.subarray(0, readSync(fd, start, 0, start.length, 0));
  if (compressionOf(bytes) !== 'none') return;
  const first = tarBlockKind(bytes);
  if (first === 'header') return;
  const found = FOREIGN.find(
    ([, at, magic]) => bytes.toString('latin1', at, at + magic.length) === magic,
  );
  // An empty tar is zeros alone. So is the start of many images, which are no empty tar.
  if (found === undefined && first === 'zeros') return;
  const what = found?.[0] ?? 'neither a tar nor a directory';
  throw new DsecError(
    'import-invalid',
    `the source is ${what}; export its files as a tar (plain, gzip or zstd) or give a directory`,
  );
}

async function lookInside(fd: number, { limits, pace }: Context) {
  const { compression, source } = await openInput(fd, { limits, pace });
  try {
    const start = source.peek(await source.fill(START_BYTES));
    return { compression, firstName: firstNameIn(start) };
  } finally {
    await source.close();
  }
}

/** The first name that is not the root's own; extended headers are passed over, so a long one is not seen. */
function firstNameIn(start: Buffer): string | undefined {
  for (let at = 0; at + TAR_BLOCK_BYTES <= start.length; ) {
    const header = parseTarHeader(start.subarray(at, at + TAR_BLOCK_BYTES));
    if (header === undefined) return undefined;
    const name = header.name.replace(/^(?:\.?\/)+|\/$/g, '');
    const isExtension = EXTENSION_TYPES.includes(header.type);
    if (!isExtension && name !== '' && name !== '.') return name;
    const bodyBytes = isExtension ? Math.max(header.sizeBytes, 0) : 0;
    at += TAR_BLOCK_BYTES * (1 + Math.ceil(bodyBytes / TAR_BLOCK_BYTES));
  }
  return undefined;
}
