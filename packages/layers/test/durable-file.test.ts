import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  createFile,
  digestOf,
  ensureDirectory,
  openRegularFile,
  readBounded,
} from '../src/durable-file.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

describe('createFile', () => {
  it('writes once, for reading only', async () => {
    const path = join(await temporaryDirectory(), 'f');
    await createFile(path, 'content');
    expect(statSync(path).mode & 0o777).toBe(0o444);
    await expect(createFile(path, 'other')).rejects.toThrow(/EEXIST/);
    expect((await readBounded(path, 7)).toString()).toBe('content');
  });
});

describe('openRegularFile', () => {
  it.each(['a link', 'a FIFO', 'a directory', 'a device'])('refuses %s at once', async (what) => {
    const path = join(await temporaryDirectory(), 'f');
    if (what === 'a link') symlinkSync('/etc/passwd', path);
    if (what === 'a FIFO') execFileSync('mkfifo', [path]);
    if (what === 'a directory') mkdirSync(path);
    const target = what === 'a device' ? '/dev/zero' : path;
    expect(await codeOf(openRegularFile(target))).toBe('data-loss');
  });

  it('says not-found for an absent file', async () => {
    const path = join(await temporaryDirectory(), 'absent');
    expect(await codeOf(openRegularFile(path))).toBe('not-found');
  });
});

describe('readBounded', () => {
  it('refuses a file that is longer than what belongs there', async () => {
    const path = join(await temporaryDirectory(), 'f');
    writeFileSync(path, Buffer.alloc(100));
    expect((await readBounded(path, 100)).length).toBe(100);
    expect(await codeOf(readBounded(path, 99))).toBe('data-loss');
  });
});

describe('ensureDirectory', () => {
  it('tells whether it made the directory, and leaves one that exists alone', async () => {
    const path = join(await temporaryDirectory(), 'd');
    expect(await ensureDirectory(path, 0o700)).toBe(true);
    chmodSync(path, 0o751);
    expect(await ensureDirectory(path, 0o700)).toBe(false);
    expect(statSync(path).mode & 0o777).toBe(0o751);
    expect(await codeOf(ensureDirectory(join(path, 'a', 'b')))).toBe('not-found');
  });
});

it('digests as sha256sum does', () => {
  const expected = 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
  expect(digestOf(Buffer.alloc(0))).toBe(expected);
});
