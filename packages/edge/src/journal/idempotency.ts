/**
 * Exactly once (I4): the key of a request, the digest of its body and the id of what it made are stored in
 * the transaction that stores what it made. A repetition finds the id; what became of it, the row of that id
 * says. Nothing of an answer is stored, so that none can leak (THREATS F2).
 */
import { type Clock, type Digest, DsecError, HOUR_MS, MINUTE_MS, type SandboxId } from '@dsec/std';
import type { Caller } from '../operation.ts';
import type { Journal } from './database.ts';
import type { JournalTable } from './schema.ts';

export const IDEMPOTENCY_TABLE: JournalTable = {
  name: 'idempotency',
  migrations: [
    `CREATE TABLE idempotency (
      scope TEXT NOT NULL,         -- project, principal, route, sandbox, key
      project TEXT NOT NULL,
      digest TEXT NOT NULL,
      result TEXT NOT NULL,        -- the id of what the request made
      boot_id TEXT NOT NULL,
      boot_ms INTEGER NOT NULL,
      PRIMARY KEY (scope)
    ) WITHOUT ROWID;
    CREATE INDEX idempotency_by_age ON idempotency (boot_ms);
    CREATE INDEX idempotency_of_project ON idempotency (project, boot_ms)`,
  ],
};

/** A key is remembered this long. */
export const KEY_LIFETIME_MS = 24 * HOUR_MS;
/** A project that has more gives up its oldest, if they are older than `KEY_LIFETIME_MS_MIN`. */
export const KEYS_PER_PROJECT_MAX = 200_000;
export const KEY_LIFETIME_MS_MIN = 15 * MINUTE_MS;
const EXPIRED_AT_ONCE_MAX = 1000;

/** What a key belongs to: the same key elsewhere is another one. */
export interface KeyScope {
  readonly caller: Caller;
  /** The operation's name in the route table. */
  readonly route: string;
  readonly sandbox?: SandboxId | undefined;
  /** Absent: nothing is remembered, and every request is a new one. */
  readonly key: string | undefined;
}

export interface KeyedResult {
  /** What `begin` returned, now or the first time. */
  readonly id: string;
  /** The request is a repetition: nothing was begun. */
  readonly repeated: boolean;
}

export interface Idempotency {
  /**
   * Begins the effect of a request unless its key is known. `prepare` may wait and fail, which leaves no
   * trace; the function that it gives is called inside the transaction that stores the key, writes the rows
   * of the effect and returns its id. Both see nothing of the caller's signal: a second request with the
   * key may wait for the first one's. Throws `idempotency-conflict` for another digest, and
   * `quota-exceeded` when the project has too many young keys.
   */
  run(scope: KeyScope, digest: Digest, prepare: () => Promise<() => string>): Promise<KeyedResult>;
  /** Forgets what is too old, a bounded number at once. Returns how many. */
  expire(): number;
}
