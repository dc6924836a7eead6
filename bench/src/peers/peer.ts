import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { attach, mountOverlay, umount } from '@dsec/linux';
import type { LifeTimes } from '../lives.ts';

/** Another program that runs commands in containers. */
export interface Peer {
  readonly program: string;
  /** From nothing to the exit of a first command, and back to nothing. */
  live(): Promise<LifeTimes>;
  /** Until a first command has come back; resolves with what removes it. Absent where nothing stays. */
  start?(): Promise<() => Promise<void>>;
  trueMs(count: number): Promise<readonly number[]>;
}

export interface PeerWorld {
  /** Where the base is mounted. */
  readonly base: string;
  /** A directory in memory, for what each life needs. */
  readonly lives: string;
  readonly cgroupName: string;
  /** Where programs complain. */
  readonly logFd: number;
  logText(): string;
}

/** Looks where administrators' programs are, too. */
export function findProgram(name: string): string | undefined {
  const directories = [
    ...(process.env.PATH ?? '').split(delimiter),
    '/usr/sbin',
    '/usr/local/sbin',
  ];
  return directories.map((directory) => join(directory, name)).find((path) => existsSync(path));
}

/** An overlay of the base with an upper in memory: what the launcher makes for each of our sandboxes. */
export function openRoot({ base, lives }: PeerWorld, id: string) {
  const directory = join(lives, id);
  const path = (name: string) => join(directory, name);
  for (const name of ['', 'upper', 'work', 'rootfs']) mkdirSync(path(name));
  const mount = mountOverlay({
    ...{ form: 'path', lower: [base], upper: path('upper'), work: path('work') },
  });
  attach(mount, path('rootfs'));
  mount.close();
  return {
    ...{ directory, rootfs: path('rootfs') },
    remove() {
      umount(path('rootfs'), { detach: true });
      rmSync(directory, { recursive: true });
    },
  };
}

/** Runs a program to its end; what it left running holds nothing of ours. */
export function run({ logFd, logText }: PeerWorld, program: string, args: readonly string[]) {
  return new Promise<void>((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', logFd] });
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${program} ${args.join(' ')}: ${code ?? signal}\n${logText()}`));
    });
  });
}
