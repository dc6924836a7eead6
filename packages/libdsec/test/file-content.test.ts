import { createSeededRandom, MIB } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { readContent } from '../src/file-content.ts';
import { ConflictError } from '../src/index.ts';
import {
  brokenAt,
  type FakeHandlers,
  joined,
  piecesOf,
  SANDBOX_ID,
  serverOf,
} from './support/fake-server.ts';

const BYTES = Buffer.from(createSeededRandom(5).bytes(3 * MIB));
const REQUEST = { sandboxId: SANDBOX_ID, query: { path: '/x' } };

/** A file whose first transfers break off after so much. */
function breakingFile(bytes: Buffer, failures: number, after: number) {
  const offsets: number[] = [];
  const state = { offsets, mtimeSeconds: 1, isChanging: false };
  const handlers: FakeHandlers = {
    async readFile({ query: { offset = 0, lengthBytes = Infinity } }) {
      offsets.push(offset);
      const part = bytes.subarray(offset, Math.min(bytes.length, offset + lengthBytes));
      const isBroken = offsets.length <= failures;
      return {
        headers: { 'dsec-offset': String(offset), 'dsec-size-bytes': String(bytes.length) },
        body: isBroken ? brokenAt(part, after) : piecesOf(part, 65_536),
      };
    },
    async statFile() {
      if (state.isChanging) state.mtimeSeconds += 1;
      return {
        ...{ name: 'x', kind: 'file', mode: 420, uid: 0, gid: 0, sizeBytes: bytes.length },
        ...{ allocatedBytes: 0, links: 1, mtimeSeconds: state.mtimeSeconds, mtimeNanoseconds: 0 },
      };
    },
  };
  return { handlers, state };
}

describe('readContent', () => {
  it('goes on where a connection broke off', async () => {
    const { handlers, state } = breakingFile(BYTES, 2, MIB);
    const read = await joined(readContent(await serverOf(handlers), REQUEST));
    expect(read.equals(BYTES)).toBe(true);
    expect(state.offsets).toEqual([0, MIB, 2 * MIB]);
  });

  it('does not join what belongs to two files', async () => {
    const { handlers, state } = breakingFile(BYTES, 1, MIB);
    state.isChanging = true;
    const read = joined(readContent(await serverOf(handlers), REQUEST));
    await expect(read).rejects.toBeInstanceOf(ConflictError);
  });

  it('reads a small file again from its beginning', async () => {
    const small = BYTES.subarray(0, 300_000);
    const { handlers, state } = breakingFile(small, 2, 200_000);
    const read = await joined(readContent(await serverOf(handlers), REQUEST));
    expect(read.equals(small)).toBe(true);
    expect(state.offsets).toEqual([0, 0, 0]);
  });

  it('keeps to the part that was asked for', async () => {
    const { handlers, state } = breakingFile(BYTES, 1, MIB);
    const query = { path: '/x', offset: 100, lengthBytes: 2 * MIB };
    const read = await joined(readContent(await serverOf(handlers), { ...REQUEST, query }));
    expect(read.equals(BYTES.subarray(100, 100 + 2 * MIB))).toBe(true);
    expect(state.offsets).toEqual([100, 100 + MIB]);
  });
});
