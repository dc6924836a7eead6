import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UnavailableError } from '../src/index.ts';
import { readLocal, sendAgain, writeLocal } from '../src/local-file.ts';
import { joined, piecesOf } from './support/fake-server.ts';

let directory = '';

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dsec-local-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe('local files', () => {
  it('are read and written whole, with word of how far it is', async () => {
    const bytes = Buffer.alloc(700_000, 'ab');
    const path = join(directory, 'file');
    const seen: number[] = [];
    await writeLocal(path, piecesOf(bytes, 300_000), (count) => seen.push(count));
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(seen).toEqual([300_000, 600_000, 700_000]);
    expect((await joined(readLocal(path))).equals(bytes)).toBe(true);
  });

  it('stay as they were when a transfer fails', async () => {
    const path = join(directory, 'file');
    writeFileSync(path, 'old');
    const broken = async function* () {
      yield Buffer.from('new');
      throw new UnavailableError('unavailable', 'gone');
    };
    await expect(writeLocal(path, broken())).rejects.toBeInstanceOf(UnavailableError);
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(readdirSync(directory)).toEqual(['file']);
    const nowhere = writeLocal(join(directory, 'none/file'), broken());
    await expect(nowhere).rejects.toMatchObject({ code: 'not-found' });
  });

  it('are sent again from their beginning, but not for ever', async () => {
    let attempts = 0;
    const fail = async () => {
      attempts += 1;
      if (attempts < 3) throw new UnavailableError('unavailable', 'gone');
      return attempts;
    };
    expect(await sendAgain(5000, undefined, fail)).toBe(3);
    attempts = -1e9;
    await expect(sendAgain(100, undefined, fail)).rejects.toBeInstanceOf(UnavailableError);
  });
});
