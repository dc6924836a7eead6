import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DsecError as CodedError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { type FileEntry, Files, NotFoundError } from '../src/index.ts';
import {
  type FakeHandlers,
  joined,
  piecesOf,
  SANDBOX_ID,
  sandboxInfo,
  serverOf,
  stopLater,
} from './support/fake-server.ts';

const ENTRY: FileEntry = {
  ...{ name: 'x', mode: 420, uid: 0, gid: 0, sizeBytes: 1, allocatedBytes: 0 },
  ...{ kind: 'file', links: 1, mtimeSeconds: 1, mtimeNanoseconds: 0 },
};
const missing = async () => {
  throw new CodedError('not-found', 'there is none');
};

const filesOf = async (handlers: FakeHandlers) => new Files(await serverOf(handlers), SANDBOX_ID);

describe('files', () => {
  it('are written with the directories above them, unless that is not wanted', async () => {
    const asked: object[] = [];
    const files = await filesOf({
      async writeFile({ query, body }) {
        asked.push({ ...query, text: (await joined(body)).toString() });
        return ENTRY;
      },
    });
    await files.write('/a/b', 'text');
    const options = { createParents: false, exclusive: true, mode: 0o600, user: 'u' };
    await files.write(Buffer.of(47, 255), piecesOf(Buffer.from('pieces'), 2), options);
    expect(asked).toEqual([
      { path: '/a/b', createParents: true, text: 'text' },
      { pathBase64: 'L/8=', ...options, text: 'pieces' },
    ]);
  });

  it('are uploaded again from the beginning when the connection is lost', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'dsec-files-'));
    stopLater(async () => rmSync(directory, { recursive: true }));
    const local = join(directory, 'file');
    writeFileSync(local, 'y'.repeat(1_000_000));
    const lengths: number[] = [];
    const files = await filesOf({
      async writeFile({ body }) {
        lengths.push((await joined(body)).length);
        if (lengths.length < 3) throw new CodedError('unavailable', 'not now');
        return ENTRY;
      },
    });
    expect(await files.upload(local, '/x')).toEqual(ENTRY);
    expect(lengths).toEqual([1_000_000, 1_000_000, 1_000_000]);
    await expect(files.upload(join(directory, 'none'), '/x')).rejects.toMatchObject({
      code: 'not-found',
    });
  });

  it('are not sent again where they must be new and may have arrived', async () => {
    const lengths: number[] = [];
    const files = await filesOf({
      async writeFile({ body }) {
        lengths.push((await joined(body)).length);
        throw new CodedError('unavailable', 'not now');
      },
    });
    const lost = expect.objectContaining({ code: 'unavailable' });
    const exclusive = { exclusive: true };
    await expect(files.write('/x', 'text', exclusive)).rejects.toEqual(lost);
    const made = () => piecesOf(Buffer.from('made'), 2);
    await expect(files.write('/x', made, exclusive)).rejects.toEqual(lost);
    await expect(files.write('/x', made())).rejects.toEqual(lost);
    expect(lengths).toEqual([4, 4, 4]);
  });

  it('exist or not, as long as the sandbox does', async () => {
    const alive = await filesOf({ statFile: missing, getSandbox: async () => sandboxInfo() });
    expect(await alive.exists('/x')).toBe(false);
    const gone = await filesOf({ statFile: missing, getSandbox: missing });
    await expect(gone.exists('/x')).rejects.toBeInstanceOf(NotFoundError);
    const there = await filesOf({
      async statFile({ query }) {
        expect(query).toEqual({ path: '/x', followSymlinks: false });
        return ENTRY;
      },
    });
    expect(await there.exists('/x')).toBe(true);
  });
});
