import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSeededRandom, KIB, MIB, type SandboxId } from '@dsec/std';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { assertKept, openEndedSpool, openSpool, type Spool } from '../../src/exec/spool.ts';
import { createSpoolBudget } from '../../src/exec/spool-budget.ts';

const sandbox = 'sb-s1-e1-aaaaaaaaaaaaaaaa' as SandboxId;

describe('a spool', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'dsec-spool-'));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const budgetOf = (nodeBytesMax = 1024 * MIB) =>
    createSpoolBudget({ nodeBytesMax, sandboxBytesMax: 1024 * MIB });
  const open = (keptBytesMax: number, budget = budgetOf()) =>
    openSpool({ path: join(root, 'sb', 'ex.out'), sandbox, keptBytesMax, budget });

  test('no byte, no file', () => {
    const spool = open(MIB);
    spool.flush();
    spool.end();
    expect(spool.totals()).toEqual({
      ...{ totalBytes: 0, headBytes: 0, tailOffset: 0, truncated: false, ended: true },
    });
    expect(() => statSync(join(root, 'sb'))).toThrow();
  });

  test('bytes count when they are written, and can be read from any offset', () => {
    const spool = open(MIB);
    spool.push(Buffer.from('hello '));
    expect([spool.totalBytes, spool.receivedBytes]).toEqual([0, 6]);
    spool.push(Buffer.from('world'));
    spool.flush();
    expect(spool.totalBytes).toBe(11);
    expect(textAt(spool, 0)).toBe('hello world');
    expect(textAt(spool, 6)).toBe('world');
    expect(textAt(spool, 11)).toBe('');
    spool.end();
    expect(textAt(spool, 4)).toBe('o world');
  });

  test.each([0, 1, 2, 1000, 100_000, 3_000_000])('of %i bytes kept, the middle is lost', (kept) => {
    const random = createSeededRandom(kept + 1);
    const spool = open(kept);
    const bytes = patternOf(5_000_000);
    for (let at = 0; at < bytes.length; ) {
      const length = Math.min(1 + random.int(64 * KIB), bytes.length - at);
      if (spool.push(bytes.subarray(at, at + length)) || random.int(4) === 0) spool.flush();
      at += length;
      if (random.int(20) === 0) checkKept(spool, bytes);
    }
    spool.flush();
    checkKept(spool, bytes);
    const { headBytes, tailOffset, truncated } = spool.totals();
    expect(truncated).toBe(true);
    expect(headBytes + bytes.length - tailOffset).toBe(kept);
    spool.end();
    checkKept(spool, bytes);
  });

  test.each([100_000, 3_000_000])('another process finds it as it was, with %i kept', (kept) => {
    const random = createSeededRandom(7);
    const bytes = patternOf(6_000_000);
    let spool = open(kept);
    for (let at = 0; at < bytes.length; ) {
      const length = Math.min(1 + random.int(64 * KIB), bytes.length - at);
      const isDue = spool.push(bytes.subarray(at, at + length));
      at += length;
      if (random.int(8) === 0) {
        // What was only received is lost with the process; the agent sends it again.
        spool = open(kept);
        at = spool.totalBytes;
        checkKept(spool, bytes);
      } else if (isDue) spool.flush();
    }
    spool.flush();
    spool.end();
    expect(spool.totalBytes).toBe(bytes.length);
    const ended = openEndedSpool(
      { path: join(root, 'sb', 'ex.out'), sandbox, keptBytesMax: kept, budget: budgetOf() },
      spool.totals(),
    );
    checkKept(ended, bytes);
  });

  test('a write that was cut off counts as far as it came', () => {
    const spool = open(MIB);
    spool.push(patternOf(100_000));
    spool.flush();
    truncateSync(join(root, 'sb', 'ex.out'), 32 + 60_000);
    const again = open(MIB);
    expect(again.totalBytes).toBe(60_000);
    checkKept(again, patternOf(60_000));
  });

  test('what has waited for a disk with room is written, however much it is', () => {
    const spool = open(MIB);
    const path = join(root, 'sb');
    // In the place of the directory: every write fails.
    writeFileSync(path, '');
    const bytes = patternOf(1_500_000);
    for (let at = 0; at < bytes.length; at += 50_000) spool.push(bytes.subarray(at, at + 50_000));
    expect(() => spool.flush()).toThrow();
    expect([spool.totalBytes, spool.receivedBytes]).toEqual([0, bytes.length]);
    rmSync(path);
    spool.flush();
    expect(spool.totalBytes).toBe(bytes.length);
    checkKept(spool, bytes);
  });

  test('where there is no room left, less is kept, and still counted', () => {
    const budget = budgetOf(2 * MIB);
    const spool = open(16 * MIB, budget);
    const bytes = patternOf(8_000_000);
    for (let at = 0; at < bytes.length; at += 50_000) {
      if (spool.push(bytes.subarray(at, at + 50_000))) spool.flush();
    }
    spool.flush();
    checkKept(spool, bytes);
    expect(statSync(join(root, 'sb', 'ex.out')).size).toBeLessThanOrEqual(2 * MIB + 32);
    expect(budget.usedBytes).toBeLessThanOrEqual(2 * MIB);
    checkKept(open(16 * MIB, budgetOf()), bytes);
    spool.drop();
    expect(budget.usedBytes).toBe(0);
    expect(spool.totals()).toMatchObject({ totalBytes: 8_000_000, headBytes: 0, truncated: true });
    expect(() => assertKept(spool.read(5, 10), 5)).toThrow('not kept');
  });

  test('followers are woken by bytes and by the end', async () => {
    const spool = open(MIB);
    const first = spool.waitBeyond(0);
    spool.push(Buffer.from('x'));
    spool.flush();
    await first;
    const second = spool.waitBeyond(1);
    spool.end();
    await second;
    const stop = new AbortController();
    const never = open(MIB).waitBeyond(99, stop.signal);
    stop.abort();
    await expect(never).rejects.toMatchObject({ code: 'cancelled' });
  });

  test.each([
    ['cut off in its header', (path: string) => truncateSync(path, 20)],
    ['of somebody else', (path: string) => writeFileSync(path, 'x'.repeat(100))],
  ])('a file that is %s is begun anew', (_, harm) => {
    const spool = open(MIB);
    spool.push(Buffer.from('x'));
    spool.flush();
    const path = join(root, 'sb', 'ex.out');
    expect(readFileSync(path).length).toBe(33);
    harm(path);
    const again = open(MIB);
    expect(again.totalBytes).toBe(0);
    again.push(Buffer.from('anew'));
    again.flush();
    expect(textAt(again, 0)).toBe('anew');
  });
});

function textAt(spool: Spool, offset: number): string {
  return Buffer.from(spool.read(offset, 100).data).toString();
}

function patternOf(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at + 4 <= length; at += 4) bytes.writeUInt32LE(at, at);
  return bytes;
}

/** Everything that the totals say is kept is what was written. */
function checkKept(spool: Spool, bytes: Buffer): void {
  const { headBytes, tailOffset, totalBytes } = spool.totals();
  for (const [from, upTo] of [
    [0, headBytes],
    [tailOffset, totalBytes],
  ] as const) {
    for (let at = from; at < upTo; ) {
      const piece = spool.read(at, upTo - at);
      expect(piece.offset).toBe(at);
      const same = Buffer.compare(bytes.subarray(at, at + piece.data.byteLength), piece.data) === 0;
      expect(same, `bytes at ${at}`).toBe(true);
      at += piece.data.byteLength;
    }
  }
}
