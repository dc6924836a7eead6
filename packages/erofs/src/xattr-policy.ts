/**
 * Which extended attributes a layer may carry. Overlayfs and the security modules act on xattrs, so an
 * attribute that a source planted could redirect a lookup or forge a label (THREATS B15, row 28): everything
 * not listed is dropped.
 */

import type { FileKind } from './format.ts';
import { type ByteString, ID_MAX } from './model.ts';

export const OPAQUE_XATTR = 'trusted.overlay.opaque';
export const OPAQUE_VALUE: Buffer = Buffer.from('y');

/** `bad-id`: the value is well formed but names an id that no sandbox has. */
export type XattrVerdict = 'keep' | 'drop' | 'bad-id';

/**
 * Keeps `user.*` (not `user.overlay.*`) on files and directories, `security.capability` on files, POSIX ACLs
 * on what can have one. Values that the kernel interprets must be in the form that it accepts.
 */
export function keepXattr(kind: FileKind, name: ByteString, value: Uint8Array): XattrVerdict {
  const isFile = kind === 'file';
  const isDirectory = kind === 'directory';
  if (name.startsWith('user.')) {
    const allowed = name.length > 'user.'.length && !name.startsWith('user.overlay.');
    return allowed && (isFile || isDirectory) ? 'keep' : 'drop';
  }
  if (name === 'security.capability') return isFile ? judgeCapability(value) : 'drop';
  if (name === 'system.posix_acl_access') return kind === 'symlink' ? 'drop' : judgeAcl(value);
  if (name === 'system.posix_acl_default') return isDirectory ? judgeAcl(value) : 'drop';
  return 'drop';
}

const CAPABILITY_EFFECTIVE = 1;
/** Length of a value by its revision: one or two 32-bit sets, and from revision 3 a root id. */
const CAPABILITY_BYTES: Readonly<Record<number, number>> = { 1: 12, 2: 20, 3: 24 };

function judgeCapability(value: Uint8Array): XattrVerdict {
  if (value.length < 12) return 'drop';
  const view = viewOf(value);
  const magic = view.getUint32(0, true);
  const revision = magic >>> 24;
  const flags = magic & 0xff_ffff;
  if (value.length !== CAPABILITY_BYTES[revision] || (flags & ~CAPABILITY_EFFECTIVE) !== 0) {
    return 'drop';
  }
  return revision === 3 && view.getUint32(20, true) > ID_MAX ? 'bad-id' : 'keep';
}

const ACL_VERSION = 2;
const ACL_HEADER_BYTES = 4;
const ACL_ENTRY_BYTES = 8;
const ACL_USER_OBJ = 0x01;
const ACL_USER = 0x02;
const ACL_GROUP_OBJ = 0x04;
const ACL_GROUP = 0x08;
const ACL_MASK = 0x10;
const ACL_OTHER = 0x20;
/** What entries without a name of their own carry: the kernel shows no other value. */
const ACL_NO_ID = 0xffff_ffff;
/** The order the kernel demands, and which tags may occur more than once. */
const ACL_ORDER = [ACL_USER_OBJ, ACL_USER, ACL_GROUP_OBJ, ACL_GROUP, ACL_MASK, ACL_OTHER];

function judgeAcl(value: Uint8Array): XattrVerdict {
  const entryBytes = value.length - ACL_HEADER_BYTES;
  if (entryBytes <= 0 || entryBytes % ACL_ENTRY_BYTES !== 0) return 'drop';
  const view = viewOf(value);
  if (view.getUint32(0, true) !== ACL_VERSION) return 'drop';

  const seen = new Map<number, number>();
  let position = 0;
  let badId = false;
  for (let offset = ACL_HEADER_BYTES; offset < value.length; offset += ACL_ENTRY_BYTES) {
    const tag = view.getUint16(offset, true);
    const named = tag === ACL_USER || tag === ACL_GROUP;
    const next = ACL_ORDER.indexOf(tag);
    if (next < position || view.getUint16(offset + 2, true) > 7) return 'drop';
    if (next === position && seen.has(tag) && !named) return 'drop';
    const id = view.getUint32(offset + 4, true);
    if (!named && id !== ACL_NO_ID) return 'drop';
    if (named && id > ID_MAX) badId = true;
    position = next;
    seen.set(tag, (seen.get(tag) ?? 0) + 1);
  }
  const hasNamed = seen.has(ACL_USER) || seen.has(ACL_GROUP);
  const complete = [ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_OTHER].every((tag) => seen.has(tag));
  if (!complete || (hasNamed && !seen.has(ACL_MASK))) return 'drop';
  return badId ? 'bad-id' : 'keep';
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
