import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { hasCommand } from '../bootstrap/host.mjs';
import { unpackedKernel } from './boot.mjs';
import { copyFiles, hostPrograms, librariesOf, makeSkeleton } from './host-programs.mjs';
import { copyTree, makeImage } from './image.mjs';
import { makeRepositoryDisk, readTree, writeTree } from './repository-disk.mjs';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dsec-lab-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

/** A small repository. */
function newRepository(): string {
  const root = join(folder, 'repository');
  for (const name of ['packages/a', '.git', 'node_modules/b', 'packages/a/node_modules/c']) {
    mkdirSync(join(root, name), { recursive: true });
    writeFileSync(join(root, name, 'file'), name);
  }
  writeFileSync(join(root, 'packages/a/run'), '#!/bin/sh\n', { mode: 0o755 });
  symlinkSync('a/run', join(root, 'packages/link'));
  return root;
}

const debugfs = (image: string, request: string) =>
  execFileSync('debugfs', ['-R', request, image], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  });

describe('the disk of the repository', () => {
  it('holds it without what is on another disk', async () => {
    const { path } = await makeRepositoryDisk(join(folder, 'cache'), newRepository());
    expect(debugfs(path, 'cat /packages/a/node_modules/c/file')).toBe('packages/a/node_modules/c');
    expect(debugfs(path, 'stat /packages/a/run')).toContain('Mode:  0755');
    expect(debugfs(path, 'stat /packages/link')).toContain('"a/run"');
    const top = debugfs(path, 'ls -p /').match(/[\w.]+(?=\/\/|\/\d*\/$)/gm) ?? [];
    expect(top).toEqual(expect.arrayContaining(['packages', 'node_modules']));
    expect(top).not.toContain('.git');
    expect(debugfs(path, 'ls -p /node_modules')).not.toContain('/b/');
  });

  it('is made again when anything in it has changed, and only then', async () => {
    const root = newRepository();
    const cache = join(folder, 'cache');
    const first = await makeRepositoryDisk(cache, root);
    writeFileSync(join(root, 'node_modules/b/file'), 'other');
    expect(await makeRepositoryDisk(cache, root)).toMatchObject({ path: first.path, reused: true });
    chmodSync(join(root, 'packages/a/run'), 0o644);
    expect((await makeRepositoryDisk(cache, root)).path).not.toBe(first.path);
  });

  it('is a copy, entry by entry', () => {
    const entries = readTree(newRepository(), ['.git']);
    const copy = join(folder, 'copy');
    writeTree(copy, entries);
    expect(readTree(copy, [])).toEqual(entries);
    expect(readlinkSync(join(copy, 'packages/link'))).toBe('a/run');
  });
});

describe('an image', () => {
  it('holds a folder and room, and takes no more than it holds', async () => {
    const image = join(folder, 'image');
    await makeImage(image, newRepository(), 64 << 20);
    expect(debugfs(image, 'cat /packages/a/file')).toBe('packages/a');
    const { size, blocks } = statSync(image);
    expect(size).toBeGreaterThan(64 << 20);
    expect(blocks * 512).toBeLessThan(16 << 20);
  });

  it('is made of a tree that was copied', async () => {
    const copy = join(folder, 'copy');
    await copyTree(newRepository(), copy);
    expect(readFileSync(join(copy, 'packages/a/file'), 'utf8')).toBe('packages/a');
    expect(lstatSync(join(copy, 'packages/link')).isSymbolicLink()).toBe(true);
  });
});

it('copies programs of this machine with all that they need', (context) => {
  context.skip(!hasCommand('dpkg'), 'this machine has no dpkg');
  const root = join(folder, 'root');
  makeSkeleton(root);
  const { files } = hostPrograms();
  const wanted = files.filter((path) => /\/(?:bash|sh|mount|true)$/.test(path));
  copyFiles([...wanted, ...librariesOf(wanted)], root);
  expect(existsSync(join(root, 'bin/sh'))).toBe(true);
  expect(existsSync(join(root, 'usr/bin/bash'))).toBe(true);
  context.skip(process.getuid?.() !== 0, 'changing the root directory needs root');
  const ran = spawnSync('chroot', [root, '/bin/bash', '-c', 'mount --version && echo ran'], {
    encoding: 'utf8',
  });
  expect(ran.stdout).toMatch(/util-linux[\s\S]*ran\n$/);
});

describe('a packed kernel', () => {
  const bzImage = (payload: Buffer) => {
    const setup = Buffer.alloc(2 * 512);
    setup.writeUInt8(1, 0x1f1);
    const [prefix, length] = [Buffer.alloc(40), Buffer.alloc(4)];
    setup.writeUInt32LE(prefix.length, 0x248);
    setup.writeUInt32LE(payload.length + length.length, 0x24c);
    return Buffer.concat([setup, prefix, payload, length, Buffer.alloc(100)]);
  };

  it('is unpacked where it is packed with zstd', (context) => {
    context.skip(!hasCommand('zstd'), 'this machine has no zstd');
    const kernel = Buffer.from('\x7fELF and so on');
    const packed = bzImage(execFileSync('zstd', ['-c'], { input: kernel }));
    expect(unpackedKernel(packed)).toEqual(kernel);
  });

  it('stays as it is otherwise', () => {
    const packed = bzImage(Buffer.from('something else'));
    expect(unpackedKernel(packed)).toBe(packed);
  });
});
