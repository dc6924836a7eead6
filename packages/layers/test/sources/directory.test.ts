import {
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { makeNode, setFileTimes, setXattr } from '@dsec/linux';
import { MIB } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { type DirectoryOptions, importDirectory } from '../../src/sources/directory.ts';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { createPace } from '../../src/sources/pace.ts';
import { createRecordingBuilder, type RecordingBuilder } from './recording-builder.ts';
import { errorWith, isRoot, scratchDirectory } from './scratch.ts';

const scratch = scratchDirectory();
if (!isRoot) console.log('skipped without root: devices and trusted attributes');

const context = () => ({ limits: IMPORT_LIMITS_DEFAULT, pace: createPace() });

async function importFrom(
  path: string,
  options: DirectoryOptions = {},
  builder: RecordingBuilder = createRecordingBuilder(),
): Promise<RecordingBuilder> {
  await importDirectory(path, builder, options, context());
  return builder;
}

function makeDirectory(name: string): string {
  const path = join(scratch, name);
  mkdirSync(path);
  return path;
}

it('gives files, directories, links and FIFOs with their attributes', async () => {
  const root = makeDirectory('plain');
  mkdirSync(join(root, 'd'));
  writeFileSync(join(root, 'd/f'), 'content');
  chmodSync(join(root, 'd/f'), 0o6751);
  writeFileSync(join(root, 'empty'), '');
  linkSync(join(root, 'd/f'), join(root, 'hard'));
  symlinkSync(Buffer.from('to \xff', 'latin1'), join(root, 'l'));
  linkSync(join(root, 'l'), join(root, 'l2'));
  makeNode(join(root, 'p'), { mode: 0o010_600 });
  setFileTimes(join(root, 'd/f'), { access: 0n, modification: -1_500_000_001n });
  setFileTimes(join(root, 'l'), { access: 0n, modification: 1_700_000_000_123_456_789n });
  chmodSync(join(root, 'd'), 0o1777);
  setXattr(join(root, 'd/f'), 'user.\xff', Buffer.from([0, 1]));

  const builder = await importFrom(root);
  expect(builder.calls).toEqual([
    'directory ',
    'directory d',
    'file d/f 7',
    'file empty 0',
    'link hard = d/f',
    'symlink l -> to \xff',
    'link l2 = l',
    'fifo p',
  ]);
  expect(builder.contents.get('d/f')?.toString()).toBe('content');
  expect(builder.attributes.get('d')?.mode).toBe(0o1777);
  expect(builder.attributes.get('d/f')).toMatchObject({
    mode: 0o6751,
    uid: process.getuid?.(),
    gid: process.getgid?.(),
    mtimeSec: -2,
    mtimeNsec: 499_999_999,
    xattrs: new Map([['user.\xff', Buffer.from([0, 1])]]),
  });
  expect(builder.attributes.get('l')).toMatchObject({
    mode: 0o777,
    mtimeSec: 1_700_000_000,
    mtimeNsec: 123_456_789,
  });
});

it.runIf(isRoot)('gives devices, and takes 0:0 for a whiteout (needs root)', async () => {
  const root = makeDirectory('devices');
  makeNode(join(root, 'c'), { mode: 0o020_644, major: 1, minor: 3 });
  makeNode(join(root, 'b'), { mode: 0o060_644, major: 259, minor: 0x1_2345 });
  makeNode(join(root, 'w'), { mode: 0o020_000 });
  linkSync(join(root, 'w'), join(root, 'w2'));
  linkSync(join(root, 'c'), join(root, 'c2'));
  expect((await importFrom(root)).calls).toEqual([
    'directory ',
    `block b 259:${0x1_2345}`,
    'char c 1:3',
    'link c2 = c',
    'whiteout w',
    'whiteout w2',
  ]);
});

it('gives sockets', async () => {
  const root = makeDirectory('sockets');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(root, 's'), resolve));
  expect((await importFrom(root)).calls).toEqual(['directory ', 'socket s']);
  server.close();
});

describe('holes', () => {
  it('stay holes', async () => {
    const root = makeDirectory('sparse');
    const fd = openSync(join(root, 'f'), 'w');
    writeSync(fd, Buffer.alloc(4096, 'a'), 0, 4096, 2 * MIB);
    writeSync(fd, Buffer.alloc(4096, 'b'), 0, 4096, 8 * MIB);
    ftruncateSync(fd, 10 * MIB);
    closeSync(fd);
    const builder = createRecordingBuilder({ keptBytesMax: 16 * MIB });
    await importFrom(root, {}, builder);
    expect(builder.calls.slice(1)).toEqual([
      `file f ${10 * MIB}`,
      `hole 0 ${2 * MIB}`,
      `hole ${2 * MIB + 4096} ${6 * MIB - 4096}`,
      `hole ${8 * MIB + 4096} ${2 * MIB - 4096}`,
    ]);
    const content = builder.contents.get('f') ?? Buffer.alloc(0);
    expect(content[2 * MIB]).toBe(0x61);
    expect(content[8 * MIB + 4095]).toBe(0x62);
    expect(content[8 * MIB + 4096]).toBe(0);
  });

  it('are all there is of some files, and cost no reading', async () => {
    const root = makeDirectory('holes');
    writeFileSync(join(root, 'f'), '');
    truncateSync(join(root, 'f'), 2 ** 42);
    const builder = createRecordingBuilder({ contentBytesMax: 2 ** 43 });
    await importFrom(root, {}, builder);
    expect(builder.calls.slice(1)).toEqual([`file f ${2 ** 42}`, `hole 0 ${2 ** 42}`]);
  });
});

describe('an overlay upper directory', () => {
  function makeUpper(name: string): string {
    const root = makeDirectory(name);
    mkdirSync(join(root, 'opaque'));
    writeFileSync(join(root, 'opaque/f'), '');
    mkdirSync(join(root, 'plain'));
    setXattr(join(root, 'opaque'), 'user.overlay.opaque', Buffer.from('y'));
    setXattr(join(root, 'plain'), 'user.overlay.origin', Buffer.from('x'));
    setXattr(join(root, 'plain'), 'user.kept', Buffer.from('x'));
    return root;
  }

  it('has marks', async () => {
    const builder = await importFrom(makeUpper('upper'), { overlayUpper: 'user' });
    expect(builder.calls).toEqual([
      'directory ',
      'directory opaque',
      'opaque opaque',
      'file opaque/f 0',
      'directory plain',
    ]);
    expect([...(builder.attributes.get('opaque')?.xattrs.keys() ?? [])]).toEqual([]);
    expect([...(builder.attributes.get('plain')?.xattrs.keys() ?? [])]).toEqual(['user.kept']);
  });

  it('is not assumed', async () => {
    const { calls, attributes } = await importFrom(makeUpper('no-upper'));
    expect(calls).not.toContain('opaque opaque');
    expect([...(attributes.get('opaque')?.xattrs.keys() ?? [])]).toEqual(['user.overlay.opaque']);
  });

  it.each(['redirect', 'metacopy'])('is refused with %s', async (mark) => {
    const root = makeUpper(`upper-${mark}`);
    setXattr(join(root, 'plain'), `user.overlay.${mark}`, Buffer.from('/x'));
    await expect(importFrom(root, { overlayUpper: 'user' })).rejects.toThrowError(
      errorWith('import-invalid', /plain/),
    );
    expect((await importFrom(root)).calls).toHaveLength(4);
  });

  it.runIf(isRoot)('has marks among the trusted attributes (needs root)', async () => {
    const root = makeDirectory('trusted');
    mkdirSync(join(root, 'd'));
    setXattr(join(root, 'd'), 'trusted.overlay.opaque', Buffer.from('y'));
    makeNode(join(root, 'd/gone'), { mode: 0o020_000 });
    const builder = await importFrom(root, { overlayUpper: 'trusted' });
    expect(builder.calls).toEqual(['directory ', 'directory d', 'opaque d', 'whiteout d/gone']);
  });
});

it('leaves out what it is told', async () => {
  const root = makeDirectory('excluding');
  mkdirSync(join(root, 'a/b'), { recursive: true });
  writeFileSync(join(root, 'a/b/c'), '');
  writeFileSync(join(root, 'x'), '');
  const { calls } = await importFrom(root, { exclude: ['/a/b/', './x'] });
  expect(calls).toEqual(['directory ', 'directory a']);
  await expect(importFrom(root, { exclude: ['../x'] })).rejects.toThrowError();
});

describe('a file that changes while it is read', () => {
  /** Imports a file of 3 MiB and runs `change` between two of its pieces. */
  async function importWhile(name: string, change: (path: string) => void): Promise<void> {
    const root = makeDirectory(name);
    const path = join(root, 'f');
    writeFileSync(path, Buffer.alloc(3 * MIB, 'x'));
    const builder = createRecordingBuilder();
    let pieces = 0;
    const file: typeof builder.file = (...args) => {
      const sink = builder.file(...args);
      return {
        ...sink,
        write(bytes) {
          sink.write(bytes);
          pieces += 1;
          if (pieces === 1) change(path);
        },
      };
    };
    await importDirectory(root, { ...builder, file }, {}, context());
  }

  it.each<[string, (path: string) => void]>([
    ['shrinks', (path) => truncateSync(path, 100)],
    ['grows', (path) => truncateSync(path, 4 * MIB)],
    ['is written', (path) => writeFileSync(path, 'y', { flag: 'r+' })],
    ['is touched', (path) => utimesSync(path, 1, 1)],
    ['changes its mode', (path) => chmodSync(path, 0o600)],
  ])('and %s is a conflict', async (name, change) => {
    await expect(importWhile(name, change)).rejects.toThrowError(errorWith('conflict', /"f"/));
  });

  it('is left alone otherwise', async () => {
    await importWhile('stays', () => {});
  });
});

it('refuses a path that is no directory', async () => {
  const path = join(scratch, 'file');
  writeFileSync(path, '');
  await expect(importFrom(path)).rejects.toThrowError(errorWith('invalid-argument'));
  await expect(importFrom(join(scratch, 'nowhere'))).rejects.toThrowError(errorWith('not-found'));
});

it('follows a link only as the path itself', async () => {
  const root = makeDirectory('target');
  writeFileSync(join(root, 'f'), '');
  const link = join(scratch, 'link');
  symlinkSync(root, link);
  lutimesSync(link, 1, 1);
  expect((await importFrom(link)).calls).toEqual(['directory ', 'file f 0']);
});

it('can be cancelled', async () => {
  const root = makeDirectory('many');
  for (let i = 0; i < 3000; i += 1) writeFileSync(join(root, `${i}`), 'x');
  const abort = new AbortController();
  const pace = createPace({ signal: abort.signal });
  abort.abort();
  const importing = importDirectory(
    root,
    createRecordingBuilder(),
    {},
    { limits: IMPORT_LIMITS_DEFAULT, pace },
  );
  await expect(importing).rejects.toThrowError(errorWith('cancelled'));
});
