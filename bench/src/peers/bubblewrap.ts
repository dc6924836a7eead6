import { openRoot, type Peer, type PeerWorld, run } from './peer.ts';

/**
 * Bubblewrap runs one command in a container that ends with it: no id to come back to, no cgroup, no limits,
 * and here no filter of system calls either.
 */
export function createBubblewrap(program: string, world: PeerWorld): Peer {
  let lives = 0;
  return {
    program,
    async live() {
      lives += 1;
      const started = performance.now();
      const root = openRoot(world, `bwrap-${lives}`);
      const isolation = ['--unshare-all', '--die-with-parent', '--cap-drop', 'ALL'];
      const mounts = ['--bind', root.rootfs, '/', '--proc', '/proc', '--dev', '/dev'];
      await run(world, program, [...isolation, ...mounts, '/bin/true']);
      const firstCommandMs = performance.now() - started;
      root.remove();
      return { firstCommandMs, stopMs: performance.now() - started - firstCommandMs };
    },
    trueMs: async () => [],
  };
}
