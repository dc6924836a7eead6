import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { expect, it } from 'vitest';
import {
  openPidfd,
  prctl,
  readResourceLimit,
  setResourceLimit,
  signalPidfd,
} from '../src/process-control.ts';

it('signals exactly one process and knows when it is gone', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const pidfd = openPidfd(child.pid ?? 0);
  expect(signalPidfd(pidfd, 0)).toBe(true);
  expect(signalPidfd(pidfd, 'SIGTERM')).toBe(true);
  const [, signal] = await once(child, 'exit');
  expect(signal).toBe('SIGTERM');
  expect(signalPidfd(pidfd, 'SIGKILL')).toBe(false);
  closeSync(pidfd);
});

it('says so when there is no such process', () => {
  expect(() => openPidfd(0x7fff_fffe)).toThrowError(expect.objectContaining({ code: 'not-found' }));
  expect(() => signalPidfd(-1, 0)).toThrowError(expect.objectContaining({ code: 'internal' }));
});

it('reads and sets limits of another process', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  await once(child, 'spawn');
  setResourceLimit('nofile', { soft: 64, hard: 128 }, child.pid);
  expect(readResourceLimit('nofile', child.pid)).toEqual({ soft: 64, hard: 128 });
  setResourceLimit('core', { soft: 0, hard: Number.POSITIVE_INFINITY }, child.pid);
  expect(readResourceLimit('core', child.pid).soft).toBe(0);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(readResourceLimit('nofile').soft).toBeGreaterThan(0);
});

it('calls prctl', () => {
  const PR_GET_DUMPABLE = 3;
  expect(prctl(PR_GET_DUMPABLE)).toBe(1);
  expect(() => prctl(0x7fff_0000)).toThrowError(
    expect.objectContaining({ code: 'invalid-argument' }),
  );
});
