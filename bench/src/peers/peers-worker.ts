/** Other ways to run a command in a container, driven from Node as ours are, on the same base. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attach, mountClassic, mountErofs, umount } from '@dsec/linux';
import { cgroupMounts, cgroupsNamed, removeCgroups } from '../cgroups.ts';
import {
  type BurstResult,
  type LifeTimes,
  type LivesResult,
  runBurst,
  runLives,
} from '../lives.ts';
import { createBubblewrap } from './bubblewrap.ts';
import { createOciRuntime } from './oci-runtime.ts';
import { findProgram, type Peer, type PeerWorld } from './peer.ts';

export interface PeersWorkerOptions {
  readonly metaPath: string;
  readonly devices: readonly string[];
  /** Of the peers' containers, in the hierarchies that have limits. */
  readonly cgroupName: string;
}

export type PeersCommands = {
  /** What is installed, with its version. */
  describe(): readonly { readonly name: string; readonly version: string }[];
  lives(input: {
    readonly peer: string;
    readonly count: number;
    readonly inFlight: number;
  }): Promise<LivesResult>;
  /** Nothing of a peer whose containers end with their command. */
  burst(input: {
    readonly peer: string;
    readonly count: number;
    readonly inFlight: number;
  }): Promise<BurstResult | undefined>;
  /** Times of `true` in one container that runs. */
  trueMs(input: { readonly peer: string; readonly count: number }): Promise<readonly number[]>;
};

const UPPERS_BYTES = 2 ** 31;

export async function openPeersWorker(options: PeersWorkerOptions, signal: AbortSignal) {
  const scratch = mkdtempSync(join(tmpdir(), 'dsec-peers-'));
  const world = openPeerWorld(scratch, options);
  const peers = new Map<string, Peer>();
  for (const name of ['crun', 'runc'] as const) {
    const program = findProgram(name);
    if (program !== undefined) peers.set(name, createOciRuntime(program, world));
  }
  const bubblewrap = findProgram('bwrap');
  if (bubblewrap !== undefined) peers.set('bubblewrap', createBubblewrap(bubblewrap, world));
  const peerNamed = (name: string) => {
    const peer = peers.get(name);
    if (peer === undefined) throw new Error(`${name} is not installed`);
    return peer;
  };
  const commands: PeersCommands = {
    describe: () => [...peers].map(([name, peer]) => ({ name, version: versionOf(peer.program) })),
    lives: ({ peer, ...input }) => {
      const { live } = peerNamed(peer);
      return runLives(input, (): Promise<LifeTimes> => live(), signal);
    },
    burst: async ({ peer, ...load }) => {
      const { start } = peerNamed(peer);
      return start === undefined ? undefined : runBurst(load, start, signal);
    },
    trueMs: ({ peer, count }) => peerNamed(peer).trueMs(count),
  };
  const close = async () => {
    umount(join(scratch, 'base'));
    umount(join(scratch, 'lives'));
    rmSync(scratch, { recursive: true });
    const inside = cgroupsNamed(options.cgroupName).filter((path) => !isUnified(path));
    if (inside.length > 0) removeCgroups(options.cgroupName);
  };
  return { commands, close };
}

const isUnified = (path: string) =>
  cgroupMounts().some(({ point, version }) => version === 2 && path.startsWith(`${point}/`));

function openPeerWorld(scratch: string, options: PeersWorkerOptions): PeerWorld {
  const base = join(scratch, 'base');
  const lives = join(scratch, 'lives');
  mkdirSync(base);
  mkdirSync(lives);
  const { metaPath, devices } = options;
  const mount = mountErofs({ metaPath, devices });
  attach(mount, base);
  mount.close();
  mountClassic({
    ...{ source: 'tmpfs', target: lives, type: 'tmpfs', data: `size=${UPPERS_BYTES}` },
    flags: ['noDev', 'noSuid'],
  });
  hideHybridCgroups();
  return {
    ...{ base, lives, cgroupName: options.cgroupName },
    logFd: openSync(join(scratch, 'peers.log'), 'a+'),
    logText: () => readFileSync(join(scratch, 'peers.log'), 'utf8').slice(-2048),
  };
}

/** Version 2 beside version 1 is what crun refuses. Our mount namespace alone loses sight of it. */
function hideHybridCgroups(): void {
  const mounts = cgroupMounts();
  if (mounts.every(({ version }) => version === 2)) return;
  for (const { point, version } of mounts) if (version === 2) umount(point, { detach: true });
}

function versionOf(program: string): string {
  return spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout.split('\n')[0] ?? program;
}
