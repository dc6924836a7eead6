import { randomBytes } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { at, list, read, useWorld, type World, write } from './aether-files-world.ts';
import { type AetherOptions, run, unlessError, until } from './aether-peer.ts';
import { isRoot } from './linux-support.ts';

const LONG = process.env.DSEC_TEST_LONG === '1';

describe('files', () => describeFiles({}));
describe.skipIf(!isRoot)('files of a session namespace (needs root)', () => {
  describeFiles({ sessions: true });
});

function describeFiles(options: AetherOptions): void {
  const world = useWorld(options);
  describeBytes(world);
  describeSpecials(world);
  describeNames(world);
  describeTrees(world);
  describeRights(world, options.sessions === true);
}

function describeBytes(world: () => World): void {
  test('bytes that were written are read again', async () => {
    const bytes = randomBytes(1_000_000);
    expect((await write(world(), at(world(), 'a'), bytes)).bytes).toBe(bytes.length);
    expect(readFileSync(at(world(), 'a')).equals(bytes)).toBe(true);
    expect(statSync(at(world(), 'a')).mode & 0o7777).toBe(0o644);
    expect((await read(world(), at(world(), 'a'))).equals(bytes)).toBe(true);
    const middle = await read(world(), at(world(), 'a'), { offset: 1000, lengthBytes: 500_000 });
    expect(middle.equals(bytes.subarray(1000, 501_000))).toBe(true);
    expect((await read(world(), at(world(), 'a'), { offset: 5_000_000 })).length).toBe(0);
  });

  test('empty files, modes, parents, and exclusive names', async () => {
    await write(world(), at(world(), 'p/q/r'), Buffer.alloc(0), {
      mode: 0o4751,
      createParents: true,
    });
    expect(statSync(at(world(), 'p/q/r')).mode & 0o7777).toBe(0o4751);
    await expect(
      write(world(), at(world(), 'p/q/r'), Buffer.from('x'), { exclusive: true }),
    ).rejects.toMatchObject({
      code: 'already-exists',
    });
    await expect(write(world(), at(world(), 'no/such'), Buffer.from('x'))).rejects.toMatchObject({
      code: 'not-found',
    });
    await expect(write(world(), at(world(), 'p'), Buffer.from('x'))).rejects.toMatchObject({
      code: 'invalid-argument',
    });
  });

  test('a file appears when all of its bytes are there, or not at all', async () => {
    await write(world(), at(world(), 'whole'), Buffer.from('old'));
    const stream = world().link.open();
    stream.send('file-write', {
      offset: 0,
      fields: { path: at(world(), 'whole'), createParents: false, exclusive: false },
    });
    stream.send('stdin', { offset: 0, data: Buffer.from('new'), end: false });
    await until(
      () => readdirSync(world().root).some((name) => name.startsWith('.dsec-')),
      'the new file',
    );
    expect(readFileSync(at(world(), 'whole'), 'utf8')).toBe('old');
    stream.send('cancel', { offset: 0, fields: {} });
    await expect(stream.next().then(unlessError)).rejects.toMatchObject({ code: 'cancelled' });
    await until(
      () => !readdirSync(world().root).some((name) => name.startsWith('.dsec-')),
      'no new file',
    );
    expect(readFileSync(at(world(), 'whole'), 'utf8')).toBe('old');
  });
}

function describeSpecials(world: () => World): void {
  test('a link is written through, and stays', async () => {
    await write(world(), at(world(), 'target'), Buffer.from('1'), { mode: 0o600 });
    symlinkSync('target', at(world(), 'link'));
    await write(world(), at(world(), 'link'), Buffer.from('2'));
    expect(lstatSync(at(world(), 'link')).isSymbolicLink()).toBe(true);
    expect([
      readFileSync(at(world(), 'target'), 'utf8'),
      statSync(at(world(), 'target')).mode & 0o777,
    ]).toEqual(['2', 0o600]);
  });

  test('a hole costs nothing to ask for a part of', async () => {
    writeFileSync(at(world(), 'hole'), '');
    truncateSync(at(world(), 'hole'), 2 ** 42);
    const end = await read(world(), at(world(), 'hole'), { offset: 2 ** 42 - 10 });
    expect([...end]).toEqual(new Array(10).fill(0));
  });
}

function describeNames(world: () => World): void {
  test('names of any bytes', async () => {
    const name = Buffer.concat([
      Buffer.from(`${world().root}/`),
      Buffer.from([0xff, 0x0a, 0x80, 0x27, 0x20]),
    ]);
    await write(world(), name, Buffer.from('odd'));
    expect((await read(world(), name)).toString()).toBe('odd');
    const entries = await list(world(), Buffer.from(world().root), 100);
    expect(
      entries.some((entry) => Buffer.from(entry.name).equals(name.subarray(name.length - 5))),
    ).toBe(true);
    await world().link.ask('file-remove', { path: name, recursive: false });
    expect(existsSync(name)).toBe(false);
  });

  test('attributes, links followed or not', async () => {
    writeFileSync(at(world(), 'stat'), 'four');
    symlinkSync('stat', at(world(), 'to-stat'));
    const ask = async (name: string, followSymlinks: boolean) => {
      const frame = await world().link.ask('file-stat', {
        path: at(world(), name),
        followSymlinks,
      });
      if (frame.type !== 'file-attributes') throw new Error(frame.type);
      return frame.fields;
    };
    const status = statSync(at(world(), 'stat'));
    expect(await ask('to-stat', true)).toMatchObject({
      kind: 'file',
      sizeBytes: 4,
      mode: status.mode & 0o7777,
      links: 1,
    });
    const itself = await ask('to-stat', false);
    expect([itself.kind, Buffer.from(itself.symlinkTarget ?? []).toString()]).toEqual([
      'symlink',
      'stat',
    ]);
    expect(itself.mtimeSeconds).toBeGreaterThan(1_600_000_000);
    await expect(ask('nothing', true)).rejects.toMatchObject({ code: 'not-found' });
  });

  test('a directory page by page, each name once', async () => {
    mkdirSync(at(world(), 'wide'));
    const wanted = Array.from({ length: 2500 }, (_, i) => `name-${i}`);
    for (const name of wanted) writeFileSync(join(world().root, 'wide', name), '');
    for (const size of [1024, 333]) {
      const names = (await list(world(), at(world(), 'wide'), size)).map((entry) =>
        Buffer.from(entry.name).toString(),
      );
      expect(names.sort()).toEqual([...wanted].sort());
    }
    const cursor = Buffer.from('x');
    await expect(
      world().link.ask('file-list', { path: at(world(), 'wide'), entriesMax: 5, cursor }),
    ).rejects.toMatchObject({ code: 'invalid-argument' });
  });
}

function describeTrees(world: () => World): void {
  test('directories are made, moved and removed', async () => {
    await world().link.ask('file-mkdir', {
      path: at(world(), 'm/n/o'),
      createParents: true,
      mode: 0o750,
    });
    expect(statSync(at(world(), 'm/n/o')).mode & 0o7777).toBe(0o750);
    await world().link.ask('file-mkdir', { path: at(world(), 'm/n/o'), createParents: true });
    await expect(
      world().link.ask('file-mkdir', { path: at(world(), 'm'), createParents: false }),
    ).rejects.toMatchObject({ code: 'already-exists' });
    await world().link.ask('file-move', {
      source: at(world(), 'm/n'),
      target: at(world(), 'moved'),
      replace: false,
    });
    expect(existsSync(at(world(), 'moved/o'))).toBe(true);
    await expect(
      world().link.ask('file-move', {
        source: at(world(), 'm'),
        target: at(world(), 'moved'),
        replace: false,
      }),
    ).rejects.toMatchObject({ code: 'already-exists' });
    await expect(
      world().link.ask('file-remove', { path: at(world(), 'moved'), recursive: false }),
    ).rejects.toMatchObject({ code: 'state-conflict' });
    await world().link.ask('file-remove', { path: at(world(), 'moved'), recursive: true });
    expect(existsSync(at(world(), 'moved'))).toBe(false);
  });

  test('a tree that is deeper than any path is removed', async () => {
    const levels = LONG ? 60_000 : 6000;
    const text = `import os
os.mkdir('${world().root}/deep'); os.chdir('${world().root}/deep')
for _ in range(${levels}): os.mkdir('d'); os.chdir('d')
open('end', 'w')`;
    expect((await run(world().link, ['python3', '-c', text])).exitCode).toBe(0);
    await world().link.ask('file-remove', { path: at(world(), 'deep'), recursive: true });
    expect(existsSync(at(world(), 'deep'))).toBe(false);
  });
}

function describeRights(world: () => World, sessions: boolean): void {
  test('nothing waits for a pipe, reads a device, or follows a magic link', async () => {
    await run(world().link, `mkfifo ${world().root}/fifo`);
    await expect(read(world(), at(world(), 'fifo'))).rejects.toMatchObject({
      code: 'invalid-argument',
    });
    await expect(read(world(), Buffer.from('/dev/zero'))).rejects.toMatchObject({
      code: 'invalid-argument',
    });
    await expect(read(world(), Buffer.from('/proc/self/root/etc/passwd'))).rejects.toMatchObject({
      code: 'invalid-argument',
    });
    await expect(read(world(), Buffer.from(world().root))).rejects.toMatchObject({
      code: 'invalid-argument',
    });
    expect((await read(world(), Buffer.from('/proc/self/comm'))).toString()).toBe(
      'aether-worker\n',
    );
  });

  test('the user’s own rights', async () => {
    const secret = at(world(), 'secret');
    await write(world(), secret, Buffer.from('s'), { mode: 0o600 });
    await expect(read(world(), secret, { user: 'daemon' })).rejects.toMatchObject({
      code: 'permission-denied',
    });
    expect((await read(world(), secret)).toString()).toBe('s');
    await write(world(), at(world(), 'of-daemon'), Buffer.from('d'), { user: 'daemon' });
    const owner = await world().link.ask('file-stat', {
      path: at(world(), 'of-daemon'),
      followSymlinks: true,
    });
    expect(statSync(at(world(), 'of-daemon')).uid).toBe(sessions ? 2 ** 30 + 1 : 1);
    expect(owner.type).toBe('file-attributes');
  });
}
