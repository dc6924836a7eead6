/**
 * The smallest EROFS images that the kernel mounts, laid out by hand so that these tests need no other
 * package: a root directory with one file. Layout: fs/erofs/erofs_fs.h. Block 0 holds superblock, inodes
 * and the directory's entries.
 */
const BLOCK = 4096;
const SUPER = 1024;
const INODE = 32;
/**
 * Inodes are counted in slots of 32 bytes from block 0; the first one lies behind superblock and device
 * table.
 */
const ROOT_NID = 2048 / INODE;
const FLAT_PLAIN = 0;
const FLAT_INLINE = 2;
const CHUNK_BASED = 4;
const INCOMPAT_CHUNKED_FILE = 0x4;
const INCOMPAT_DEVICE_TABLE = 0x8;

export interface TinyImage {
  /** Metadata; without a blob also the file's data. */
  readonly meta: Buffer;
  /** Present when the file's data lies on a device of its own. */
  readonly blob?: Buffer;
}

/** An image whose root holds `hello` with these bytes (at most one block), set-user-id, owned by 0:0. */
export function tinyErofs(
  content: string,
  options: { readonly onDevice?: boolean } = {},
): TinyImage {
  const data = Buffer.alloc(BLOCK);
  data.write(content);
  const size = Buffer.byteLength(content);
  const block = Buffer.alloc(BLOCK);
  writeSuper(block, options.onDevice === true);
  const rootNid = ROOT_NID;
  const fileNid = ROOT_NID + 4; // the root's inode and inline entries take four slots of 32 bytes
  const entries = directory([
    ['.', rootNid, 2],
    ['..', rootNid, 2],
    ['hello', fileNid, 1],
  ]);
  writeInode(block, rootNid, {
    layout: FLAT_INLINE,
    mode: 0o40755,
    nlink: 2,
    size: entries.length,
  });
  entries.copy(block, ROOT_NID * INODE + INODE);
  if (!options.onDevice) {
    writeInode(block, fileNid, { layout: FLAT_PLAIN, mode: 0o104755, nlink: 1, size, unit: 1 });
    return { meta: Buffer.concat([block, data]) };
  }
  const CHUNK_INDEXES = 0x20; // chunk format: indexes of 8 bytes, chunks of one block
  const inode = { layout: CHUNK_BASED, mode: 0o104755, nlink: 1, size, unit: CHUNK_INDEXES };
  writeInode(block, fileNid, inode);
  const index = fileNid * INODE + INODE;
  block.writeUInt16LE(1, index + 2); // device 1
  block.writeUInt32LE(0, index + 4); // its first block
  return { meta: block, blob: data };
}

function writeSuper(block: Buffer, withDevice: boolean): void {
  block.writeUInt32LE(0xe0f5_e1e2, SUPER);
  block.writeUInt8(12, SUPER + 12); // block size 2^12
  block.writeUInt16LE(ROOT_NID, SUPER + 14);
  block.writeBigUInt64LE(2n, SUPER + 16); // inodes
  block.writeUInt32LE(withDevice ? 1 : 2, SUPER + 36); // blocks
  block.writeUInt32LE(0, SUPER + 40); // metadata starts in block 0; inodes are counted from there
  if (!withDevice) return;
  block.writeUInt32LE(INCOMPAT_CHUNKED_FILE | INCOMPAT_DEVICE_TABLE, SUPER + 80);
  block.writeUInt16LE(1, SUPER + 86); // one device
  const slot = 12;
  block.writeUInt16LE(slot, SUPER + 88); // the table starts at slot * 128
  block.writeUInt32LE(1, slot * 128 + 64); // blocks of the device
}

interface Inode {
  readonly layout: number;
  readonly mode: number;
  readonly nlink: number;
  readonly size: number;
  /** Block address or chunk format. */
  readonly unit?: number;
}

function writeInode(block: Buffer, nid: number, inode: Inode): void {
  const at = nid * INODE;
  block.writeUInt16LE(inode.layout << 1, at);
  block.writeUInt16LE(inode.mode, at + 4);
  block.writeUInt16LE(inode.nlink, at + 6);
  block.writeUInt32LE(inode.size, at + 8);
  block.writeUInt32LE(inode.unit ?? 0, at + 16);
  block.writeUInt32LE(nid + 1, at + 20);
}

function directory(
  entries: readonly (readonly [name: string, nid: number, type: number])[],
): Buffer {
  const heads = Buffer.alloc(entries.length * 12);
  let nameAt = heads.length;
  entries.forEach(([name, nid, type], i) => {
    heads.writeBigUInt64LE(BigInt(nid), i * 12);
    heads.writeUInt16LE(nameAt, i * 12 + 8);
    heads.writeUInt8(type, i * 12 + 10);
    nameAt += name.length;
  });
  return Buffer.concat([heads, ...entries.map(([name]) => Buffer.from(name))]);
}
