import { DsecError, escapeForTerminal } from '@dsec/std';
import {
  chunksOf,
  type FileKind,
  MAJOR_MAX,
  MINOR_MAX,
  MODE_BITS,
  NAME_BYTES_MAX,
  SYMLINK_BYTES_MAX,
  XATTR_VALUE_BYTES_MAX,
} from './format.ts';
import {
  type BuilderLimits,
  type ByteString,
  type DeviceNumber,
  ID_MAX,
  type InodeAttributes,
} from './model.ts';
import { ENTRY_MEMORY_BYTES } from './tree.ts';
import { entryBytes, XATTR_BYTES_MAX } from './xattr-encoding.ts';
import { keepXattr } from './xattr-policy.ts';

/** Where a sandbox finds the platform's own tools; no layer may put anything there (THREATS A2). */
export const RESERVED_NAME = '.dsec';
/** NUL ends a name in the kernel, and above U+00FF a character is no byte. */
const NO_BYTES = /[\0\u0100-\uffff]/;
const SHOWN_LENGTH_MAX = 200;
const XATTR_NAME_BYTES_MAX = 255;

/** A path or name for an error message: as text where it is UTF-8, cut, without terminal escapes. */
function showPath(path: ByteString): string {
  const cut = path.length > SHOWN_LENGTH_MAX ? `${path.slice(0, SHOWN_LENGTH_MAX)}…` : path;
  return `"${escapeForTerminal(Buffer.from(cut, 'latin1').toString('utf8'))}"`;
}

export function invalid(path: ByteString, problem: string): DsecError {
  return new DsecError('import-invalid', `${showPath(path)}: ${problem}`);
}

export function overLimit(path: ByteString, limit: string, value: number): DsecError {
  return new DsecError('import-limit', `${showPath(path)}: more than ${limit} = ${value}`, {
    details: { limit, value },
  });
}

/** The names on the way, checked; none for the root. */
export function splitPath(path: ByteString, depthMax: number): ByteString[] {
  if (path === '') return [];
  const names = path.split('/', depthMax + 1);
  if (names.length > depthMax) throw overLimit(path, 'depthMax', depthMax);
  for (const name of names) checkName(path, name);
  if (names[0] === RESERVED_NAME) throw invalid(path, `/${RESERVED_NAME} is the platform's own`);
  return names;
}

function checkName(path: ByteString, name: ByteString): void {
  if (name === '' || name === '.' || name === '..') throw invalid(path, 'is not a relative path');
  if (name.length > NAME_BYTES_MAX)
    throw invalid(path, `a name has more than ${NAME_BYTES_MAX} bytes`);
  if (NO_BYTES.test(name)) throw invalid(path, 'a name has a character that is no byte');
}

export function checkAttributes(path: ByteString, attributes: InodeAttributes): void {
  const { mode, uid, gid, mtimeSec, mtimeNsec } = attributes;
  if (!isWithin(mode, MODE_BITS)) throw invalid(path, `mode ${mode} is out of range`);
  for (const id of [uid, gid]) {
    if (!isWithin(id, ID_MAX)) throw invalid(path, `id ${id} is above ${ID_MAX}`);
  }
  if (!Number.isSafeInteger(mtimeSec) || !isWithin(mtimeNsec, 999_999_999)) {
    throw invalid(path, `time ${mtimeSec} s + ${mtimeNsec} ns is out of range`);
  }
}

export function checkTarget(path: ByteString, target: ByteString): void {
  if (target === '' || target.length > SYMLINK_BYTES_MAX) {
    throw invalid(path, `a link target has 1 to ${SYMLINK_BYTES_MAX} bytes`);
  }
  if (NO_BYTES.test(target)) throw invalid(path, 'a link target has a bad character');
}

export function checkDevice(path: ByteString, { major, minor }: DeviceNumber): void {
  if (isWithin(major, MAJOR_MAX) && isWithin(minor, MINOR_MAX)) return;
  throw invalid(path, `device ${major}:${minor} is out of range`);
}

function isWithin(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= max;
}

/** Counts what a source has announced, whether it is replaced later or not, against the limits. */
export interface ImportBudget {
  readonly entries: number;
  readonly droppedXattrs: number;
  addEntry(path: ByteString): void;
  /** What a symlink holds in memory until it is encoded. */
  addTarget(path: ByteString, target: ByteString): void;
  addFile(path: ByteString, sizeBytes: number): void;
  /** What is kept beside names and link targets. */
  addMemory(path: ByteString, bytes: number): void;
  /** The xattrs that are kept. */
  addXattrs(
    path: ByteString,
    kind: FileKind,
    xattrs: ReadonlyMap<ByteString, Uint8Array>,
  ): [ByteString, Uint8Array][];
}

export function createImportBudget(limits: BuilderLimits): ImportBudget {
  let entries = 0;
  let contentBytes = 0;
  let metaBytes = 0;
  let xattrBytes = 0;
  let droppedXattrs = 0;
  let memoryBytes = 0;

  const addMemory = (path: ByteString, bytes: number) => {
    memoryBytes += bytes;
    if (memoryBytes > limits.memoryBytesMax) {
      throw overLimit(path, 'memoryBytesMax', limits.memoryBytesMax);
    }
  };

  /** The image will at least be as large as what it must name: refused before that fills the memory. */
  const addMeta = (path: ByteString, bytes: number) => {
    metaBytes += bytes;
    if (metaBytes > limits.metaBytesMax) {
      throw overLimit(path, 'metaBytesMax', limits.metaBytesMax);
    }
  };

  return {
    get entries() {
      return entries;
    },
    get droppedXattrs() {
      return droppedXattrs;
    },
    addEntry(path) {
      entries += 1;
      if (entries > limits.entriesMax) throw overLimit(path, 'entriesMax', limits.entriesMax);
      const nameBytes = path.length - path.lastIndexOf('/') - 1;
      addMeta(path, nameBytes);
      addMemory(path, ENTRY_MEMORY_BYTES + nameBytes);
    },
    addTarget(path, target) {
      addMeta(path, target.length);
      addMemory(path, target.length);
    },
    addMemory,
    addFile(path, sizeBytes) {
      if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) {
        throw invalid(path, `size ${sizeBytes} is out of range`);
      }
      contentBytes += sizeBytes;
      if (sizeBytes > limits.fileBytesMax)
        throw overLimit(path, 'fileBytesMax', limits.fileBytesMax);
      if (contentBytes > limits.contentBytesMax) {
        throw overLimit(path, 'contentBytesMax', limits.contentBytesMax);
      }
      addMeta(path, chunksOf(sizeBytes) * 8);
    },
    addXattrs(path, kind, xattrs) {
      const { kept, dropped, inodeBytes, encodedBytes } = sortXattrs(path, kind, xattrs);
      droppedXattrs += dropped;
      xattrBytes += inodeBytes;
      if (inodeBytes > limits.xattrBytesPerInodeMax || encodedBytes > XATTR_BYTES_MAX / 2) {
        throw overLimit(path, 'xattrBytesPerInodeMax', limits.xattrBytesPerInodeMax);
      }
      if (xattrBytes > limits.xattrBytesMax)
        throw overLimit(path, 'xattrBytesMax', limits.xattrBytesMax);
      return kept;
    },
  };
}

/** The xattrs that are kept, and what they take. */
function sortXattrs(path: ByteString, kind: FileKind, xattrs: ReadonlyMap<ByteString, Uint8Array>) {
  let dropped = 0;
  const kept: [ByteString, Uint8Array][] = [];
  let inodeBytes = 0;
  let encodedBytes = 0;
  for (const [name, value] of xattrs) {
    const verdict = isXattrName(name) ? keepXattr(kind, name, value) : 'drop';
    if (verdict === 'bad-id') throw invalid(path, `${name} names an id above ${ID_MAX}`);
    if (verdict === 'drop') {
      dropped += 1;
      continue;
    }
    if (value.length > XATTR_VALUE_BYTES_MAX) {
      throw overLimit(path, 'xattr value bytes', XATTR_VALUE_BYTES_MAX);
    }
    inodeBytes += name.length + value.length;
    encodedBytes += entryBytes(name.length, value.length);
    kept.push([name, value]);
  }
  return { kept, dropped, inodeBytes, encodedBytes };
}

function isXattrName(name: ByteString): boolean {
  return name.length <= XATTR_NAME_BYTES_MAX && !NO_BYTES.test(name);
}
