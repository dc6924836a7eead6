import { describe, expect, it } from 'vitest';
import { cpioArchive } from './cpio.mjs';

interface Member {
  readonly name: string;
  readonly mode: number;
  readonly data: string;
}

/** A reader of its own, after the kernel's Documentation/driver-api/early-userspace/buffer-format.rst. */
function membersOf(archive: Buffer): Member[] {
  const members: Member[] = [];
  let at = 0;
  const align = () => {
    at = Math.ceil(at / 4) * 4;
  };
  while (at < archive.length) {
    expect(archive.toString('latin1', at, at + 6)).toBe('070701');
    const field = (index: number) => {
      const start = at + 6 + index * 8;
      return Number.parseInt(archive.toString('latin1', start, start + 8), 16);
    };
    const [mode, size, nameSize] = [field(1), field(6), field(11)];
    expect([field(2), field(3), field(5)], 'owner, group and time').toEqual([0, 0, 0]);
    at += 110;
    const name = archive.toString('utf8', at, at + nameSize - 1);
    expect(archive[at + nameSize - 1], 'the end of the name').toBe(0);
    at += nameSize;
    align();
    members.push({ name, mode, data: archive.toString('utf8', at, at + size) });
    at += size;
    align();
  }
  return members;
}

describe('an archive', () => {
  const entries = [
    { path: 'bin', type: 'directory' },
    { path: 'bin/tool', type: 'file', mode: 0o755, data: 'five5' },
    { path: 'bin/link', type: 'symlink', data: 'tool' },
    { path: 'empty', type: 'file' },
  ] as const;

  it('holds its entries with their kinds and modes, and an end', () => {
    expect(membersOf(cpioArchive(entries))).toEqual([
      { name: 'bin', mode: 0o040755, data: '' },
      { name: 'bin/tool', mode: 0o100755, data: 'five5' },
      { name: 'bin/link', mode: 0o120755, data: 'tool' },
      { name: 'empty', mode: 0o100644, data: '' },
      { name: 'TRAILER!!!', mode: 0, data: '' },
    ]);
  });

  it('can be followed by another one', () => {
    const both = Buffer.concat([cpioArchive(entries), cpioArchive(entries.slice(0, 1))]);
    expect(membersOf(both).map(({ name }) => name)).toEqual([
      ...entries.map(({ path }) => path),
      'TRAILER!!!',
      'bin',
      'TRAILER!!!',
    ]);
  });
});
