import { describe, expect, it } from 'vitest';
import { inodeOffset } from '../src/image-inode.ts';
import {
  type ImageInode,
  memorySource,
  openErofs,
  readDirectory,
  readInode,
  validateLayer,
  walkImage,
} from '../src/index.ts';
import { addFile, attributes, build, LIMITS, noise, xattrs } from './support/layers.ts';
import { patched } from './support/patch.ts';

const layer = build((b) => {
  b.directory('', attributes({ mode: 0o755, xattrs: xattrs({ 'user.shared': 'one' }) }));
  b.directory('d', attributes({ mode: 0o755, xattrs: xattrs({ 'user.shared': 'one' }) }));
  b.opaque('d');
  b.directory('d/e', attributes({ mode: 0o700, mtimeSec: -5, mtimeNsec: 7 }));
  addFile(b, 'd/f', noise(150_000, 1), { xattrs: xattrs({ 'user.own': 'value' }) });
  b.hardLink('d/g', 'd/f');
  b.symlink('l', attributes({ mode: 0o777 }), 'd/f');
  b.symlink('long', attributes({ mode: 0o777 }), 'x'.repeat(4095));
  b.device('n', attributes(), { kind: 'block', major: 8, minor: 1 });
  b.fifo('p', attributes());
  b.whiteout('w');
  addFile(b, 'z', '');
  const wide = 'a-rather-long-name-that-fills-blocks-quickly'.repeat(4);
  for (let index = 0; index < 60; index += 1) b.socket(`wide/${wide}${index}`, attributes());
});
const { meta, devices } = layer.built;
const context = { deviceBlocks: devices.map((device) => device.blocks) };
const image = openErofs(memorySource(meta));
const inodes = new Map([...walkImage(image, LIMITS)].map(({ path, inode }) => [path, inode]));

function inodeOf(path: string): ImageInode {
  const inode = inodes.get(path);
  if (inode === undefined) throw new Error(`no ${path}`);
  return inode;
}

/** Offset of the directory entry of a name. Its nid is the first number in it. */
function direntOf(parent: string, name: string): number {
  const inode = inodeOf(parent);
  const index = [...readDirectory(image, inode)].findIndex((entry) => entry.name === name);
  if (index < 0) throw new Error(`no entry ${name}`);
  return inode.offset + inode.inodeBytes + inode.xattrBytes + index * 12;
}

function refusal(change: (bytes: Buffer) => void, limits = LIMITS): string {
  return refusalOf(patched(meta, change), limits);
}

function refusalOf(bytes: Uint8Array, limits = LIMITS): string {
  try {
    validateLayer(bytes, context, limits);
  } catch (thrown) {
    return `${(thrown as { code: string }).code}: ${(thrown as Error).message}`;
  }
  return 'accepted';
}

describe('an image of ours', () => {
  it('is valid, and its counts are told', () => {
    const valid = validateLayer(meta, context, LIMITS);
    expect(valid).toMatchObject({
      entries: layer.built.stats.entries,
      inodes: layer.built.stats.inodes,
      contentBytes: layer.built.stats.contentBytes,
      devices,
    });
  });

  it('is valid wherever its bytes lie in memory', () => {
    const shifted = Buffer.concat([Buffer.alloc(3), meta]).subarray(3);
    expect(refusalOf(shifted)).toBe('accepted');
  });

  it('needs blobs that are as long as it says', () => {
    expect(() => validateLayer(meta, { deviceBlocks: [1] }, LIMITS)).toThrow('bad entry for blob');
    expect(() => validateLayer(meta, { deviceBlocks: [] }, LIMITS)).toThrow('names 1 devices');
    expect(() => validateLayer(meta, { deviceBlocks: [10_000] }, LIMITS)).not.toThrow();
  });
});

describe('one changed byte', () => {
  it('is never accepted, wherever it is', () => {
    const bytes = Buffer.from(meta);
    for (let at = 0; at < bytes.length; at += 13) {
      const before = bytes[at] ?? 0;
      bytes[at] = before ^ 0x41;
      expect(refusalOf(bytes)).toMatch(/^layer-invalid: /);
      bytes[at] = before;
    }
  });

  it('is not accepted in what has no meaning, even when uuid and checksum were made to fit', () => {
    const free: number[] = [];
    for (let at = 0; at < 1024; at += 100) free.push(at);
    free.push(4095, meta.length - 1, inodeOf('p').offset + 60, inodeOf('p').offset + 6);
    for (const at of free) {
      expect(refusal((bytes) => bytes.writeUInt8(1, at))).toMatch(/^layer-invalid: /);
    }
  });
});

const d = inodeOf('d');
const f = inodeOf('d/f');
const chunkTable = Math.ceil((f.offset + 64 + f.xattrBytes) / 8) * 8;

describe('a hostile image', () => {
  it.each<[string, (bytes: Buffer) => void, string]>([
    ['feature bit', (b) => b.writeUInt32LE(0x4c, 1024 + 80), 'not supported'],
    ['compression', (b) => b.writeUInt32LE(0xc | 2, 1024 + 80), 'not supported'],
    ['zero padding bit', (b) => b.writeUInt32LE(0xd, 1024 + 80), 'not one of ours'],
    ['compat feature', (b) => b.writeUInt32LE(7, 1024 + 8), 'not one of ours'],
    ['block size', (b) => b.writeUInt8(9, 1024 + 12), 'another size than 4 KiB'],
    ['directory blocks', (b) => b.writeUInt8(1, 1024 + 90), 'another size than 4 KiB'],
    ['superblock slots', (b) => b.writeUInt8(1, 1024 + 13), 'hidden content'],
    ['root', (b) => b.writeUInt16LE(3, 1024 + 14), 'layer-invalid'],
    ['no root', (b) => b.writeUInt16LE(0, 1024 + 14), 'not one of ours'],
    ['root far away', (b) => b.writeUInt16LE(65_535, 1024 + 14), 'does not have'],
    ['inode count', (b) => b.writeUInt32LE(5, 1024 + 16), 'wrong count of inodes'],
    ['epoch', (b) => b.writeUInt32LE(5, 1024 + 24), 'hidden content'],
    ['blocks', (b) => b.writeUInt32LE(5, 1024 + 36), 'not one of ours'],
    ['meta block', (b) => b.writeUInt32LE(0xffff, 1024 + 40), 'does not have'],
    ['xattr block', (b) => b.writeUInt32LE(9, 1024 + 44), 'not one of ours'],
    ['volume name', (b) => b.write('hello', 1024 + 64), 'hidden content'],
    ['device count', (b) => b.writeUInt16LE(65_535, 1024 + 86), 'more than 256'],
    ['device table', (b) => b.writeUInt16LE(30, 1024 + 88), 'layer-invalid'],
    ['packed inode', (b) => b.writeUInt32LE(1, 1024 + 96), 'hidden content'],
    ['device tag', (b) => b.write('/etc/passwd\0', 1152), 'without a digest'],
    ['device length', (b) => b.writeUInt32LE(0xffff_fff0, 1152 + 64), 'bad entry for blob'],
    ['device place', (b) => b.writeUInt32LE(0, 1152 + 68), 'bad entry for blob'],
    ['device slot rest', (b) => b.writeUInt32LE(1, 1152 + 100), 'hidden content'],

    ['compact inode', (b) => b.writeUInt16LE(4 << 1, f.offset), 'short inode'],
    ['compressed inode', (b) => b.writeUInt16LE(1 | (1 << 1), f.offset), 'not supported'],
    ['unknown inode bit', (b) => b.writeUInt16LE(1 | (4 << 1) | 0x20, f.offset), 'not supported'],
    ['plain file', (b) => b.writeUInt16LE(1, f.offset), 'not in indexed chunks'],
    ['directory in chunks', (b) => b.writeUInt16LE(1 | (4 << 1), d.offset), 'in chunks'],
    ['chunk size', (b) => b.writeUInt16LE(0x3f, f.offset + 16), 'not in indexed chunks'],
    ['type bits', (b) => b.writeUInt16LE(0o010644, f.offset + 4), 'wrong type'],
    ['no type', (b) => b.writeUInt16LE(0o170644, f.offset + 4), 'no known type'],
    ['reserved', (b) => b.writeUInt16LE(1, f.offset + 6), 'hidden content'],
    ['huge size', (b) => b.writeUInt32LE(0xffff_ffff, f.offset + 12), 'does not have'],
    ['large size', (b) => b.writeUInt32LE(2 ** 31, f.offset + 8), 'layer-invalid'],
    ['inode number', (b) => b.writeUInt32LE(77, f.offset + 20), 'wrong number'],
    ['uid', (b) => b.writeUInt32LE(65_536, f.offset + 24), 'above 65535'],
    ['gid', (b) => b.writeUInt32LE(0xffff_ffff, f.offset + 28), 'above 65535'],
    ['seconds', (b) => b.writeUInt32LE(0x7fff_ffff, f.offset + 36), 'impossible time'],
    ['nanoseconds', (b) => b.writeUInt32LE(10 ** 9, f.offset + 40), 'impossible time'],
    ['too few links', (b) => b.writeUInt32LE(1, f.offset + 44), 'layer-invalid'],
    ['too many links', (b) => b.writeUInt32LE(9, f.offset + 44), 'names too few'],
    ['no links', (b) => b.writeUInt32LE(0, f.offset + 44), 'nothing links'],
    ['directory links', (b) => b.writeUInt32LE(2, d.offset + 44), 'wrong count of links'],
    ['reserved end', (b) => b.writeUInt8(1, f.offset + 63), 'hidden content'],
    ['special with size', (b) => b.writeUInt32LE(1, inodeOf('p').offset + 8), 'layer-invalid'],
    ['fifo with device', (b) => b.writeUInt32LE(1, inodeOf('p').offset + 16), 'device number'],
    ['whiteout with mode', (b) => b.writeUInt16LE(0o020644, inodeOf('w').offset + 4), 'whiteout'],
    ['whiteout with owner', (b) => b.writeUInt32LE(1, inodeOf('w').offset + 24), 'whiteout'],

    ['chunk past its blob', (b) => b.writeUInt32LE(60_000, chunkTable + 4), 'has a chunk'],
    ['chunk device', (b) => b.writeUInt16LE(65_535, chunkTable + 2), 'has a chunk'],
    ['chunk device 0', (b) => b.writeUInt16LE(0, chunkTable + 2), 'has a chunk'],
    ['chunk mark', (b) => b.writeUInt16LE(1, chunkTable), 'marked chunk'],
    ['hole on a device', (b) => b.writeUInt32LE(0xffff_ffff, chunkTable + 4), 'has a chunk'],

    ['huge nid', (b) => b.writeUInt32LE(0xffff_ffff, direntOf('d', 'e') + 4), 'does not have'],
    ['nid far away', (b) => b.writeUInt32LE(0xffff_fff, direntOf('d', 'e')), 'does not have'],
    ['loop to itself', (b) => b.writeUInt32LE(d.nid, direntOf('d', 'e')), 'twice'],
    ['loop to the root', (b) => b.writeUInt32LE(1, direntOf('d', 'e')), 'twice'],
    ['overlap', (b) => b.writeUInt32LE(d.nid + 1, direntOf('d', 'e')), 'layer-invalid'],
    ['wrong parent', (b) => b.writeUInt32LE(d.nid, direntOf('d', '..')), 'wrong ..'],
    ['wrong dot', (b) => b.writeUInt32LE(1, direntOf('d', '.')), 'wrong .'],
    ['entry type', (b) => b.writeUInt8(1, direntOf('d', 'e') + 10), 'wrong type'],
    ['no entry type', (b) => b.writeUInt8(0, direntOf('d', 'e') + 10), 'bad directory entry'],
    ['reserved in entry', (b) => b.writeUInt8(1, direntOf('d', 'e') + 11), 'marked entry'],
    ['name offset', (b) => b.writeUInt16LE(4000, direntOf('d', 'e') + 8), 'bad name'],
    ['first name offset', (b) => b.writeUInt16LE(7, direntOf('d', '.') + 8), 'bad first entry'],
    [
      'empty name',
      (b) => b.writeUInt16LE(b.readUInt16LE(direntOf('d', 'g') + 8), direntOf('d', 'f') + 8),
      'bad name',
    ],
    ['slash in a name', (b) => b.write('/', nameAt(b, 'd', 'e')), 'bad directory entry'],
    ['NUL in a name', (b) => b.write('\0', nameAt(b, 'd', 'e')), 'bad directory entry'],
    ['order', (b) => b.write('~', nameAt(b, 'd', 'e')), 'not sorted'],
    ['same name twice', (b) => b.write('f', nameAt(b, 'd', 'e')), 'not sorted'],
    ['reserved name', (b) => b.write('.dsec', nameAt(b, '', 'long')), 'layer-invalid'],

    ['xattr count', (b) => b.writeUInt16LE(0xffff, f.offset + 2), 'layer-invalid'],
    ['xattr filter', (b) => b.writeUInt32LE(1, f.offset + 64), 'hidden content'],
    ['shared count', (b) => b.writeUInt8(255, f.offset + 68), 'can hold'],
    ['shared id', (b) => b.writeUInt32LE(0xffff_ffff, d.offset + 64 + 12), 'does not have'],
    ['misplaced shared id', (b) => b.writeUInt32LE(1024, d.offset + 64 + 12), 'layer-invalid'],
    ['xattr kind', (b) => b.writeUInt8(9, f.offset + 64 + 12 + 1), 'unknown kind'],
    ['trusted xattr', (b) => b.writeUInt8(4, f.offset + 64 + 12 + 1), 'not allowed'],
    ['security xattr', (b) => b.writeUInt8(6, f.offset + 64 + 12 + 1), 'not allowed'],
    ['xattr length', (b) => b.writeUInt16LE(600, f.offset + 64 + 12 + 2), 'cut short'],
    ['opaque value', (b) => b.write('x', opaqueValue(b)), 'not allowed'],
    ['link target', (b) => b.writeUInt8(0, inodeOf('l').offset + 65), 'NUL'],
    ['long target elsewhere', (b) => b.writeUInt32LE(1, inodeOf('long').offset + 16), 'twice'],
    [
      'inline data over a block',
      (b) => b.writeUInt32LE(4090, inodeOf('l').offset + 8),
      'layer-invalid',
    ],
  ])('is refused for its %s', (_, change, problem) => {
    const found = refusal(change);
    expect(found).toMatch(/^layer-invalid: /);
    expect(found).toContain(problem);
  });

  it('is refused when cut, empty or padded', () => {
    for (const length of [0, 1, 1023, 4095, 4096, meta.length - 4096, meta.length - 1]) {
      expect(refusalOf(meta.subarray(0, length))).toMatch(/^layer-invalid: /);
    }
    expect(refusalOf(Buffer.concat([meta, Buffer.alloc(4096)]))).toMatch(/^layer-invalid: /);
  });

  it('with two ways to one directory is refused', () => {
    const change = (b: Buffer) => {
      const wide = direntOf('', 'wide');
      b.copy(b, direntOf('d', 'e'), wide, wide + 8);
    };
    expect(refusal(change)).toContain('layer-invalid');
  });
});

function nameAt(bytes: Buffer, parent: string, name: string): number {
  const inode = inodeOf(parent);
  const start = inode.offset + inode.inodeBytes + inode.xattrBytes;
  return start + bytes.readUInt16LE(direntOf(parent, name) + 8);
}

function opaqueValue(bytes: Buffer): number {
  return bytes.indexOf('overlay.opaque', d.offset) + 'overlay.opaque'.length;
}

describe('limits', () => {
  it.each([
    [{ entriesMax: 10 }, 'too many entries'],
    [{ depthMax: 1 }, 'nested too deeply'],
    [{ fileBytesMax: 100_000 }, 'more content than the limit'],
    [{ contentBytesMax: 100_000 }, 'more content than the limit'],
    [{ xattrBytesPerInodeMax: 10 }, 'more xattr bytes'],
    [{ xattrBytesMax: 20 }, 'more xattr bytes'],
    [{ metaBytesMax: 4096 }, 'more than the limit'],
  ])('%j', (change, problem) => {
    expect(refusalOf(meta, { ...LIMITS, ...change })).toContain(problem);
  });
});

it('places inodes where the kernel looks for them', () => {
  expect(inodeOffset(image, 1)).toBe(image.superBlock.metaBlock * 4096 + 32);
  expect(readInode(image, 1).kind).toBe('directory');
});
