import type { ByteString } from '@dsec/erofs';
import { DsecError } from '@dsec/std';

/**
 * The kernel's form of an ACL as an attribute (`linux/posix_acl_xattr.h`): a version, then tag, rights, id
 * each.
 */
const VERSION = 2;
const HEADER_BYTES = 4;
const ENTRY_BYTES = 8;
const NO_ID = 0xffff_ffff;
/** The kernel's own bound comes from the attribute's 64 KiB. */
const ENTRIES_MAX = 8191;

/** Tag of an entry without and with a qualifier. The kernel wants them in this order. */
const TAGS: Readonly<Record<string, { readonly owner: number; readonly named?: number }>> = {
  user: { owner: 0x01, named: 0x02 },
  group: { owner: 0x04, named: 0x08 },
  mask: { owner: 0x10 },
  other: { owner: 0x20 },
};

/**
 * Encodes the text form that tar keeps (`user::rwx,user:1000:r-x,group::r--,…`, entries apart by commas or
 * lines). A qualifier must be a number, or star's fourth field gives it: the names of the machine that made
 * the archive mean nothing here, and an ACL without one of its entries would grant or refuse too much, so a
 * bare name is `import-invalid`.
 */
export function aclFromText(text: ByteString): Uint8Array {
  const entries = text
    .split(/[\n,]/)
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line !== '')
    .map(parseEntry);
  if (entries.length > ENTRIES_MAX) throw invalid('it has too many entries');
  entries.sort((a, b) => a.tag - b.tag || a.id - b.id);
  const acl = Buffer.alloc(HEADER_BYTES + ENTRY_BYTES * entries.length);
  acl.writeUInt32LE(VERSION, 0);
  entries.forEach(({ tag, rights, id }, i) => {
    const at = HEADER_BYTES + ENTRY_BYTES * i;
    acl.writeUInt16LE(tag, at);
    acl.writeUInt16LE(rights, at + 2);
    acl.writeUInt32LE(id, at + 4);
  });
  return acl;
}

function parseEntry(line: ByteString): { tag: number; rights: number; id: number } {
  const [kind = '', qualifier = '', rightsText = '', numericId] = line.split(':');
  const tags = Object.hasOwn(TAGS, kind) ? TAGS[kind] : undefined;
  const rights = /^([r-])([w-])([x-])$/.exec(rightsText.trim());
  if (tags === undefined || rights === null) throw invalid(`entry "${line.slice(0, 40)}"`);
  const bits =
    (rights[1] === 'r' ? 4 : 0) | (rights[2] === 'w' ? 2 : 0) | (rights[3] === 'x' ? 1 : 0);
  if (qualifier === '') return { tag: tags.owner, rights: bits, id: NO_ID };
  const id = /^[0-9]{1,9}$/.test(qualifier) ? qualifier : (numericId ?? '');
  if (tags.named === undefined || !/^[0-9]{1,9}$/.test(id)) {
    throw invalid(`entry "${line.slice(0, 40)}" names no numeric id`);
  }
  return { tag: tags.named, rights: bits, id: Number(id) };
}

function invalid(why: string): DsecError {
  return new DsecError('import-invalid', `an access control list cannot be read: ${why}`);
}
