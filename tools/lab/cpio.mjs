// @ts-check

/**
 * @typedef {object} CpioEntry
 * @property {string} path Without a leading slash; parents come before their children.
 * @property {'file' | 'directory' | 'symlink'} type
 * @property {number} [mode] Permission bits; 0644 for files and 0755 for the rest when absent.
 * @property {Buffer | string} [data] A file's bytes or a link's target.
 */

const MAGIC = '070701';
const ALIGNMENT = 4;
const TRAILER = 'TRAILER!!!';
const TYPE_BITS = { file: 0o100000, directory: 0o040000, symlink: 0o120000 };

/**
 * An archive in cpio's "newc" form, which the kernel unpacks as its initial file system. Several archives
 * may follow each other in one file. Everything belongs to root at time 0, so the same entries give the
 * same bytes.
 *
 * @param {readonly CpioEntry[]} entries
 * @returns {Buffer}
 */
export function cpioArchive(entries) {
  const parts = entries.flatMap((entry, index) => {
    const mode = TYPE_BITS[entry.type] | (entry.mode ?? (entry.type === 'file' ? 0o644 : 0o755));
    return record(entry.path, index + 1, mode, Buffer.from(entry.data ?? ''));
  });
  return Buffer.concat([...parts, ...record(TRAILER, 0, 0, Buffer.alloc(0))]);
}

/**
 * @param {string} path
 * @param {number} inode
 * @param {number} mode
 * @param {Buffer} data
 */
function record(path, inode, mode, data) {
  const name = Buffer.from(`${path}\0`);
  const [uid, gid, links, time, device, special, check] = [0, 0, 1, 0, [0, 0], [0, 0], 0];
  const fields = [inode, mode, uid, gid, links, time, data.length];
  fields.push(...device, ...special, name.length, check);
  const header = MAGIC + fields.map((field) => field.toString(16).padStart(8, '0')).join('');
  return [padded(Buffer.concat([Buffer.from(header, 'latin1'), name])), padded(data)];
}

/** @param {Buffer} bytes */
function padded(bytes) {
  const rest = bytes.length % ALIGNMENT;
  return rest === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(ALIGNMENT - rest)]);
}
