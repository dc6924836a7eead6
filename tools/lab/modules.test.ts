import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import {
  builtinModules,
  findModules,
  inLoadOrder,
  moduleIndexes,
  parseModuleInfo,
} from './modules.mjs';

/** An ELF file of three sections: none, `.modinfo` and the names of sections. */
function elfWith(modinfo: string): Buffer {
  const names = Buffer.from('\0.modinfo\0.shstrtab\0');
  const info = Buffer.from(modinfo);
  const header = Buffer.alloc(64);
  header.writeUInt32BE(0x7f454c46);
  header.writeBigUInt64LE(BigInt(64 + info.length + names.length), 0x28);
  header.writeUInt16LE(64, 0x3a);
  header.writeUInt16LE(3, 0x3c);
  header.writeUInt16LE(2, 0x3e);
  const section = (name: number, offset: number, length: number) => {
    const entry = Buffer.alloc(64);
    entry.writeUInt32LE(name);
    entry.writeBigUInt64LE(BigInt(offset), 0x18);
    entry.writeBigUInt64LE(BigInt(length), 0x20);
    return entry;
  };
  return Buffer.concat([
    header,
    info,
    names,
    Buffer.alloc(64),
    section(1, 64, info.length),
    section(10, 64 + info.length, names.length),
  ]);
}

const loaderOf = (needs: Readonly<Record<string, readonly string[]>>) => (name: string) => {
  const own = needs[name];
  if (own === undefined) return undefined;
  return { name, bytes: Buffer.alloc(0), info: { needs: [...own], aliases: [`fs-${name}`] } };
};

it('reads what a module needs and how it is asked for', () => {
  const modinfo =
    'license=GPL\0alias=fs-erofs\0depends=libcrc32c,lz4-common\0alias=b\0note=depends=x\0';
  expect(parseModuleInfo(elfWith(modinfo))).toEqual({
    needs: ['libcrc32c', 'lz4_common'],
    aliases: ['fs-erofs', 'b'],
  });
  expect(parseModuleInfo(elfWith('depends=\0'))).toEqual({ needs: [], aliases: [] });
  expect(() => parseModuleInfo(Buffer.alloc(64))).toThrow('not an ELF file');
});

it('puts needs first, each once, and passes over what is built in', () => {
  const load = loaderOf({ a: ['b', 'c'], b: ['c', 'builtin'], c: [], d: ['a'] });
  const order = inLoadOrder(['a', 'd', 'absent', 'b'], load).map(({ name }) => name);
  expect(order).toEqual(['c', 'b', 'a', 'd']);
});

it('ends for modules that need each other', () => {
  const names = inLoadOrder(['a'], loaderOf({ a: ['b'], b: ['a'] })).map(({ name }) => name);
  expect(names).toEqual(['b', 'a']);
});

it('writes the indexes that modprobe reads', () => {
  const order = inLoadOrder(['a'], loaderOf({ a: ['b'], b: ['c'], c: [] }));
  expect(moduleIndexes(order, (name) => `${name}.ko`)).toEqual({
    'modules.dep': 'c.ko:\nb.ko: c.ko\na.ko: b.ko c.ko\n',
    'modules.alias': 'alias fs-c c\nalias fs-b b\nalias fs-a a\n',
  });
});

it('finds modules however they are packed, and those built in', () => {
  const folder = mkdtempSync(join(tmpdir(), 'dsec-lab-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'kernel/fs'), { recursive: true });
  for (const name of ['a.ko', 'b-c.ko.xz', 'd.ko.zst', 'e.txt']) {
    writeFileSync(join(folder, 'kernel/fs', name), '');
  }
  writeFileSync(
    join(folder, 'modules.builtin'),
    'kernel/fs/ext4.ko\nkernel/drivers/virtio-pci.ko\n',
  );
  expect([...findModules(folder).keys()].sort()).toEqual(['a', 'b_c', 'd']);
  expect(findModules(folder).get('b_c')).toBe(join(folder, 'kernel/fs/b-c.ko.xz'));
  expect(builtinModules(folder)).toEqual(new Set(['ext4', 'virtio_pci', '']));
});
