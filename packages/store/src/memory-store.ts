import { type Clock, systemClock } from '@dsec/std';
import type { MemoryContext } from './memory-context.ts';
import { createMemoryKeys } from './memory-keys.ts';
import { createMemoryLogs } from './memory-logs.ts';
import { createMemoryQueues } from './memory-queues.ts';
import { storeClosed } from './refusals.ts';
import type { Store } from './store.ts';
import { createWaiters } from './waiters.ts';

export interface MemoryStoreOptions {
  readonly clock?: Clock;
  /** Deletions remembered for watchers. */
  readonly tombstonesMax?: number;
  /** Watches, and reads and leases that wait. */
  readonly waitersMax?: number;
}

/**
 * A store that lives and dies with this process: for tests, the simulator, and state that need not
 * outlive it.
 */
export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  const { clock = systemClock, tombstonesMax = 4096, waitersMax = 4096 } = options;
  const waiters = createWaiters({ clock, waitersMax });
  let revision = 0;
  let open = true;
  const context: MemoryContext = {
    clock,
    waiters,
    get revision() {
      return revision;
    },
    nextRevision() {
      revision += 1;
      return revision;
    },
    nowMs: () => clock.monotonicMs(),
    assertOpen() {
      if (!open) throw storeClosed();
    },
  };
  return {
    keys: createMemoryKeys(context, tombstonesMax),
    logs: createMemoryLogs(context),
    queues: createMemoryQueues(context),
    async close() {
      open = false;
      waiters.close();
    },
  };
}
