/**
 * Exactly once (I4): the key of a request, the digest of its body and the id of what it made are stored in
 * the transaction that stores what it made. A repetition finds the id; what became of it, the row of that id
 * says. Nothing of an answer is stored, so that none can leak (THREATS F2).
 */
import {
  asDsecError,
  type Clock,
  type Digest,
  DsecError,
  type ErrorCode,
  HOUR_MS,
  MINUTE_MS,
  type SandboxId,
} from '@dsec/std';
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
      result TEXT NOT NULL,        -- the id of what the request made; of an attempt see below
      boot_id TEXT NOT NULL,
      boot_ms INTEGER NOT NULL,
      PRIMARY KEY (scope)
    ) WITHOUT ROWID;
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
  /**
   * Does what lies outside of the journal and has no id of its own, at most once: the key is stored before
   * `effect` and decided after it. When the edge dies in between, or `effect` fails in another way than by
   * one of `refusals`, which say that nothing was done, nobody knows what became of it: every repetition is
   * then `state-conflict` with the detail `undecided`. After a refusal the next one tries again.
   */
  attempt(
    scope: KeyScope,
    digest: Digest,
    refusals: ReadonlySet<ErrorCode>,
    effect: () => Promise<void>,
  ): Promise<void>;
  /** Forgets what is too old, a bounded number at once. Returns how many. */
  expire(): number;
}

/** Results of an attempt. */
const UNDECIDED = '';
const DONE = 'done';

interface KeyRow {
  readonly digest: string;
  readonly result: string;
}

/** Keys of an earlier boot live on as if they were new: how old they are cannot be said any more. */
export function openIdempotency(journal: Journal, clock: Clock): Idempotency {
  const { db, bootId } = journal;
  db.prepare('UPDATE idempotency SET boot_id = ?, boot_ms = ? WHERE boot_id != ?').run(
    ...[bootId, clock.bootMs(), bootId],
  );
  const find = db.prepare<[string], KeyRow>(
    'SELECT digest, result FROM idempotency WHERE scope = ?',
  );
  const decide = db.prepare('UPDATE idempotency SET result = ? WHERE scope = ?');
  const insert = db.prepare('INSERT INTO idempotency VALUES (?, ?, ?, ?, ?, ?)');
  const quota = createProjectQuota(journal, clock);
  const commit = (scope: string, project: string, digest: Digest, begin: () => string) =>
    journal.transaction(() => {
      quota.take(project);
      const id = begin();
      insert.run(scope, project, digest, id, bootId, clock.bootMs());
      return { id, repeated: false };
    });

  const { oneAtATime } = createTurns();
  const runOnce = (scope: string, digest: Digest, work: () => Promise<KeyedResult>) =>
    oneAtATime(scope, async () => {
      const row = find.get(scope);
      return row === undefined ? await work() : resultOf(row, digest);
    });

  return {
    async run(keyScope, digest, prepare) {
      const { key, caller } = keyScope;
      if (key === undefined) {
        const begin = await prepare();
        return { id: journal.transaction(begin), repeated: false };
      }
      const scope = scopeText(keyScope, key);
      return runOnce(scope, digest, async () =>
        commit(scope, caller.project, digest, await prepare()),
      );
    },
    async attempt(keyScope, digest, refusals, effect) {
      const { key, caller } = keyScope;
      if (key === undefined) return effect();
      const scope = scopeText(keyScope, key);
      await runOnce(scope, digest, async () => {
        commit(scope, caller.project, digest, () => UNDECIDED);
        try {
          await effect();
        } catch (thrown) {
          if (refusals.has(asDsecError(thrown).code)) quota.giveBack(scope, caller.project);
          throw thrown;
        }
        decide.run(DONE, scope);
        return { id: DONE, repeated: false };
      });
    },
    expire: quota.expire,
  };
}

/** What a repetition is told. */
function resultOf({ digest: known, result }: KeyRow, digest: Digest): KeyedResult {
  if (known !== digest) {
    throw new DsecError(
      'idempotency-conflict',
      'the idempotency key was used for a request with another body',
    );
  }
  if (result !== UNDECIDED) return { id: result, repeated: true };
  throw new DsecError(
    'state-conflict',
    'the first request with this key was cut off: it may have been done, look before you try again',
    { details: { undecided: true } },
  );
}

/** Work with the same key goes one after another. What fails is its own failure: the next one tries. */
function createTurns() {
  const working = new Map<string, Promise<unknown>>();
  return {
    async oneAtATime<T>(key: string, work: () => Promise<T>): Promise<T> {
      for (let first = working.get(key); first !== undefined; first = working.get(key)) {
        await first.catch(() => undefined);
      }
      const own = work();
      working.set(key, own);
      try {
        return await own;
      } finally {
        working.delete(key);
      }
    },
  };
}

/** No part can hold the separator: names and keys have no line ends. */
function scopeText({ caller, route, sandbox }: KeyScope, key: string): string {
  return [caller.project, caller.principal, route, sandbox ?? '', key].join('\n');
}

function createProjectQuota({ db, afterCommit }: Journal, clock: Clock) {
  const counts = new Map(
    db
      .prepare<[], [string, number]>('SELECT project, count(*) FROM idempotency GROUP BY project')
      .raw()
      .all(),
  );
  const dropOldest = db.prepare<[string, number], { project: string }>(
    `DELETE FROM idempotency WHERE scope = (
       SELECT scope FROM idempotency WHERE project = ? ORDER BY boot_ms LIMIT 1
     ) AND boot_ms <= ? RETURNING project`,
  );
  const drop = db.prepare('DELETE FROM idempotency WHERE scope = ?');
  const dropExpired = db.prepare(
    `DELETE FROM idempotency WHERE scope IN (
       SELECT scope FROM idempotency WHERE project = ? AND boot_ms <= ? ORDER BY boot_ms LIMIT ?
     )`,
  );
  const add = (project: string, change: number) => {
    const count = (counts.get(project) ?? 0) + change;
    if (count === 0) counts.delete(project);
    else counts.set(project, count);
  };
  return {
    /** Inside the transaction that inserts: makes room for one more, or throws `quota-exceeded`. */
    take(project: string) {
      if ((counts.get(project) ?? 0) < KEYS_PER_PROJECT_MAX) {
        return afterCommit(() => add(project, 1));
      }
      if (dropOldest.get(project, clock.bootMs() - KEY_LIFETIME_MS_MIN) === undefined) {
        throw new DsecError(
          'quota-exceeded',
          `the project has used ${KEYS_PER_PROJECT_MAX} idempotency keys in a short time`,
          { details: { limit: 'idempotency-keys', max: KEYS_PER_PROJECT_MAX } },
        );
      }
    },
    /** Forgets a key that was not used after all. */
    giveBack(scope: string, project: string) {
      if (drop.run(scope).changes > 0) add(project, -1);
    },
    expire() {
      const oldest = clock.bootMs() - KEY_LIFETIME_MS;
      let dropped = 0;
      for (const project of [...counts.keys()]) {
        const { changes } = dropExpired.run(project, oldest, EXPIRED_AT_ONCE_MAX - dropped);
        if (changes > 0) add(project, -changes);
        dropped += changes;
        if (dropped === EXPIRED_AT_ONCE_MAX) break;
      }
      return dropped;
    },
  };
}
