/**
 * What a kernel has only so many of for all (THREATS C1): one sandbox takes all that it gets, and another
 * can still be made, does its work, and has its share of the same kind.
 */
import { expect } from 'vitest';
import { withBox } from './rows.ts';
import type { SecurityWorld } from './security-world.ts';
import { countOf, holdPlain } from './unprotected.ts';

export interface Pool {
  readonly kind: string;
  /** What one process of a sandbox gets at most; 0: nothing at all. */
  readonly each: number;
  /** Taken without protections; by default `WITHOUT_LIMIT`. */
  readonly control?: number;
  /** That one process asks for; by default `MANY`. */
  readonly most?: number;
}

/** So many processes of the sandbox take at once. */
const PROCESSES = 6;
const WITHOUT_LIMIT = 40;
const MANY = 20_000;

export const POOLS: readonly Pool[] = [
  { kind: 'aio', each: 0 },
  { kind: 'keys', each: 0 },
  { kind: 'terminals', each: 32 },
  { kind: 'inotify', each: MANY },
  { kind: 'watches', each: MANY },
  { kind: 'files', each: 512 },
  { kind: 'shm', each: MANY },
  { kind: 'semaphores', each: MANY },
  { kind: 'messages', each: MANY },
  { kind: 'queues', each: MANY, control: 6 },
  { kind: 'pipes', each: 512 },
  { kind: 'sockets', each: 512 },
  { kind: 'timers', each: 4096 },
  { kind: 'epoll', each: 512 },
  { kind: 'locks', each: 4000, most: 4000 },
  { kind: 'signals', each: 4096 },
  { kind: 'locked-memory', each: 1, control: 4 },
  { kind: 'memory-files', each: 512 },
];

export async function expectPoolShared(world: SecurityWorld, pool: Pool): Promise<void> {
  const { kind, each } = pool;
  const control = await holdPlain('pool', kind, `${pool.control ?? WITHOUT_LIMIT}`);
  await control.release();
  expect(countOf(control.output, 'end-of-pool'), 'without limit').toBe(0);
  await withBox(world, async (greedy) => {
    const taken = await Promise.all(
      Array.from({ length: PROCESSES }, async () => {
        const words = ['/bin/probe', 'pool', kind, `${pool.most ?? MANY}`];
        const exec = await greedy.start(words, 'held', { stdin: true }).catch(() => undefined);
        return exec === undefined ? 0 : countOf(await greedy.output(exec), 'taken');
      }),
    );
    expect(Math.max(...taken), 'by one process').toBeLessThanOrEqual(each);
    await withBox(world, async (other) => {
      const more = await other.start(['/bin/probe', 'pool', kind, '1'], 'held', { stdin: true });
      expect(countOf(await other.output(more), 'taken')).toBe(each === 0 ? 0 : 1);
      expect((await other.run('echo works')).stdout).toBe('works\n');
    });
  });
}
