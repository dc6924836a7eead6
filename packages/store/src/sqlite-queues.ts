import type { Clock } from '@dsec/std';
import {
  checkName,
  checkPosition,
  checkQueueLimits,
  checkValue,
  checkWait,
  pageLimit,
} from './checks.ts';
import { leaseLost, queueFull, queueUnknown } from './refusals.ts';
import { bytesOf, type Sqlite } from './sqlite-database.ts';
import type { Transactor, WriteScope } from './sqlite-transactor.ts';
import { type Lease, type LeasedItem, PAGE_BYTES_MAX, type QueueStore } from './store.ts';
import { lookAndWait, type Waiters } from './waiters.ts';

/** Items removed in one transaction, so that dropping a long queue does not hold up other writers. */
const REMOVALS_PER_WRITE = 1000;

const topicOf = (queue: string) => `queue:${queue}`;

interface QueueRow {
  readonly name: string;
  readonly lease_ms: number;
  readonly deliveries_max: number;
  readonly depth_max: number;
  readonly dead_max: number;
  readonly depth: number;
  readonly dead_dropped: number;
}

interface QueueItemRow {
  readonly sequence: number;
  readonly deliveries: number;
  readonly value: Buffer;
}

type QueueSql = ReturnType<typeof prepareQueueStatements>;

/** A write to one queue, once items that can no longer be leased have become dead letters. */
type QueueWrite = <T>(
  name: string,
  operation: (queue: QueueRow, scope: WriteScope) => T,
  bytes?: number,
) => Promise<T>;

export function createSqliteQueues(
  db: Sqlite,
  transactor: Transactor,
  waiters: Waiters,
  clock: Clock,
): QueueStore {
  const sql = prepareQueueStatements(db);
  const write: QueueWrite = async (name, operation, bytes) => {
    checkName(name, 'queue');
    return transactor.write((scope) => {
      buryDue(sql, findQueue(sql, name), scope);
      return operation(findQueue(sql, name), scope);
    }, bytes);
  };
  return {
    ...queueDefinitions(sql, transactor),
    ...queueDelivery(sql, write, waiters, clock, transactor),
    ...leaseEndings(sql, write),
    ...deadLetters(sql, write),
    async stats(name) {
      return write(name, ({ depth, dead_dropped }, { nowMs }) => ({
        depth,
        leased: sql.countLeased.get(name, nowMs) ?? 0,
        dead: sql.countDead.get(name) ?? 0,
        deadDropped: dead_dropped,
      }));
    },
  };
}

function queueDefinitions(
  sql: QueueSql,
  transactor: Transactor,
): Pick<QueueStore, 'define' | 'remove'> {
  return {
    async define(name, limits) {
      checkName(name, 'queue');
      checkQueueLimits(limits);
      const { leaseMs, deliveriesMax, depthMax, deadMax } = limits;
      await transactor.write(() => {
        sql.define.run(name, leaseMs, deliveriesMax, depthMax, deadMax);
      });
    },
    async remove(name) {
      checkName(name, 'queue');
      const removeSome = () =>
        transactor.write((scope) => {
          sql.forgetQueue.run(name);
          scope.touch(topicOf(name));
          const doomed = sql.anyItems.all(name, REMOVALS_PER_WRITE);
          for (const sequence of doomed) forgetItem(sql, sequence);
          return doomed.length;
        });
      while ((await removeSome()) === REMOVALS_PER_WRITE);
    },
  };
}

function queueDelivery(
  sql: QueueSql,
  write: QueueWrite,
  waiters: Waiters,
  clock: Clock,
  transactor: Transactor,
): Pick<QueueStore, 'enqueue' | 'lease'> {
  /** Milliseconds until an item can be leased; 0 if one can be now. */
  const dueInMs = (name: string) =>
    transactor.read((nowMs) => {
      const availableAtMs = sql.nextAvailable.get(findQueue(sql, name).name);
      return availableAtMs == null ? Number.POSITIVE_INFINITY : Math.max(0, availableAtMs - nowMs);
    });
  return {
    async enqueue(name, value) {
      checkValue(value);
      const copy = value.slice();
      const add = (queue: QueueRow, scope: WriteScope) => {
        if (queue.depth >= queue.depth_max) throw queueFull(name, queue.depth_max);
        const sequence = scope.nextRevision();
        sql.addItem.run(sequence, name, scope.nowMs);
        sql.addValue.run(sequence, copy);
        sql.addDepth.run(1, name);
        scope.touch(topicOf(name));
        return sequence;
      };
      return write(name, add, copy.byteLength);
    },
    async lease(name, options) {
      checkName(name, 'queue');
      checkWait('waitMs', options?.waitMs);
      const max = options?.max === undefined ? 1 : pageLimit(options.max);
      const { waitMs = 0, signal } = options ?? {};
      return lookAndWait(waiters, clock, { topic: topicOf(name), waitMs, signal }, async () => {
        const inMs = await dueInMs(name);
        if (inMs > 0 || signal?.aborted) return { found: [], dueInMs: inMs };
        const found = await write(name, (queue, scope) => leaseDue(sql, queue, scope, max));
        return { found, dueInMs: found.length > 0 ? 0 : await dueInMs(name) };
      });
    },
  };
}

function leaseEndings(
  sql: QueueSql,
  write: QueueWrite,
): Pick<QueueStore, 'ack' | 'nack' | 'extend'> {
  const end = async (
    { queue: name, sequence, token }: Lease,
    operation: (queue: QueueRow, deliveries: number, scope: WriteScope) => void,
  ) => {
    checkPosition('sequence', sequence);
    return write(name, (queue, scope) => {
      const deliveries = sql.leased.get(sequence, name, token, scope.nowMs);
      if (deliveries === undefined) throw leaseLost(name, sequence);
      operation(queue, deliveries, scope);
    });
  };
  return {
    ack: (lease) =>
      end(lease, () => {
        forgetItem(sql, lease.sequence);
        sql.addDepth.run(-1, lease.queue);
      }),
    async nack(lease, options) {
      checkWait('delayMs', options?.delayMs);
      await end(lease, (queue, deliveries, scope) => {
        if (deliveries >= queue.deliveries_max) return bury(sql, queue, lease.sequence, scope);
        sql.giveBack.run(scope.nowMs + (options?.delayMs ?? 0), lease.sequence);
        scope.touch(topicOf(lease.queue));
      });
    },
    extend: (lease) =>
      end(lease, (queue, _deliveries, scope) => {
        sql.extend.run(scope.nowMs + queue.lease_ms, lease.sequence);
      }),
  };
}

function deadLetters(sql: QueueSql, write: QueueWrite): Pick<QueueStore, 'dead' | 'discard'> {
  return {
    async dead(name, options) {
      const after = options?.after ?? 0;
      checkPosition('after', after);
      const limit = pageLimit(options?.limit);
      return write(name, () =>
        fillPage(sql.dead.iterate(name, after, limit), ({ sequence, deliveries }, value) => ({
          sequence,
          value,
          deliveries,
        })),
      );
    },
    async discard(name, sequence) {
      checkPosition('sequence', sequence);
      await write(name, () => {
        if (sql.removeDead.run(sequence, name).changes > 0) sql.removeValue.run(sequence);
      });
    },
  };
}

function findQueue(sql: QueueSql, name: string): QueueRow {
  const queue = sql.queue.get(name);
  if (queue === undefined) throw queueUnknown(name);
  return queue;
}

function forgetItem(sql: QueueSql, sequence: number): void {
  sql.removeItem.run(sequence);
  sql.removeValue.run(sequence);
}

/** Buries the items that were delivered often enough and whose last lease has ended. */
function buryDue(sql: QueueSql, queue: QueueRow, scope: WriteScope): void {
  for (const sequence of sql.exhausted.all(queue.name, scope.nowMs, queue.deliveries_max)) {
    bury(sql, queue, sequence, scope);
  }
}

function bury(sql: QueueSql, queue: QueueRow, sequence: number, scope: WriteScope): void {
  sql.bury.run(scope.nowMs, sequence);
  sql.addDepth.run(-1, queue.name);
  const dropped = sql.spareDead.all(queue.name, queue.dead_max);
  for (const doomed of dropped) forgetItem(sql, doomed);
  if (dropped.length > 0) sql.addDropped.run(dropped.length, queue.name);
}

function leaseDue(
  sql: QueueSql,
  queue: QueueRow,
  scope: WriteScope,
  max: number,
): readonly LeasedItem[] {
  const found = fillPage(sql.due.iterate(queue.name, scope.nowMs, max), (row, value) => ({
    ...row,
    value,
  }));
  return found.map(({ sequence, value, deliveries }) => {
    const token = String(scope.nextRevision());
    sql.lease.run(scope.nowMs + queue.lease_ms, token, sequence);
    return { queue: queue.name, sequence, token, value, delivery: deliveries + 1 };
  });
}

function fillPage<Row extends { readonly value: Buffer }, T>(
  rows: Iterable<Row>,
  make: (row: Row, value: Uint8Array) => T,
): readonly T[] {
  const page: T[] = [];
  let bytes = 0;
  for (const row of rows) {
    bytes += row.value.byteLength;
    if (page.length > 0 && bytes > PAGE_BYTES_MAX) break;
    page.push(make(row, bytesOf(row.value)));
  }
  return page;
}

function prepareQueueStatements(db: Sqlite) {
  return { ...queueStatements(db), ...itemStatements(db), ...deadLetterStatements(db) };
}

function queueStatements(db: Sqlite) {
  return {
    queue: db.prepare<[string], QueueRow>('SELECT * FROM queues WHERE name = ?'),
    define: db.prepare(
      `INSERT INTO queues (name, lease_ms, deliveries_max, depth_max, dead_max, depth, dead_dropped)
       VALUES (?, ?, ?, ?, ?, 0, 0)
       ON CONFLICT (name) DO UPDATE SET lease_ms = excluded.lease_ms,
         deliveries_max = excluded.deliveries_max, depth_max = excluded.depth_max,
         dead_max = excluded.dead_max`,
    ),
    addDepth: db.prepare('UPDATE queues SET depth = depth + ? WHERE name = ?'),
    addDropped: db.prepare('UPDATE queues SET dead_dropped = dead_dropped + ? WHERE name = ?'),
    forgetQueue: db.prepare('DELETE FROM queues WHERE name = ?'),
    anyItems: db
      .prepare<[string, number], number>('SELECT sequence FROM queue_items WHERE queue = ? LIMIT ?')
      .pluck(),
  };
}

function itemStatements(db: Sqlite) {
  return {
    addItem: db.prepare(
      `INSERT INTO queue_items (sequence, queue, dead, available_at_ms, deliveries, token)
       VALUES (?, ?, 0, ?, 0, NULL)`,
    ),
    addValue: db.prepare('INSERT INTO queue_values (sequence, value) VALUES (?, ?)'),
    removeItem: db.prepare('DELETE FROM queue_items WHERE sequence = ?'),
    removeValue: db.prepare('DELETE FROM queue_values WHERE sequence = ?'),
    nextAvailable: db
      .prepare<[string], number | null>(
        'SELECT min(available_at_ms) FROM queue_items WHERE queue = ? AND dead = 0',
      )
      .pluck(),
    due: db.prepare<[string, number, number], QueueItemRow>(
      `SELECT sequence, deliveries, value FROM queue_items JOIN queue_values USING (sequence)
       WHERE queue = ? AND dead = 0 AND available_at_ms <= ?
       ORDER BY available_at_ms, sequence LIMIT ?`,
    ),
    lease: db.prepare(
      `UPDATE queue_items SET available_at_ms = ?, token = ?, deliveries = deliveries + 1
       WHERE sequence = ?`,
    ),
    /** Deliveries of an item that this lease still holds. */
    leased: db
      .prepare<[number, string, string, number], number>(
        `SELECT deliveries FROM queue_items
         WHERE sequence = ? AND queue = ? AND dead = 0 AND token = ? AND available_at_ms > ?`,
      )
      .pluck(),
    giveBack: db.prepare(
      'UPDATE queue_items SET available_at_ms = ?, token = NULL WHERE sequence = ?',
    ),
    extend: db.prepare('UPDATE queue_items SET available_at_ms = ? WHERE sequence = ?'),
    countLeased: db
      .prepare<[string, number], number>(
        `SELECT count(*) FROM queue_items
         WHERE queue = ? AND token IS NOT NULL AND available_at_ms > ?`,
      )
      .pluck(),
  };
}

function deadLetterStatements(db: Sqlite) {
  return {
    exhausted: db
      .prepare<[string, number, number], number>(
        `SELECT sequence FROM queue_items
         WHERE queue = ? AND token IS NOT NULL AND available_at_ms <= ? AND deliveries >= ?
         ORDER BY available_at_ms, sequence`,
      )
      .pluck(),
    bury: db.prepare(
      'UPDATE queue_items SET dead = 1, available_at_ms = ?, token = NULL WHERE sequence = ?',
    ),
    spareDead: db
      .prepare<[string, number], number>(
        `SELECT sequence FROM queue_items WHERE queue = ? AND dead = 1
         ORDER BY available_at_ms DESC, sequence DESC LIMIT -1 OFFSET ?`,
      )
      .pluck(),
    dead: db.prepare<[string, number, number], QueueItemRow>(
      `SELECT sequence, deliveries, value FROM queue_items JOIN queue_values USING (sequence)
       WHERE queue = ? AND dead = 1 AND sequence > ? ORDER BY sequence LIMIT ?`,
    ),
    removeDead: db.prepare('DELETE FROM queue_items WHERE sequence = ? AND queue = ? AND dead = 1'),
    countDead: db
      .prepare<[string], number>('SELECT count(*) FROM queue_items WHERE queue = ? AND dead = 1')
      .pluck(),
  };
}
