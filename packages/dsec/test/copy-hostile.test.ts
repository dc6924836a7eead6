/** A sandbox that says of its files whatever it likes, to a client that copies them out. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FileEntry, Files } from '@dsec/libdsec';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { download } from '../src/client/copy/download.ts';
import { openLocalDirectory } from '../src/client/copy/local-directory.ts';
import type { Tally } from '../src/client/copy/tally.ts';

let root = '';
let target = '';
let skipped: string[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'dsec-hostile-'));
  target = join(root, 'target');
  mkdirSync(target);
  skipped = [];
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const entry = (
  name: string,
  kind: FileEntry['kind'],
  more: Partial<FileEntry> = {},
): FileEntry => ({
  ...{ name, kind, mode: 0o755, uid: 0, gid: 0, sizeBytes: 4, allocatedBytes: 0 },
  ...{ links: 1, mtimeSeconds: 1, mtimeNanoseconds: 0 },
  ...more,
});

type Listings = Readonly<Record<string, readonly FileEntry[]>>;

/** What is listed where; every file has the same bytes. */
function filesOf(listings: Listings): Files {
  const files: Pick<Files, 'stat' | 'list' | 'stream' | 'exists'> = {
    stat: async () => entry('d', 'directory'),
    async *list(path) {
      yield* listings[String(path)] ?? [];
    },
    async *stream() {
      yield Buffer.from('evil');
    },
    exists: async () => true,
  };
  return files as Files;
}

async function copy(listings: Listings): Promise<void> {
  const result = { files: 0, directories: 0, links: 0, skipped: 0, bytes: 0 };
  const nothing = () => {};
  const tally: Tally = {
    ...{ result, bytes: nothing, file: nothing, directory: nothing, link: nothing },
    skip: (path) => void skipped.push(Buffer.from(path).toString()),
    finish: nothing,
  };
  const directory = await openLocalDirectory(Buffer.from(target));
  try {
    const place = { directory, name: Buffer.from('d') };
    const { signal } = new AbortController();
    await download(filesOf(listings), Buffer.from('/d'), place, { tally, signal });
  } finally {
    await directory.close();
  }
}

/** Everything below, by its path. */
const everything = () => readdirSync(root, { recursive: true }).map(String).sort();

describe('copying out of a hostile sandbox', () => {
  it.each(['..', '.', '', '../evil', '/abs', 'a/b', 'nul\0'])(
    'takes %j for no name',
    async (name) => {
      for (const kind of ['file', 'directory', 'symlink'] as const) {
        const found = entry(name, kind, { symlinkTarget: 'x' });
        await expect(copy({ '/d': [found] })).rejects.toMatchObject({ code: 'protocol' });
      }
      expect(everything()).toEqual(['target', 'target/d']);
    },
  );

  it('does the same for names in base64, which are what counts', async () => {
    const nameBase64 = Buffer.from('../../evil').toString('base64');
    const found = entry('harmless', 'file', { nameBase64 });
    await expect(copy({ '/d': [found] })).rejects.toMatchObject({ code: 'protocol' });
    expect(everything()).toEqual(['target', 'target/d']);
  });

  it('never goes through a link that it made itself, when the name is a directory afterwards', async () => {
    const listings = {
      '/d': [
        entry('other', 'directory'),
        entry('x', 'symlink', { symlinkTarget: 'other' }),
        entry('x', 'directory'),
      ],
      '/d/x': [entry('f', 'file')],
    };
    await expect(copy(listings)).rejects.toMatchObject({ code: expect.any(String) });
    expect(lstatSync(join(target, 'd', 'x')).isSymbolicLink()).toBe(true);
    expect(everything()).toEqual(['target', 'target/d', 'target/d/other', 'target/d/x']);
    // The same without a link on the way, so that it was the link.
    rmSync(join(target, 'd'), { recursive: true });
    await copy({ '/d': [entry('x', 'directory')], '/d/x': [entry('f', 'file')] });
    expect(readFileSync(join(target, 'd', 'x', 'f'), 'utf8')).toBe('evil');
  });

  it('puts a file in place of a link, and not where it leads', async () => {
    const victim = join(root, 'victim');
    mkdirSync(join(target, 'd'));
    symlinkSync(victim, join(target, 'd', 'f'));
    await copy({
      '/d': [entry('f', 'file'), entry('f', 'symlink', { symlinkTarget: '../../victim' })],
    });
    expect(skipped).toEqual(['/d/f']);
    expect(existsSync(victim)).toBe(false);
    expect(lstatSync(join(target, 'd', 'f')).isFile()).toBe(true);
  });
});
