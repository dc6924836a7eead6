import {
  checkAfter,
  checkKeyWrite,
  checkName,
  checkPosition,
  checkPrefix,
  pageLimit,
} from './checks.ts';
import type { MemoryContext } from './memory-context.ts';
import { keyChanged, keyExists } from './refusals.ts';
import { type KeyChange, type KeyEntry, type KeyStore, PAGE_BYTES_MAX } from './store.ts';

interface Row {
  readonly value: Uint8Array;
  readonly revision: number;
  readonly expiresAtMs: number;
}

interface Tombstone {
  readonly revision: number;
  readonly reason: 'deleted' | 'expired';
}

const TOPIC = 'keys';

interface KeyTable {
  readonly tombstonesMax: number;
  readonly rows: Map<string, Row>;
  /** Oldest first. */
  readonly tombstones: Map<string, Tombstone>;
  /** Tombstones up to here are forgotten. */
  compactedThrough: number;
  /** Every change in order of revision. One whose key has changed since is stale: readers skip it. */
  changes: { readonly key: string; readonly revision: number }[];
  /** All keys in order, made when a listing needs it. */
  sorted: string[] | undefined;
  /** No key expires before this. */
  nextExpiryMs: number;
}

export function createMemoryKeys(context: MemoryContext, tombstonesMax: number): KeyStore {
  const table: KeyTable = {
    tombstonesMax,
    rows: new Map(),
    tombstones: new Map(),
    compactedThrough: 0,
    changes: [],
    sorted: undefined,
    nextExpiryMs: Number.POSITIVE_INFINITY,
  };
  const find = (key: string): Row | undefined => {
    context.assertOpen();
    expireDue(table, context);
    return table.rows.get(key);
  };

  return {
    async get(key) {
      checkName(key, 'key');
      const row = find(key);
      return row === undefined ? undefined : entryOf(key, row);
    },
    async create(key, value, options) {
      checkKeyWrite(key, value, options);
      const row = find(key);
      if (row !== undefined) throw keyExists(key, row.revision);
      return store(table, context, key, value, options?.ttlMs);
    },
    async put(key, value, options) {
      checkKeyWrite(key, value, options);
      find(key);
      return store(table, context, key, value, options?.ttlMs);
    },
    async compareAndSet(key, value, revision, options) {
      checkKeyWrite(key, value, options);
      checkPosition('revision', revision);
      const row = find(key);
      if (row?.revision !== revision) throw keyChanged(key, revision, row?.revision);
      return store(table, context, key, value, options?.ttlMs);
    },
    async delete(key, revision) {
      checkName(key, 'key');
      if (revision !== undefined) checkPosition('revision', revision);
      const row = find(key);
      if (revision !== undefined && row?.revision !== revision) {
        throw keyChanged(key, revision, row?.revision);
      }
      if (row !== undefined) bury(table, context, key, 'deleted');
    },
    async list(prefix, options) {
      checkPrefix(prefix);
      checkAfter(options?.after, prefix);
      const limit = pageLimit(options?.limit);
      context.assertOpen();
      expireDue(table, context);
      const page = readPage(table, prefix, options?.after ?? prefix, limit);
      return { ...page, revision: context.revision };
    },
    watch(prefix, { afterRevision, signal }) {
      checkPrefix(prefix);
      checkPosition('afterRevision', afterRevision);
      return watch(table, context, { prefix, afterRevision, signal });
    },
  };
}

function entryOf(key: string, row: Row): KeyEntry {
  return { key, value: row.value.slice(), revision: row.revision };
}

function store(
  table: KeyTable,
  context: MemoryContext,
  key: string,
  value: Uint8Array,
  ttlMs = Number.POSITIVE_INFINITY,
): number {
  const revision = recordChange(table, context, key);
  const expiresAtMs = context.nowMs() + ttlMs;
  if (!table.rows.has(key)) table.sorted = undefined;
  table.rows.set(key, { value: value.slice(), revision, expiresAtMs });
  table.tombstones.delete(key);
  table.nextExpiryMs = Math.min(table.nextExpiryMs, expiresAtMs);
  return revision;
}

function bury(
  table: KeyTable,
  context: MemoryContext,
  key: string,
  reason: Tombstone['reason'],
): void {
  const revision = recordChange(table, context, key);
  table.rows.delete(key);
  table.sorted = undefined;
  table.tombstones.set(key, { revision, reason });
  for (const [oldest, tombstone] of table.tombstones) {
    if (table.tombstones.size <= table.tombstonesMax) break;
    table.tombstones.delete(oldest);
    table.compactedThrough = tombstone.revision;
  }
}

function recordChange(table: KeyTable, context: MemoryContext, key: string): number {
  const revision = context.nextRevision();
  table.changes.push({ key, revision });
  if (table.changes.length > 2 * (table.rows.size + table.tombstones.size) + 16) {
    table.changes = table.changes.filter(
      (change) => change.revision === revision || revisionOf(table, change.key) === change.revision,
    );
  }
  context.waiters.wake(TOPIC);
  return revision;
}

function revisionOf(table: KeyTable, key: string): number | undefined {
  return (table.rows.get(key) ?? table.tombstones.get(key))?.revision;
}

function expireDue(table: KeyTable, context: MemoryContext): void {
  const nowMs = context.nowMs();
  if (table.nextExpiryMs > nowMs) return;
  let nextExpiryMs = Number.POSITIVE_INFINITY;
  for (const [key, row] of table.rows) {
    if (row.expiresAtMs <= nowMs) bury(table, context, key, 'expired');
    else nextExpiryMs = Math.min(nextExpiryMs, row.expiresAtMs);
  }
  table.nextExpiryMs = nextExpiryMs;
}

function readPage(table: KeyTable, prefix: string, after: string, limit: number) {
  table.sorted ??= [...table.rows.keys()].sort();
  const keys = table.sorted;
  const entries: KeyEntry[] = [];
  let bytes = 0;
  for (let i = firstIndex(keys.length, (at) => (keys[at] ?? '') > after); i < keys.length; i += 1) {
    const key = keys[i] ?? '';
    const row = table.rows.get(key);
    if (row === undefined || !key.startsWith(prefix)) break;
    bytes += row.value.byteLength;
    if (entries.length > 0 && (entries.length === limit || bytes > PAGE_BYTES_MAX)) {
      return { entries, next: entries.at(-1)?.key };
    }
    entries.push(entryOf(key, row));
  }
  return { entries, next: undefined };
}

async function* watch(
  table: KeyTable,
  context: MemoryContext,
  from: { prefix: string; afterRevision: number; signal: AbortSignal },
): AsyncGenerator<KeyChange> {
  let position = from.afterRevision;
  while (!from.signal.aborted) {
    context.assertOpen();
    expireDue(table, context);
    const { ticks } = context.waiters;
    if (position < table.compactedThrough) {
      position = context.revision;
      yield { type: 'resync', revision: position };
      continue;
    }
    const change = firstChange(table, position, from.prefix);
    if (change !== undefined) {
      position = change.revision;
      yield change;
      continue;
    }
    position = Math.max(position, context.revision);
    const timeoutMs = table.nextExpiryMs - context.nowMs();
    await context.waiters.wait(TOPIC, { ticks, timeoutMs, signal: from.signal });
  }
}

function firstChange(
  table: KeyTable,
  position: number,
  prefix: string,
): Exclude<KeyChange, { type: 'resync' }> | undefined {
  const { changes } = table;
  const start = firstIndex(changes.length, (at) => (changes[at]?.revision ?? 0) > position);
  for (let i = start; i < changes.length; i += 1) {
    const { key = '', revision = 0 } = changes[i] ?? {};
    if (!key.startsWith(prefix)) continue;
    const row = table.rows.get(key);
    if (row?.revision === revision) return { type: 'put', ...entryOf(key, row) };
    const tombstone = table.tombstones.get(key);
    if (tombstone?.revision === revision) return { type: 'gone', key, ...tombstone };
  }
  return undefined;
}

/** The first of `length` sorted places for which `past` holds. */
function firstIndex(length: number, past: (at: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (past(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
