import {
  checkName,
  checkPosition,
  checkQueueLimits,
  checkValue,
  checkWait,
  pageLimit,
} from './checks.ts';
import type { MemoryContext } from './memory-context.ts';
import { leaseLost, queueFull, queueUnknown } from './refusals.ts';
import {
  type DeadLetter,
  type Lease,
  type LeasedItem,
  PAGE_BYTES_MAX,
  type QueueLimits,
  type QueueStore,
} from './store.ts';
import { lookAndWait } from './waiters.ts';

interface Item {
  readonly sequence: number;
  readonly value: Uint8Array;
  deliveries: number;
  token: string | undefined;
  /** When it can be leased: now, after a delay, or when its lease ends. */
  availableAtMs: number;
}

interface Queue {
  limits: QueueLimits;
  /** Can be leased, in order of having become so. */
  readonly ready: Map<number, Item>;
  /** Leased or delayed. */
  readonly held: Map<number, Item>;
  /** No held item becomes ready before this. */
  nextDueMs: number;
  /** By age of death. */
  readonly dead: Map<number, DeadLetter>;
  deadDropped: number;
}

type Queues = Map<string, Queue>;

const topicOf = (name: string) => `queue:${name}`;

export function createMemoryQueues(context: MemoryContext): QueueStore {
  const queues: Queues = new Map();
  return {
    ...queueDefinitions(queues, context),
    ...queueDelivery(queues, context),
    ...leaseEndings(queues, context),
    async dead(name, options) {
      const after = options?.after ?? 0;
      checkPosition('after', after);
      const limit = pageLimit(options?.limit);
      return deadPage(find(queues, context, name), after, limit);
    },
    async discard(name, sequence) {
      checkPosition('sequence', sequence);
      find(queues, context, name).dead.delete(sequence);
    },
    async stats(name) {
      const { ready, held, dead, deadDropped } = find(queues, context, name);
      const leased = [...held.values()].filter((item) => item.token !== undefined).length;
      return { depth: ready.size + held.size, leased, dead: dead.size, deadDropped };
    },
  };
}

function queueDefinitions(
  queues: Queues,
  context: MemoryContext,
): Pick<QueueStore, 'define' | 'remove'> {
  return {
    async define(name, limits) {
      checkName(name, 'queue');
      checkQueueLimits(limits);
      context.assertOpen();
      const queue = queues.get(name);
      if (queue !== undefined) queue.limits = { ...limits };
      else queues.set(name, newQueue(limits));
    },
    async remove(name) {
      checkName(name, 'queue');
      context.assertOpen();
      queues.delete(name);
      context.waiters.wake(topicOf(name));
    },
  };
}

function queueDelivery(
  queues: Queues,
  context: MemoryContext,
): Pick<QueueStore, 'enqueue' | 'lease'> {
  return {
    async enqueue(name, value) {
      checkValue(value);
      const { ready, held, limits } = find(queues, context, name);
      if (ready.size + held.size >= limits.depthMax) throw queueFull(name, limits.depthMax);
      const sequence = context.nextRevision();
      const fresh = { deliveries: 0, token: undefined, availableAtMs: context.nowMs() };
      ready.set(sequence, { sequence, value: value.slice(), ...fresh });
      context.waiters.wake(topicOf(name));
      return sequence;
    },
    async lease(name, options) {
      checkWait('waitMs', options?.waitMs);
      const max = options?.max === undefined ? 1 : pageLimit(options.max);
      const { waitMs = 0, signal } = options ?? {};
      const how = { topic: topicOf(name), waitMs, signal };
      return lookAndWait(context.waiters, context.clock, how, async () => {
        const queue = find(queues, context, name);
        const found = signal?.aborted ? [] : leaseReady(name, queue, context, max);
        return { found, dueInMs: queue.nextDueMs - context.nowMs() };
      });
    },
  };
}

function leaseEndings(
  queues: Queues,
  context: MemoryContext,
): Pick<QueueStore, 'ack' | 'nack' | 'extend'> {
  const findLeased = (lease: Lease) => {
    checkPosition('sequence', lease.sequence);
    const queue = find(queues, context, lease.queue);
    const item = queue.held.get(lease.sequence);
    if (item === undefined || item.token !== lease.token) {
      throw leaseLost(lease.queue, lease.sequence);
    }
    return { queue, item };
  };
  return {
    async ack(lease) {
      findLeased(lease).queue.held.delete(lease.sequence);
    },
    async nack(lease, options) {
      checkWait('delayMs', options?.delayMs);
      const { queue, item } = findLeased(lease);
      if (item.deliveries >= queue.limits.deliveriesMax) return bury(queue, item);
      item.token = undefined;
      hold(queue, item, context.nowMs() + (options?.delayMs ?? 0));
      moveDue(queue, context.nowMs());
      context.waiters.wake(topicOf(lease.queue));
    },
    async extend(lease) {
      const { queue, item } = findLeased(lease);
      hold(queue, item, context.nowMs() + queue.limits.leaseMs);
    },
  };
}

function find(queues: Queues, context: MemoryContext, name: string): Queue {
  checkName(name, 'queue');
  context.assertOpen();
  const queue = queues.get(name);
  if (queue === undefined) throw queueUnknown(name);
  moveDue(queue, context.nowMs());
  return queue;
}

function newQueue(limits: QueueLimits): Queue {
  return {
    limits: { ...limits },
    ready: new Map(),
    held: new Map(),
    nextDueMs: Number.POSITIVE_INFINITY,
    dead: new Map(),
    deadDropped: 0,
  };
}

/** The item is out of reach until then. */
function hold(queue: Queue, item: Item, untilMs: number): void {
  item.availableAtMs = untilMs;
  queue.held.set(item.sequence, item);
  queue.nextDueMs = Math.min(queue.nextDueMs, untilMs);
}

/** Items whose lease or delay has ended become ready, or dead when they have been delivered often enough. */
function moveDue(queue: Queue, nowMs: number): void {
  if (queue.nextDueMs > nowMs) return;
  const due = [...queue.held.values()].filter((item) => item.availableAtMs <= nowMs);
  due.sort((a, b) => a.availableAtMs - b.availableAtMs || a.sequence - b.sequence);
  for (const item of due) {
    if (item.token !== undefined && item.deliveries >= queue.limits.deliveriesMax) {
      bury(queue, item);
      continue;
    }
    queue.held.delete(item.sequence);
    item.token = undefined;
    queue.ready.set(item.sequence, item);
  }
  queue.nextDueMs = Number.POSITIVE_INFINITY;
  for (const item of queue.held.values()) {
    queue.nextDueMs = Math.min(queue.nextDueMs, item.availableAtMs);
  }
}

function bury(queue: Queue, item: Item): void {
  queue.held.delete(item.sequence);
  const { sequence, value, deliveries } = item;
  queue.dead.set(sequence, { sequence, value, deliveries });
  for (const oldest of queue.dead.keys()) {
    if (queue.dead.size <= queue.limits.deadMax) break;
    queue.dead.delete(oldest);
    queue.deadDropped += 1;
  }
}

function leaseReady(
  name: string,
  queue: Queue,
  context: MemoryContext,
  max: number,
): readonly LeasedItem[] {
  const leased: LeasedItem[] = [];
  let bytes = 0;
  for (const item of queue.ready.values()) {
    bytes += item.value.byteLength;
    if (leased.length > 0 && (leased.length === max || bytes > PAGE_BYTES_MAX)) break;
    const token = String(context.nextRevision());
    item.deliveries += 1;
    item.token = token;
    queue.ready.delete(item.sequence);
    hold(queue, item, context.nowMs() + queue.limits.leaseMs);
    const { sequence, deliveries } = item;
    leased.push({ queue: name, sequence, token, value: item.value.slice(), delivery: deliveries });
  }
  return leased;
}

function deadPage(queue: Queue, after: number, limit: number): readonly DeadLetter[] {
  const letters = [...queue.dead.values()].filter((letter) => letter.sequence > after);
  letters.sort((a, b) => a.sequence - b.sequence);
  const page: DeadLetter[] = [];
  let bytes = 0;
  for (const letter of letters.slice(0, limit)) {
    bytes += letter.value.byteLength;
    if (page.length > 0 && bytes > PAGE_BYTES_MAX) break;
    page.push({ ...letter, value: letter.value.slice() });
  }
  return page;
}
