/** What the lab's tests share. They run as root in the guest of `tools/lab`, which is thrown away after. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach } from 'vitest';

export const inGuest = process.env.DSEC_LAB === '1';

/** Linux 6.12 is what the lab is for; a distribution without it brings a newer one. */
export const isLinux612 = /^6\.12\./.test(release());

/** Skips the tests of a file everywhere but in the guest: they change the machine that they run on. */
export function onlyInGuest(): void {
  beforeEach((context) => {
    context.skip(!inGuest, 'runs in the lab guest only: node tools/lab/run.mjs --suite');
  });
}

/** A new directory on the guest's disk (ext4). */
export function newDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'dsec-lab-'));
}

export interface Ran {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a shell script with arguments `$1`, `$2`, … */
export function shell(script: string, ...args: readonly string[]): Ran {
  const { status, ...result } = spawnSync('/bin/sh', ['-c', script, 'sh', ...args], {
    encoding: 'utf8',
  });
  return { code: status, signal: result.signal, stdout: result.stdout, stderr: result.stderr };
}
