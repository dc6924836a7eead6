import { KIB, MIB } from '@dsec/std';

/**
 * The seam to durable state that several processes share: who owns a key, what a create request
 * became, what a rollout has done, which model requests wait. An edge's own journal is not behind
 * it. This file is types and prose, and the prose is the specification: `conformance.ts` checks it,
 * and each operation says how NATS JetStream (2.11 or newer) serves it, so that a fleet can change
 * drivers without a change above the seam.
 *
 * Common to every operation:
 * - A write is durable (survives kill -9 and power loss, where the driver is durable at all) before
 *   its promise resolves. Each operation is atomic alone; nothing spans two keys, logs or queues.
 * - It rejects with `invalid-argument` (a name or number outside the grammar), `too-large` (a value
 *   above `VALUE_BYTES_MAX`), `storage-full`, `data-loss` (the driver's own storage is damaged), or
 *   `unavailable` (closed, or not reachable within the driver's stated time). After `unavailable` a
 *   write may or may not have happened: writers that care use `create`, `compareAndSet` or
 *   `expectLast`, and look.
 * - Revisions and sequences are one counter per store: positive, growing, unique, with gaps. They
 *   compare only within one store. (NATS: sequences of a stream; a driver has one stream for keys,
 *   one for logs, one per queue.)
 * - Names of keys, logs and queues are parts joined by `/`; a part is letters, digits, `_`, `=`,
 *   `-` and inner dots. (NATS: `/` becomes the subject separator, a dot is encoded.)
 * - Time (TTL, leases) is the store's own clock, which no step of a wall clock moves. It never acts
 *   early, and at most `LATE_MS_MAX` late.
 */
export interface Store {
  readonly keys: KeyStore;
  readonly logs: LogStore;
  readonly queues: QueueStore;
  /** Finishes writes under way, ends every waiter with `unavailable` and releases what the driver holds. */
  close(): Promise<void>;
}

/**
 * Half of NATS's default message limit, so that headers always fit. Larger things belong in the
 * layer store.
 */
export const VALUE_BYTES_MAX = 512 * KIB;
export const NAME_LENGTH_MAX = 512;
/** Items in one page or batch. */
export const PAGE_ITEMS_MAX = 1000;
/** A page ends early, with at least one item, once its values reach this. */
export const PAGE_BYTES_MAX = 8 * MIB;
export const TTL_MS_MIN = 1000;
export const LATE_MS_MAX = 1000;

export interface KeyEntry {
  readonly key: string;
  readonly value: Uint8Array;
  /** Of the write that stored this value. */
  readonly revision: number;
}

export interface KeyPage {
  /** In byte order of the keys. */
  readonly entries: readonly KeyEntry[];
  /** Pass as `after` to get the next page; `undefined` when this was the last. */
  readonly next: string | undefined;
  /** The store's revision when the page was read. Watch from the first page's to miss nothing. */
  readonly revision: number;
}

export interface KeyWriteOptions {
  /** The key is gone this long after this write; without it, it stays. At least `TTL_MS_MIN`. */
  readonly ttlMs?: number;
  /**
   * Called at most once, before the promise resolves: every reader sees the write and it survives the end of
   * every process, but not yet a loss of power. The promise may still reject. Must not throw. A driver that
   * cannot tell the two apart never calls it. (NATS: never.)
   */
  readonly onCarriedOut?: () => void;
}

export interface KeyReadOptions {
  /**
   * Also tell what a loss of power may still undo, instead of waiting for the disk: for questions whose
   * answer nothing lasting is built on.
   */
  readonly allowUnflushed?: boolean;
}

export type KeyChange =
  | {
      readonly type: 'put';
      readonly key: string;
      readonly value: Uint8Array;
      readonly revision: number;
    }
  | {
      readonly type: 'gone';
      readonly key: string;
      readonly revision: number;
      readonly reason: 'deleted' | 'expired';
    }
  /**
   * Deletions up to `revision` can no longer be told one by one: list again; what follows is newer
   * than `revision`.
   */
  | { readonly type: 'resync'; readonly revision: number };

export interface KeyStore {
  /** The entry, or `undefined`. (NATS: direct get of the subject's last message.) */
  get(key: string, options?: KeyReadOptions): Promise<KeyEntry | undefined>;

  /**
   * Stores a key that must not exist and returns its revision; otherwise `already-exists` with
   * `details.revision`. This is the record that makes a create happen once, whichever apiserver
   * retries it. (NATS: publish with expected last subject sequence 0, or that of a deletion
   * marker.)
   */
  create(key: string, value: Uint8Array, options?: KeyWriteOptions): Promise<number>;

  /** Stores whatever was there before and returns the revision. (NATS: publish.) */
  put(key: string, value: Uint8Array, options?: KeyWriteOptions): Promise<number>;

  /**
   * Replaces a value whose revision is still `revision` and returns the new one; `conflict` if the
   * key has changed or is gone. The TTL is that of this write. (NATS: publish with expected last
   * subject sequence.)
   */
  compareAndSet(
    key: string,
    value: Uint8Array,
    revision: number,
    options?: KeyWriteOptions,
  ): Promise<number>;

  /**
   * Deletes. With `revision`: only that revision, else `conflict`, also when the key is gone.
   * Without: whatever is there, nothing if it is gone. (NATS: deletion marker, with expected last
   * subject sequence.)
   */
  delete(key: string, revision?: number): Promise<void>;

  /**
   * One page of the keys below `prefix` (empty, or ending in `/`). Each page is a consistent read
   * of its own: a key that stays through the whole listing comes exactly once, one that comes or
   * goes meanwhile perhaps. (NATS: an ordered consumer with the last message per subject; its
   * driver sorts, so there a page costs a pass over the prefix.)
   */
  list(
    prefix: string,
    options?: { readonly after?: string; readonly limit?: number },
  ): Promise<KeyPage>;

  /**
   * What happens below `prefix` after `afterRevision`, in order of revision, until the signal
   * aborts (then it ends without an error). It tells states, not history: of several changes of one
   * key that the reader has not taken yet, the newest comes. Nothing is queued for a slow reader,
   * it reads from the store at its own pace; only deletions need memory, the store keeps a bounded
   * number of them, and a reader that is further behind gets `resync` and then goes on. At most a
   * stated number of waiters, then `overloaded`. (NATS: a pull consumer on a stream with one
   * message per subject; deletion markers age out, and the driver compares its position with their
   * age.)
   */
  watch(
    prefix: string,
    options: { readonly afterRevision: number; readonly signal: AbortSignal },
  ): AsyncIterable<KeyChange>;
}

export interface LogEntry {
  readonly sequence: number;
  readonly value: Uint8Array;
}

export interface LogBounds {
  /** The newest entry; 0 for a log that is empty or does not exist. */
  readonly last: number;
  /** The newest entry that was trimmed; 0 if none was. */
  readonly trimmedThrough: number;
}

export interface LogStore {
  /**
   * Adds an entry at the end and returns its sequence. A log begins with its first entry. With
   * `expectLast`, only if the newest entry is that one (0: none), else `conflict` with
   * `details.last`: one writer cannot overtake another, and a repeat after a lost answer cannot add
   * twice. A log is bounded by its owner, who trims it, and by the disk. (NATS: publish to the
   * log's subject, with expected last subject sequence.)
   */
  append(
    log: string,
    value: Uint8Array,
    options?: { readonly expectLast?: number },
  ): Promise<number>;

  /**
   * Entries after sequence `after` (0: from the start), oldest first; none if there are none. With
   * `waitMs`, waits that long for the first one; an aborted signal ends the wait with what is
   * there. A reader who asks for entries that were trimmed gets `output-lost` with `details.after`,
   * from where it can go on: a gap is never silent. (NATS: pull consumer or direct gets on the
   * subject; the driver keeps the trim position in a key.)
   */
  read(
    log: string,
    options: {
      readonly after: number;
      readonly limit?: number;
      readonly waitMs?: number;
      readonly signal?: AbortSignal;
    },
  ): Promise<readonly LogEntry[]>;

  /** (NATS: last message of the subject, and the trim position's key.) */
  bounds(log: string): Promise<LogBounds>;

  /**
   * Removes the entries up to and with sequence `through`, but never the newest, so that
   * `expectLast` keeps its meaning. (NATS: write the trim position, then purge the subject up to
   * it.)
   */
  trim(log: string, through: number): Promise<void>;

  /** Forgets the log and its entries; nothing if there is none. (NATS: purge the subject, delete the key.) */
  remove(log: string): Promise<void>;
}

export interface QueueLimits {
  /** How long an item belongs to whoever leased it. */
  readonly leaseMs: number;
  /** An item that was leased this often and never acknowledged becomes a dead letter. */
  readonly deliveriesMax: number;
  /** Items that wait or are leased; above it `enqueue` rejects with `overloaded`. */
  readonly depthMax: number;
  /** Dead letters kept; beyond it the oldest is dropped and counted. */
  readonly deadMax: number;
}

export interface Lease {
  readonly queue: string;
  readonly sequence: number;
  /** Opaque; belongs to this delivery alone. */
  readonly token: string;
}

export interface LeasedItem extends Lease {
  readonly value: Uint8Array;
  /** 1 for the first delivery. */
  readonly delivery: number;
}

export interface DeadLetter {
  readonly sequence: number;
  readonly value: Uint8Array;
  readonly deliveries: number;
}

export interface QueueStats {
  /** Items that wait or are leased. */
  readonly depth: number;
  readonly leased: number;
  readonly dead: number;
  /** Dead letters lost to `deadMax` since the queue was defined. */
  readonly deadDropped: number;
}

/**
 * Work queues. Delivery is at least once: a holder that dies, or is slow beyond its lease, makes
 * the item come again. What it does with an item must therefore be keyed by something in the item.
 * Operations on a queue that was not defined reject with `not-found`.
 */
export interface QueueStore {
  /**
   * Makes the queue, or changes its limits for what happens from now on. (NATS: stream and durable
   * pull consumer.)
   */
  define(queue: string, limits: QueueLimits): Promise<void>;

  /**
   * Adds an item and returns its sequence; `overloaded` at `depthMax`. (NATS: publish, discard
   * policy new.)
   */
  enqueue(queue: string, value: Uint8Array): Promise<number>;

  /**
   * Leases up to `max` (default 1) items, in the order in which they became available. None there:
   * waits up to `waitMs`, then resolves with none; an aborted signal ends the wait with none.
   * (NATS: fetch with acknowledge wait; the driver moves an item delivered too often to the queue's
   * dead-letter stream.)
   */
  lease(
    queue: string,
    options?: { readonly max?: number; readonly waitMs?: number; readonly signal?: AbortSignal },
  ): Promise<readonly LeasedItem[]>;

  /**
   * The item is done and goes. `conflict` when the lease has run out or was given up: somebody else
   * may hold the item by now. (NATS: confirmed acknowledge; there the holder's own clock decides,
   * counted from before it asked.)
   */
  ack(lease: Lease): Promise<void>;

  /**
   * Gives the item back, to be available after `delayMs` (default 0). Errors as `ack`. (NATS: nak
   * with delay.)
   */
  nack(lease: Lease, options?: { readonly delayMs?: number }): Promise<void>;

  /** The lease lasts `leaseMs` from now. Errors as `ack`. (NATS: in-progress acknowledge.) */
  extend(lease: Lease): Promise<void>;

  /** Dead letters by sequence. (NATS: read of the dead-letter stream.) */
  dead(
    queue: string,
    options?: { readonly after?: number; readonly limit?: number },
  ): Promise<readonly DeadLetter[]>;

  /** Drops a dead letter that was dealt with; nothing if it is gone. (NATS: delete of one message.) */
  discard(queue: string, sequence: number): Promise<void>;

  /** (NATS: state of the streams and of the consumer.) */
  stats(queue: string): Promise<QueueStats>;

  /** Forgets the queue, its items and dead letters; nothing if there is none. (NATS: delete the streams.) */
  remove(queue: string): Promise<void>;
}
