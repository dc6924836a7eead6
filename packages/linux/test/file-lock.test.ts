import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createManualClock } from '@dsec/std';
import { expect, it } from 'vitest';
import { lockFile, tryLockFile, unlockFile } from '../src/file-lock.ts';
import { scratchDirectory } from './scratch.ts';

const path = join(scratchDirectory(), 'lock');
writeFileSync(path, '');
const openTwo = () => [openSync(path, 'r+'), openSync(path, 'r+')] as const;

it('excludes another open file until it is given up', () => {
  const [a, b] = openTwo();
  expect(tryLockFile(a, 'exclusive')).toBe(true);
  expect(tryLockFile(b, 'exclusive')).toBe(false);
  expect(tryLockFile(b, 'shared')).toBe(false);
  unlockFile(a);
  expect(tryLockFile(b, 'shared')).toBe(true);
  expect(tryLockFile(a, 'shared')).toBe(true);
  expect(tryLockFile(a, 'exclusive')).toBe(false);
  closeSync(a);
  closeSync(b);
});

it('waits without blocking and takes over when the holder closes', async () => {
  const [a, b] = openTwo();
  tryLockFile(a, 'exclusive');
  const waiting = lockFile(b, 'exclusive', { timeoutMs: 10_000 });
  setTimeout(() => closeSync(a), 20);
  await waiting;
  const c = openSync(path, 'r+');
  expect(tryLockFile(c, 'shared')).toBe(false);
  closeSync(b);
  closeSync(c);
});

it('gives up at its deadline, counted on the clock that it was given', async () => {
  const [a, b] = openTwo();
  tryLockFile(a, 'exclusive');
  const clock = createManualClock();
  const sleeps: number[] = [];
  const ticking = {
    ...clock,
    sleep: async (ms: number) => {
      sleeps.push(ms);
      clock.advance(ms);
    },
  };
  await expect(lockFile(b, 'exclusive', { timeoutMs: 300, clock: ticking })).rejects.toMatchObject({
    code: 'deadline-exceeded',
  });
  expect(sleeps).toEqual([2, 4, 8, 16, 32, 64, 100, 74]);
  closeSync(a);
  closeSync(b);
});

it('stops when its caller gives up', async () => {
  const [a, b] = openTwo();
  tryLockFile(a, 'exclusive');
  const abort = new AbortController();
  const waiting = lockFile(b, 'shared', { timeoutMs: 10_000, signal: abort.signal });
  abort.abort(new Error('gave up'));
  await expect(waiting).rejects.toThrow('gave up');
  closeSync(a);
  closeSync(b);
});
