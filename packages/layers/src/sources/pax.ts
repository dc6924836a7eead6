import type { ByteString } from '@dsec/erofs';
import { DsecError } from '@dsec/std';
import { aclFromText } from './posix-acl.ts';

/** What extended headers say of one member. An absent field leaves what the plain header says. */
export interface PaxFields {
  path?: ByteString;
  linkPath?: ByteString;
  sizeBytes?: number;
  uid?: number;
  gid?: number;
  mtime?: { readonly sec: number; readonly nsec: number };
  readonly xattrs: Map<ByteString, Uint8Array>;
  readonly sparse: PaxSparse;
}

/** The `GNU.sparse.` records, in their three versions. */
export interface PaxSparse {
  major?: number;
  minor?: number;
  name?: ByteString;
  sizeBytes?: number;
  /** Version 0.0: offsets and lengths in turn, one record each. */
  readonly pairs: number[];
  /** Version 0.1: the same as one list. */
  map?: ByteString;
}

const SPACE = 0x20;
const NEWLINE = 0x0a;
const EQUALS = 0x3d;
const LENGTH_DIGITS_MAX = 9;
const XATTR_PREFIX = 'SCHILY.xattr.';
/** Global ones are copied for every member, so their number must be small. Real files have a handful. */
const XATTRS_MAX = 256;
const NANOSECOND_DIGITS = 9;

export function emptyPaxFields(): PaxFields {
  return { xattrs: new Map(), sparse: { pairs: [] } };
}

/**
 * Decodes the records `<length> <key>=<value>\n` of an extended header, in order; a later one wins, and an
 * empty value takes an earlier one back (POSIX), except that an attribute may well be empty. Unknown keys are
 * ignored, as everywhere; so is `LIBARCHIVE.xattr.`, beside which bsdtar always writes the form that others
 * read. Malformed records are `import-invalid`.
 */
export function parsePax(body: Buffer, into: PaxFields, scope: 'member' | 'global'): void {
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(SPACE, at);
    const length = parseLength(body, at, space);
    const end = at + length;
    const equals = body.indexOf(EQUALS, space + 1);
    if (end > body.length || body[end - 1] !== NEWLINE || equals === -1 || equals >= end) {
      throw invalid('a record does not end where it says');
    }
    const key = body.toString('latin1', space + 1, equals);
    if (key === '' || key.includes('\0')) throw invalid('a record has no proper key');
    setField(into, key, body.subarray(equals + 1, end - 1), scope);
    at = end;
  }
}

function parseLength(body: Buffer, at: number, space: number): number {
  const digits = space === -1 ? '' : body.toString('latin1', at, Math.min(space, at + 20));
  if (!/^[0-9]+$/.test(digits) || digits.length > LENGTH_DIGITS_MAX) {
    throw invalid('a record has no length');
  }
  const length = Number(digits);
  if (length <= digits.length + 2) throw invalid('a record is shorter than its own length');
  return length;
}

function setField(into: PaxFields, key: string, value: Buffer, scope: 'member' | 'global'): void {
  if (key.startsWith(XATTR_PREFIX)) {
    const name = decodeXattrName(key.slice(XATTR_PREFIX.length));
    if (name === '') throw invalid('an extended attribute has no name');
    if (into.xattrs.size >= XATTRS_MAX) {
      throw new DsecError(
        'import-limit',
        `more than ${XATTRS_MAX} extended attributes in one header`,
      );
    }
    into.xattrs.set(name, Uint8Array.from(value));
    return;
  }
  const setter = Object.hasOwn(SHARED_FIELDS, key)
    ? SHARED_FIELDS[key]
    : scope === 'member' && Object.hasOwn(MEMBER_FIELDS, key)
      ? MEMBER_FIELDS[key]
      : undefined;
  setter?.(into, value.toString('latin1'));
}

type Setter = (into: PaxFields, text: ByteString) => void;

const SHARED_FIELDS: Readonly<Record<string, Setter>> = {
  uid: field('uid', parseId),
  gid: field('gid', parseId),
  mtime: field('mtime', parseTime),
  'SCHILY.acl.access': (into, text) => setAcl(into, 'system.posix_acl_access', text),
  'SCHILY.acl.default': (into, text) => setAcl(into, 'system.posix_acl_default', text),
};

/** One value of these for every member that follows makes no sense; in a global header they are ignored. */
const MEMBER_FIELDS: Readonly<Record<string, Setter>> = {
  path: field('path', parseName),
  linkpath: field('linkPath', parseName),
  size: field('sizeBytes', parsePaxNumber),
  'GNU.sparse.major': sparseField('major', parsePaxNumber),
  'GNU.sparse.minor': sparseField('minor', parsePaxNumber),
  'GNU.sparse.name': sparseField('name', parseName),
  'GNU.sparse.size': sparseField('sizeBytes', parsePaxNumber),
  'GNU.sparse.realsize': sparseField('sizeBytes', parsePaxNumber),
  'GNU.sparse.map': sparseField('map', (map) => map),
  'GNU.sparse.offset': ({ sparse }, text) => pushPair(sparse, text, 0),
  'GNU.sparse.numbytes': ({ sparse }, text) => pushPair(sparse, text, 1),
};

function field<K extends keyof PaxFields>(
  key: K,
  parse: (text: ByteString) => NonNullable<PaxFields[K]>,
): Setter {
  return (into, text) => assign(into, key, text, parse);
}

function sparseField<K extends keyof PaxSparse>(
  key: K,
  parse: (text: ByteString) => NonNullable<PaxSparse[K]>,
): Setter {
  return (into, text) => assign(into.sparse, key, text, parse);
}

function assign<T extends object, K extends keyof T>(
  into: T,
  key: K,
  text: ByteString,
  parse: (text: ByteString) => NonNullable<T[K]>,
): void {
  if (text === '') delete into[key];
  else into[key] = parse(text);
}

function pushPair(sparse: PaxSparse, text: ByteString, parity: 0 | 1): void {
  if (sparse.pairs.length % 2 !== parity) {
    throw invalid('sparse offsets and lengths do not alternate');
  }
  sparse.pairs.push(parsePaxNumber(text));
}

/** ACLs that the tool wrote as text become the attribute that the kernel keeps; the attribute itself wins. */
function setAcl(into: PaxFields, name: string, text: ByteString): void {
  if (text === '' || into.xattrs.has(name)) return;
  into.xattrs.set(name, aclFromText(text));
}

/** GNU tar escapes the two characters that would break a key. */
function decodeXattrName(name: ByteString): ByteString {
  return name.includes('%') ? name.replaceAll('%3D', '=').replaceAll('%25', '%') : name;
}

function parseName(text: ByteString): ByteString {
  if (text.includes('\0')) throw invalid('a name holds a NUL byte');
  return text;
}

/** A decimal number of bytes. What a double cannot hold is `import-limit`: no file is that large. */
export function parsePaxNumber(text: ByteString): number {
  if (!/^[0-9]{1,20}$/.test(text)) throw invalid('a number is not decimal');
  const value = Number(text);
  if (!Number.isSafeInteger(value)) {
    throw new DsecError('import-limit', 'a member claims more than 2^53 bytes');
  }
  return value;
}

function parseId(text: ByteString): number {
  if (!/^[0-9]{1,15}$/.test(text)) throw invalid('an owner is not a decimal number');
  return Number(text);
}

/**
 * Seconds with a fraction, maybe negative: -1.25 is 750,000,000 ns after -2 s. Digits past the ninth are cut.
 */
function parseTime(text: ByteString): { sec: number; nsec: number } {
  const match = /^(-?)([0-9]{1,15})(?:\.([0-9]*))?$/.exec(text);
  if (match === null) throw invalid('a time is not a decimal number');
  const [, sign, whole, fraction = ''] = match;
  const sec = Number(whole);
  const nsec = Number(fraction.slice(0, NANOSECOND_DIGITS).padEnd(NANOSECOND_DIGITS, '0'));
  if (sign === '') return { sec, nsec };
  return nsec === 0 ? { sec: -sec + 0, nsec } : { sec: -sec - 1, nsec: 1e9 - nsec };
}

function invalid(why: string): DsecError {
  return new DsecError('import-invalid', `an extended header is malformed: ${why}`);
}
