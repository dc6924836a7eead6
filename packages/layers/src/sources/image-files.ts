import { closeSync, constants, fstatSync } from 'node:fs';
import { errnoOf, openAt } from '@dsec/linux';
import { asDsecError, DsecError } from '@dsec/std';
import { createFileSource } from './byte-source.ts';
import { compressionOf, readStart } from './compression.ts';
import type { ImportLimits } from './limits.ts';
import { shown } from './member-path.ts';
import { createPace, type Pace } from './pace.ts';
import { createTarReader, type TarMember, type TarReader } from './tar-reader.ts';

/** The file that marks a layout (OCI image layout specification). */
export const LAYOUT_FILE = 'oci-layout';
/** The file that lists the images of an archive of `docker save`. */
export const SAVED_IMAGES_FILE = 'manifest.json';

/** A stretch of an open file that holds one blob or document. */
export interface ImageFile {
  readonly fd: number;
  readonly start: number;
  readonly end: number;
  /** Gives the descriptor back. */
  close(): void;
}

/** The files of an image, in a directory or in a tar, under their relative names. */
export interface ImageFiles {
  /**
   * `undefined` when there is no such file; `import-invalid` when it is a link or anything but a regular
   * file.
   */
  open(name: string): ImageFile | undefined;
  close(): void;
}

/** Only plain relative names are looked up, below `path`, and no link is followed on the way. */
export function openImageDirectory(path: string): ImageFiles {
  const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
  const root = openAt(path, { flags: O_RDONLY | O_DIRECTORY });
  return {
    open(name) {
      const fd = openBelow(root, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      if (fd === undefined) return undefined;
      const stat = fstatSync(fd);
      if (!stat.isFile()) {
        closeSync(fd);
        throw new DsecError('import-invalid', `${shown(name)} of the image is not a regular file`);
      }
      return { fd, start: 0, end: stat.size, close: () => closeSync(fd) };
    },
    close: () => closeSync(root),
  };
}

function openBelow(dirFd: number, name: string, flags: number): number | undefined {
  try {
    return openAt(name, { dirFd, flags, resolve: ['beneath', 'noSymlinks', 'noMagicLinks'] });
  } catch (thrown) {
    const errno = errnoOf(thrown);
    if (errno === 'ENOENT') return undefined;
    if (errno === 'EACCES' || errno === 'EIO') throw asDsecError(thrown);
    const message = `${shown(name)} of the image cannot be opened safely`;
    throw new DsecError('import-invalid', message, { cause: thrown });
  }
}

/**
 * A tar that holds an image, read in place: one pass over its headers finds the members, whose contents are
 * then read where they lie. A compressed one has no places to seek to and is refused, since unpacking it
 * first would need as much disk as the image. A member of the same name replaces an earlier one.
 */
export async function openImageArchive(
  path: string,
  context: { readonly limits: ImportLimits; readonly pace: Pace },
): Promise<ImageFiles> {
  const fd = openAt(path, { flags: constants.O_RDONLY | constants.O_NONBLOCK });
  try {
    const members = await indexArchive(fd, context.limits, context.pace);
    return {
      open: (name) => findMember(members, name, fd),
      close: () => closeSync(fd),
    };
  } catch (thrown) {
    closeSync(fd);
    throw thrown;
  }
}

/**
 * Where a file lies in the archive; the target of a symbolic link; or a member that holds nothing to read.
 */
type Member =
  | { readonly start: number; readonly end: number }
  | { readonly link: string }
  | 'other';

async function indexArchive(
  fd: number,
  limits: ImportLimits,
  pace: Pace,
): Promise<ReadonlyMap<string, Member>> {
  const stat = fstatSync(fd);
  if (!stat.isFile()) {
    throw new DsecError('invalid-argument', 'an image archive must be a regular file');
  }
  const range = { fd, start: 0, end: stat.size };
  const compression = compressionOf(readStart(range));
  if (compression !== 'none') {
    const command = compression === 'gzip' ? 'gunzip' : 'unzstd';
    throw new DsecError('import-invalid', `the image archive is compressed; ${command} it first`);
  }
  const members = new Map<string, Member>();
  const reader = createTarReader(
    createFileSource(range, createPace({ signal: pace.signal })),
    limits,
    // What an image consists of is named in it, with digests.
    'optional',
  );
  for (let member = await reader.next(); member !== undefined; member = await reader.next()) {
    if (members.size >= limits.imageArchiveMembersMax) {
      const message = `an image archive with more than ${limits.imageArchiveMembersMax} members`;
      throw new DsecError('import-limit', message);
    }
    members.set(member.path, placeOf(member, reader.body));
  }
  return members;
}

function placeOf(member: TarMember, body: TarReader['body']): Member {
  if (member.kind === 'symlink') return { link: member.target };
  if (member.kind !== 'file' || member.sizeBytes !== body.bytes) return 'other';
  return { start: body.start, end: body.start + body.bytes };
}

/** What older versions of `docker save` write for a layer that the archive has already: a link to it. */
const SAVED_LAYER = /^[0-9a-f]{64}\/layer\.tar$/;
const SAVED_LAYER_LINK = /^\.\.\/([0-9a-f]{64}(?:\/layer)?\.tar)$/;

function findMember(
  members: ReadonlyMap<string, Member>,
  name: string,
  fd: number,
): ImageFile | undefined {
  let member = members.get(name);
  if (typeof member === 'object' && 'link' in member && SAVED_LAYER.test(name)) {
    const target = SAVED_LAYER_LINK.exec(member.link)?.[1];
    if (target !== undefined) member = members.get(target);
  }
  if (member === undefined) return undefined;
  if (member === 'other' || 'link' in member) {
    throw new DsecError('import-invalid', `${shown(name)} of the image is not a regular file`);
  }
  return { fd, start: member.start, end: member.end, close: () => {} };
}
