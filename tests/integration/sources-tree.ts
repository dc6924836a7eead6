/** Trees on disk for the tests of import sources, from what every format holds to what few do. */
import {
  chmodSync,
  chownSync,
  closeSync,
  ftruncateSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { makeNode, setFileTimes, setXattr } from '@dsec/linux';

/** A path below a tree, of any bytes. */
export const bytePath = (tree: string, name: string) => Buffer.from(`${tree}/${name}`, 'latin1');

/** What the oldest format can hold: short ASCII names, small ids, files, directories, links. */
export function makeBasicTree(tree: string): void {
  const at = (name: string) => bytePath(tree, name);
  mkdirSync(tree, { mode: 0o755 });
  mkdirSync(at('dir/sub'), { recursive: true });
  writeFileSync(at('dir/file'), 'content');
  writeFileSync(at('dir/sub/block'), Buffer.alloc(512, 'b'));
  writeFileSync(at('dir/sub/large'), Buffer.alloc(300_001, 'large '));
  writeFileSync(at('empty'), '');
  symlinkSync('dir/../somewhere else', at('link'));
  symlinkSync('nowhere', at('dir/dangling'));
  linkSync(at('dir/file'), at('hard'));
  linkSync(at('dir/file'), at('dir/sub/hard'));
  linkSync(at('link'), at('hardsymlink'));
  chownSync(at('dir/file'), 1000, 50);
  chownSync(at('dir/sub'), 65_535, 65_535);
  chmodSync(at('dir/file'), 0o6755);
  chmodSync(at('dir'), 0o1777);
  chmodSync(at('empty'), 0);
  utimesSync(at('empty'), 1, 1);
  utimesSync(at('dir/sub/block'), 1_900_000_000, 1_900_000_000);
  lutimesSync(at('link'), 12_345, 12_345);
}

/** Adds what only later formats hold. */
export function addNamesAndDevices(tree: string): void {
  const at = (name: string) => bytePath(tree, name);
  writeFileSync(at('n\xe4me \xff\xfe'), 'not UTF-8');
  writeFileSync(at(`${'d'.repeat(100)}${'x'.repeat(100)}`), 'long name');
  mkdirSync(at(`deep/${'p'.repeat(120)}/${'q'.repeat(90)}`), { recursive: true });
  writeFileSync(at(`deep/${'p'.repeat(120)}/${'q'.repeat(90)}/file`), 'long path');
  symlinkSync('t'.repeat(3000), at('longlink'));
  linkSync(at(`deep/${'p'.repeat(120)}/${'q'.repeat(90)}/file`), at('hardlong'));
  makeNode(at('char'), { mode: 0o020_640, major: 10, minor: 200 });
  makeNode(at('block'), { mode: 0o060_600, major: 8, minor: 17 });
  makeNode(at('fifo'), { mode: 0o010_644 });
  writeFileSync(at(' leading and trailing '), '');
  writeFileSync(at('new\nline'), '');
  writeFileSync(at('-dash'), '');
}

/** A file with 4 KiB of data at each offset and holes elsewhere. */
export function addSparse(
  tree: string,
  name: string,
  sizeBytes: number,
  pieces: readonly number[],
): void {
  const fd = openSync(bytePath(tree, name), 'w');
  for (const offset of pieces) writeSync(fd, Buffer.alloc(4096, `${offset} `), 0, 4096, offset);
  ftruncateSync(fd, sizeBytes);
  closeSync(fd);
}

/** Adds what only pax holds. */
export function addTimesAndXattrs(tree: string): void {
  const at = (name: string) => bytePath(tree, name);
  writeFileSync(at('fine'), 'time');
  setFileTimes(at('fine'), { access: 0n, modification: 1_700_000_000_123_456_789n });
  writeFileSync(at('ancient'), 'before 1970');
  setFileTimes(at('ancient'), { access: 0n, modification: -1_000_000_000_500_000_000n });
  setXattr(at('fine'), 'user.plain', Buffer.from('value'));
  setXattr(at('fine'), 'user.odd=name%\xff', Buffer.from([0, 10, 61, 255]));
  setXattr(at('fine'), 'user.empty', Buffer.alloc(0));
  const capability = Buffer.from('0100000200040000000000000000000000000000', 'hex');
  setXattr(at('fine'), 'security.capability', capability);
  setXattr(at('dir'), 'user.directory', Buffer.alloc(3000, 'x'));
}

export function addHoles(tree: string): void {
  addSparse(tree, 'few', 10_000_000, [0, 1_000_000, 9_900_000]);
  addSparse(tree, 'end', 5_000_000, [1_000_000]);
  addSparse(tree, 'hole', 3_000_000, []);
  addSparse(tree, 'odd', 1_000_001, [8192]);
  const many = Array.from({ length: 60 }, (_, i) => i * 65_536);
  addSparse(tree, 'many', 60 * 65_536, many);
}

/** Gives a file and a directory ACLs with named users and groups. */
export function addAcls(tree: string, file: string, directory: string): void {
  const entries = [
    [1, 6, -1],
    [2, 4, 0],
    [2, 7, 1234],
    [4, 4, -1],
    [8, 1, 60],
    [16, 7, -1],
    [32, 4, -1],
  ];
  const acl = Buffer.alloc(4 + 8 * entries.length);
  acl.writeUInt32LE(2, 0);
  entries.forEach(([tag = 0, rights = 0, id = 0], i) => {
    acl.writeUInt16LE(tag, 4 + 8 * i);
    acl.writeUInt16LE(rights, 6 + 8 * i);
    acl.writeInt32LE(id, 8 + 8 * i);
  });
  setXattr(bytePath(tree, file), 'system.posix_acl_access', acl);
  setXattr(bytePath(tree, directory), 'system.posix_acl_default', acl);
}
