import type { ByteString, DeviceNumber, FileSink, InodeAttributes } from '@dsec/erofs';
import { DsecError } from '@dsec/std';
import { type ByteSource, copyBytes, readExactly } from './byte-source.ts';
import type { ImportLimits } from './limits.ts';
import { memberPath, shown } from './member-path.ts';
import { emptyPaxFields, type PaxFields, parsePax } from './pax.ts';
import { parseTarHeader, TAR_BLOCK_BYTES, type TarHeader, tarBlockKind } from './tar-header.ts';
import { readOldSparse, readPaxSparse, type SparseMap } from './tar-sparse.ts';

const MODE_BITS = 0o7777;
const SYMLINK_MODE = 0o777;
/** Extended headers before one member. Tools write at most two of each kind. */
const EXTENSIONS_MAX = 16;
const NO_END_MARK = 'it has no end mark (blocks of zeros), so it may have been cut off';

/** One member, as the headers before it describe it. Its path is in the builder's form. */
export type TarMember =
  | {
      readonly kind: 'file' | 'directory' | 'fifo';
      readonly path: ByteString;
      readonly attributes: InodeAttributes;
      /** Size of the file with its holes; 0 for the other kinds. */
      readonly sizeBytes: number;
    }
  | {
      readonly kind: 'symlink' | 'hardlink';
      readonly path: ByteString;
      readonly attributes: InodeAttributes;
      /** As it is in a symbolic link; in the builder's form in a hard one. */
      readonly target: ByteString;
    }
  | {
      readonly kind: 'device';
      readonly path: ByteString;
      readonly attributes: InodeAttributes;
      readonly device: DeviceNumber;
    };

/** Whether an archive must say that it is complete; `optional` where something else tells. */
export type EndMark = 'required' | 'optional';

export interface TarReader {
  /**
   * The next member; `undefined` at the end of the archive. What was not read of the last one is passed over.
   */
  next(): Promise<TarMember | undefined>;
  /** Gives the content of the current file to `sink`, holes as holes. */
  copyTo(sink: Pick<FileSink, 'write' | 'hole'>): Promise<void>;
  /** Where the stored content of the current member lies in the source, if it was not read. */
  readonly body: { readonly start: number; readonly bytes: number };
}

/** A member's body: what is still to be read of it, and how its pieces lie in the file. */
interface Body {
  readonly start: number;
  bytes: number;
  readonly paddingBytes: number;
  readonly sparse: SparseMap | undefined;
}

/** What a pass over headers has gathered for the member that comes next. */
interface Extensions {
  fields: PaxFields;
  longName: ByteString | undefined;
  longLink: ByteString | undefined;
  count: number;
}

/**
 * Reads tar in all forms that are in use: v7, ustar, star, pax with local and global records, GNU with long
 * names, base 256 and sparse files. The end is two blocks of zeros, after which nothing is looked at; of
 * the second some writers save themselves. An archive that ends without any may have been cut between two
 * members, and what is missing would not show in the tree: GNU tar and docker take it, we do only where a
 * digest covers the whole (`EndMark`). A type that neither of them knows is
 * `import-invalid`: to guess what it holds would give a wrong tree. Names are bytes. Own reader, because the
 * common packages for Node guess, decode names as UTF-8, or write to disk.
 */
export function createTarReader(
  source: ByteSource,
  limits: ImportLimits,
  endMark: EndMark = 'required',
): TarReader {
  const globals = createGlobals(source, limits);
  let headers = 0;
  let body: Body = { start: 0, bytes: 0, paddingBytes: 0, sparse: undefined };

  const setBody = (bytes: number, sparse?: SparseMap) => {
    body = { start: source.position, bytes, paddingBytes: paddingOf(bytes), sparse };
  };

  /** Reads headers up to the one of a member. */
  const nextHeader = async (extensions: Extensions) => {
    for (;;) {
      const block = await readHeaderBlock(source);
      if (block === undefined && source.position === 0) throw invalid('it is empty');
      const header = block === undefined ? undefined : parseTarHeader(block);
      if (block === undefined || header === undefined) {
        if (block !== undefined && headers === 0) await checkOnlyZeros(source);
        else if (block !== undefined) await checkEndMark(source);
        if (extensions.count > 0) throw invalid('an extended header has no member after it');
        if (block === undefined && endMark === 'required') throw invalid(NO_END_MARK);
        return undefined;
      }
      headers += 1;
      if (headers > limits.headersMax) {
        throw new DsecError('import-limit', `more than ${limits.headersMax} headers`);
      }
      if (header.type === 'g') await globals.read(header);
      else if (!(await readExtensionInto(extensions, header, source, limits))) {
        return { block, header };
      }
    }
  };

  return {
    get body() {
      return body;
    },
    async next() {
      await source.skip(body.bytes + body.paddingBytes);
      setBody(0);
      const extensions = newExtensions();
      for (;;) {
        const found = await nextHeader(extensions);
        if (found === undefined) return undefined;
        const { header } = found;
        if (header.type !== 'V') {
          return readMember(
            found,
            mergeFields(globals.fields, extensions, header),
            source,
            limits,
            setBody,
          );
        }
        // GNU tar's label of the whole archive.
        await source.skip(paddedTo(header.sizeBytes));
      }
    },
    async copyTo(sink) {
      const { bytes, sparse } = body;
      body.bytes = 0;
      if (sparse === undefined) await copyBytes(source, bytes, (piece) => sink.write(piece));
      else await copySparse(source, sparse, sink);
    },
  };
}

/** What global headers have said so far, for every member that follows. */
function createGlobals(source: ByteSource, limits: ImportLimits) {
  const fields = emptyPaxFields();
  let bytes = 0;
  return {
    fields,
    async read(header: TarHeader) {
      bytes += header.sizeBytes;
      if (bytes > limits.paxBytesMax) throw tooMuchPax(limits.paxBytesMax);
      parsePax(await readExtension(source, header, limits.paxBytesMax), fields, 'global');
      await source.skip(paddingOf(header.sizeBytes));
    },
  };
}

function newExtensions(): Extensions {
  return { fields: emptyPaxFields(), longName: undefined, longLink: undefined, count: 0 };
}

async function readHeaderBlock(source: ByteSource): Promise<Buffer | undefined> {
  if (source.buffered < TAR_BLOCK_BYTES) {
    const buffered = await source.fill(TAR_BLOCK_BYTES);
    if (buffered === 0) return undefined;
  }
  return readExactly(source, TAR_BLOCK_BYTES);
}

/**
 * An archive without members is zeros and nothing else. Images of file systems and disks begin with zeros
 * too, also where nobody could look at them before: compressed, or in a pipe.
 */
async function checkOnlyZeros(source: ByteSource): Promise<void> {
  while ((await source.fill(TAR_BLOCK_BYTES)) > 0) {
    const bytes = source.take(source.buffered);
    if (bytes.some((byte) => byte !== 0)) {
      throw invalid(
        'it begins with zeros and goes on: an image of a file system or disk, not a tar',
      );
    }
  }
}

/**
 * A block of zeros is half an end. Alone before more members it would hide them, so it is refused (as docker
 * does).
 */
async function checkEndMark(source: ByteSource): Promise<void> {
  const block = await readHeaderBlock(source);
  if (block !== undefined && parseTarHeader(block) !== undefined) {
    throw invalid('a single block of zeros between members');
  }
}

/** Reads one extended header of the next member. False when `header` is that member's own. */
async function readExtensionInto(
  extensions: Extensions,
  header: TarHeader,
  source: ByteSource,
  limits: ImportLimits,
): Promise<boolean> {
  const { type } = header;
  if (type !== 'x' && type !== 'X' && type !== 'L' && type !== 'K') return false;
  extensions.count += 1;
  if (extensions.count > EXTENSIONS_MAX) throw invalid('too many extended headers before a member');
  const content = await readExtension(source, header, limits.paxBytesMax);
  // An empty one says nothing.
  if (type === 'L') extensions.longName = untilNul(content) || undefined;
  else if (type === 'K') extensions.longLink = untilNul(content) || undefined;
  else {
    // Not in addition to an earlier one: the last one before a member counts.
    extensions.fields = emptyPaxFields();
    parsePax(content, extensions.fields, 'member');
  }
  await source.skip(paddingOf(header.sizeBytes));
  return true;
}

/** A view of an extended header's content; its padding is still to be skipped. */
async function readExtension(source: ByteSource, header: TarHeader, max: number): Promise<Buffer> {
  const { sizeBytes } = header;
  if (sizeBytes < 0) throw invalid('a negative size');
  if (sizeBytes > max) throw tooMuchPax(max);
  return readExactly(source, sizeBytes);
}

function untilNul(content: Buffer): ByteString {
  const nul = content.indexOf(0);
  return content.toString('latin1', 0, nul === -1 ? content.length : nul);
}

/**
 * Header, global and local records and GNU's long names in one; each is stronger than the one before (as
 * docker).
 */
function mergeFields(global: PaxFields, extensions: Extensions, header: TarHeader) {
  const { fields, longName, longLink } = extensions;
  const time = fields.mtime ?? global.mtime ?? { sec: header.mtimeSec, nsec: 0 };
  const xattrs =
    global.xattrs.size === 0 ? fields.xattrs : new Map([...global.xattrs, ...fields.xattrs]);
  const attributes: InodeAttributes = {
    mode: header.mode & MODE_BITS,
    uid: fields.uid ?? global.uid ?? header.uid,
    gid: fields.gid ?? global.gid ?? header.gid,
    mtimeSec: time.sec,
    mtimeNsec: time.nsec,
    xattrs,
  };
  return {
    name: longName ?? fields.path ?? header.name,
    linkName: longLink ?? fields.linkPath ?? header.linkName,
    sizeBytes: fields.sizeBytes ?? header.sizeBytes,
    attributes,
    sparse: fields.sparse,
  };
}

type Merged = ReturnType<typeof mergeFields>;

async function readMember(
  { block, header }: { block: Buffer; header: TarHeader },
  merged: Merged,
  source: ByteSource,
  limits: ImportLimits,
  setBody: (bytes: number, sparse?: SparseMap) => void,
): Promise<TarMember> {
  const { name, attributes, sizeBytes } = merged;
  if (sizeBytes < 0) throw invalid('a negative size');
  const path = memberPath(name, limits.pathBytesMax);
  switch (header.type) {
    case '0':
    case '7':
    case 'S':
      // Before there were directories in tar, a slash at the end meant one.
      if (!name.endsWith('/'))
        return readFileMember({ block, header }, merged, source, limits, setBody);
      if (sizeBytes > 0) throw invalid(`the directory ${shown(path)} has content`);
      return { kind: 'directory', path, attributes, sizeBytes: 0 };
    case 'D':
      // GNU's incremental backups list the names of a directory in its body.
      setBody(sizeBytes);
      return { kind: 'directory', path, attributes, sizeBytes: 0 };
    case '5':
      return { kind: 'directory', path, attributes, sizeBytes: 0 };
    case '1':
      if (sizeBytes > 0 && !(await headerFollows(source))) setBody(sizeBytes);
      return {
        kind: 'hardlink',
        path,
        attributes,
        target: memberPath(merged.linkName, limits.pathBytesMax),
      };
    case '2':
      return {
        kind: 'symlink',
        path,
        attributes: { ...attributes, mode: SYMLINK_MODE },
        target: merged.linkName,
      };
    case '3':
    case '4': {
      const { deviceMajor: major, deviceMinor: minor } = header;
      const kind = header.type === '3' ? 'char' : 'block';
      return { kind: 'device', path, attributes, device: { kind, major, minor } };
    }
    case '6':
      return { kind: 'fifo', path, attributes, sizeBytes: 0 };
    default:
      throw invalid(`${shown(path)} has the unknown type ${shown(header.type)}`);
  }
}

async function readFileMember(
  { block, header }: { block: Buffer; header: TarHeader },
  { name, attributes, sizeBytes, sparse: records }: Merged,
  source: ByteSource,
  limits: ImportLimits,
  setBody: (bytes: number, sparse?: SparseMap) => void,
): Promise<TarMember> {
  const { sparsePiecesMax, pathBytesMax } = limits;
  const isOld = header.type === 'S';
  const sparse = isOld
    ? await readOldSparse(block, sizeBytes, source, sparsePiecesMax)
    : await readPaxSparse(records, sizeBytes, source, sparsePiecesMax);
  // The plain name is then one for tools that would unpack map and pieces as they are.
  const realName = sparse === undefined || isOld ? name : (records.name ?? name);
  setBody(sparse?.storedBytes ?? sizeBytes, sparse);
  return {
    kind: 'file',
    path: memberPath(realName, pathBytesMax),
    attributes,
    sizeBytes: sparse?.sizeBytes ?? sizeBytes,
  };
}

/**
 * A hard link has no body, whatever size it tells, except that `pax -o linkdata` repeats the file's content.
 * What comes next decides, so that where GNU tar and docker can read an archive we see what they see.
 */
async function headerFollows(source: ByteSource): Promise<boolean> {
  const buffered = await source.fill(TAR_BLOCK_BYTES);
  return buffered < TAR_BLOCK_BYTES || tarBlockKind(source.peek(TAR_BLOCK_BYTES)) !== 'other';
}

async function copySparse(
  source: ByteSource,
  map: SparseMap,
  sink: Pick<FileSink, 'write' | 'hole'>,
): Promise<void> {
  let at = 0;
  for (const { offset, length } of map.pieces) {
    if (offset > at) sink.hole(offset - at);
    await copyBytes(source, length, (piece) => sink.write(piece));
    at = offset + length;
  }
  if (map.sizeBytes > at) sink.hole(map.sizeBytes - at);
}

function paddingOf(bytes: number): number {
  return (TAR_BLOCK_BYTES - (bytes % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES;
}

function paddedTo(bytes: number): number {
  return bytes + paddingOf(bytes);
}

function tooMuchPax(max: number): DsecError {
  return new DsecError('import-limit', `extended headers hold more than ${max} bytes`);
}

function invalid(why: string): DsecError {
  return new DsecError('import-invalid', `the archive is malformed: ${why}`);
}
