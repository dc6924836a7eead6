/**
 * API keys in the store. One record per key, named by a part of its secret's hash; beside it an entry per
 * project, so that a project's keys are listed without reading those of others.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Key, KeyLimits, OperationClass } from '@dsec/protocol';
import {
  type Clock,
  DAY_MS,
  DsecError,
  MINUTE_MS,
  type PrincipalId,
  type ProjectId,
  type Random,
} from '@dsec/std';
import type { KeyEntry, KeyStore, Store } from '@dsec/store';
import type { Identity } from './identity.ts';
import {
  decodeEntry,
  decodeRecord,
  encodeRecord,
  type KeyRecord,
  MAKERS_MAX,
  shownKey,
} from './key-record.ts';
import { type Rotation, rotateKey } from './rotate.ts';
import { hashOfSecret, keyIdOfHash, newSecret, SECRET } from './secret.ts';

export interface IamOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
}

export interface CreateKeyRequest {
  readonly name: string;
  readonly project: ProjectId;
  readonly principal: PrincipalId;
  readonly scopes: readonly OperationClass[];
  readonly lifetimeMs?: number | undefined;
  readonly limits?: KeyLimits | undefined;
  readonly sandbox?: string | undefined;
  /** Whose key makes it. Absent: that of a server, which nothing takes away but its own revocation. */
  readonly maker?: Pick<Identity, 'keyId' | 'makers'> | undefined;
  /** Of `newSecret`; a caller that must be able to repeat itself chooses it first. */
  readonly secret?: string | undefined;
}

export interface Iam {
  /**
   * Whose the header `Authorization: Bearer dsec_…` is. What is missing, malformed, wrong, expired or
   * revoked is the same `unauthenticated`, after the same read of the store; so a revocation holds at once.
   * A key does not outlast the keys that it comes of: it is refused when one of them would be.
   */
  authenticate(header: string | undefined): Promise<Identity>;
  /**
   * A key and its secret, which is told this once. `permission-denied` when its maker has too many makers
   * itself.
   */
  create(request: CreateKeyRequest): Promise<{ readonly key: Key; readonly secret: string }>;
  /**
   * Another secret for a key, whose old ones are good for `graceMs` more. `not-found` as `find`,
   * `state-conflict` for one that is revoked or expired, `conflict` while too many old ones are good.
   */
  rotate(id: string, rotation: Rotation): Promise<{ readonly key: Key; readonly secret: string }>;
  /** Whether a key has, or had until lately, the secret with this id (`keyIdOf`). `not-found` as `find`. */
  knows(id: string, secretId: string): Promise<boolean>;
  /** `not-found` also for a key of another project, unless `project` is absent. */
  find(id: string, project?: ProjectId): Promise<Key>;
  /** By id; of one project, or of all. At most `limit`. */
  list(options: {
    readonly project?: ProjectId | undefined;
    readonly after?: string | undefined;
    readonly limit: number;
  }): Promise<{ readonly keys: readonly Key[]; readonly next: string | undefined }>;
  /**
   * Invalid at once, and so is every key that comes of it. One that is revoked already is fine.
   * `not-found` as `find`.
   */
  revoke(id: string, project?: ProjectId): Promise<void>;
}

/** A key that is of no use any more is listed for so long. */
const KEPT_MS = 30 * DAY_MS;
/** How exact the time of a key's last use is. */
const USE_PRECISION_MS = 5 * MINUTE_MS;
const KEYS = 'iam/keys/';
const keyOf = (id: string) => `${KEYS}${id}`;
/** A name may end in a dot, a part of a key may not; `=` is in no name. */
const projectPrefix = (project: string) => `iam/projects/${project.replace(/\.$/, '=')}/`;

export function openIam({ store, clock, random }: IamOptions): Iam {
  const { keys } = store;
  const uses = createUses(store, clock);
  const find = createFinder(keys);

  return {
    async authenticate(header) {
      const secret = header?.startsWith('Bearer ') === true ? header.slice('Bearer '.length) : '';
      const hash = hashOfSecret(secret);
      const entry = await entryOf(keys, keyIdOfHash(hash));
      const record = SECRET.test(secret) ? validRecord(entry, hash, clock.wallMs()) : undefined;
      if (entry === undefined || record === undefined) throw refusal();
      const { id, project, principal, scopes, expiresAtMs, makers } = record;
      const { limits, sandbox, createdAtMs } = record;
      if (!(await areValid(keys, makers, clock))) throw refusal();
      uses.note(entry, record);
      return {
        ...{ keyId: id, scopes },
        ...(isHash(record.hash, hash) ? {} : { isRetired: true as const }),
        ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
        ...(makers === undefined ? {} : { makers }),
        ...(limits === undefined ? {} : { limits }),
        ...(sandbox === undefined ? {} : { sandbox, createdAtMs }),
        ...{ project: project as ProjectId, principal: principal as PrincipalId },
      };
    },
    async create({ lifetimeMs, secret = newSecret(random), maker, limits, sandbox, ...request }) {
      const hash = hashOfSecret(secret);
      const createdAtMs = clock.wallMs();
      const record: KeyRecord = {
        ...{ format: 1, id: keyIdOfHash(hash), hash, createdAtMs },
        ...{ ...request, scopes: [...request.scopes] },
        ...(maker === undefined ? {} : { makers: makersOf(maker) }),
        ...(limits === undefined ? {} : { limits }),
        ...(sandbox === undefined ? {} : { sandbox }),
        ...(lifetimeMs === undefined ? {} : { expiresAtMs: createdAtMs + lifetimeMs }),
      };
      const ttl = lifetimeMs === undefined ? {} : { ttlMs: lifetimeMs + KEPT_MS };
      // The entry first: one without a record is passed over, a record without one would be hidden.
      await keys.put(`${projectPrefix(request.project)}${record.id}`, new Uint8Array(), ttl);
      await keys.create(keyOf(record.id), encodeRecord(record), ttl);
      return { key: shownKey(record), secret };
    },
    async rotate(id, { secret = newSecret(random), ...rotation }) {
      const key = await rotateKey({ keys, clock, keyOf }, id, { secret, ...rotation });
      return { key, secret };
    },
    knows: async (id, secretId) => hasSecret((await find(id, undefined)).record, secretId),
    find: async (id, project) => shownKey((await find(id, project)).record),
    async list({ project, after, limit }) {
      const prefix = project === undefined ? KEYS : projectPrefix(project);
      const from = after === undefined ? {} : { after: `${prefix}${after}` };
      const page = await keys.list(prefix, { ...from, limit });
      const ids = page.entries.map(({ key }) => key.slice(prefix.length));
      const found = await Promise.all(
        project === undefined ? page.entries : ids.map((id) => keys.get(keyOf(id))),
      );
      return {
        keys: found.flatMap((entry) => {
          const record = entry === undefined ? '' : decodeEntry(entry.value);
          return typeof record === 'string' ? [] : [shownKey(record)];
        }),
        next: page.next === undefined ? undefined : ids.at(-1),
      };
    },
    revoke: (id, project) => revoke(keys, clock, find, id, project),
  };
}

/**
 * Who calls is asked for every request, and no request waits for the disk for it: a secret is told when its
 * record is on the disk, and a revocation that is not there yet counts already.
 */
const AT_ONCE = { allowUnflushed: true } as const;

/** By the id that its first secret gave a key, or by that of a later one: one read more. */
async function entryOf(keys: KeyStore, id: string): Promise<KeyEntry | undefined> {
  const entry = await keys.get(keyOf(id), AT_ONCE);
  const found = entry === undefined ? undefined : decodeEntry(entry.value);
  return typeof found === 'string' ? keys.get(keyOf(found), AT_ONCE) : entry;
}

type Finder = ReturnType<typeof createFinder>;

function createFinder(keys: KeyStore) {
  return async (id: string, project: ProjectId | undefined) => {
    const entry = await keys.get(keyOf(id));
    const record = entry === undefined ? undefined : decodeEntry(entry.value);
    const isKey = record !== undefined && typeof record !== 'string';
    const isSeen = isKey && (project === undefined || record.project === project);
    if (entry === undefined || !isSeen) throw new DsecError('not-found', 'there is no such key');
    return { entry, record };
  };
}

/** Over whatever else changes the record meanwhile. */
async function revoke(
  keys: KeyStore,
  clock: Clock,
  find: Finder,
  ...[id, project]: Parameters<Finder>
): Promise<void> {
  for (;;) {
    const { entry, record } = await find(id, project);
    if (record.revokedAtMs !== undefined) return;
    const revoked = encodeRecord({ ...record, revokedAtMs: clock.wallMs() });
    try {
      await keys.compareAndSet(entry.key, revoked, entry.revision, { ttlMs: KEPT_MS });
    } catch (thrown) {
      if ((thrown as DsecError).code === 'conflict') continue;
      throw thrown;
    }
    const index = `${projectPrefix(record.project)}${id}`;
    await keys.put(index, new Uint8Array(), { ttlMs: KEPT_MS });
    return;
  }
}

function refusal(): DsecError {
  return new DsecError('unauthenticated', 'the request carries no valid API key');
}

function makersOf({ keyId, makers = [] }: Pick<Identity, 'keyId' | 'makers'>): string[] {
  if (makers.length < MAKERS_MAX) return [keyId, ...makers];
  throw new DsecError(
    'permission-denied',
    `this key is the ${MAKERS_MAX}th that one made after the other: make it with an earlier one`,
    { details: { limit: 'makers', max: MAKERS_MAX } },
  );
}

/** One that is gone was revoked or has expired. */
async function areValid(
  keys: KeyStore,
  makers: readonly string[] = [],
  clock: Clock,
): Promise<boolean> {
  const entries = await Promise.all(makers.map((id) => keys.get(keyOf(id), AT_ONCE)));
  const nowMs = clock.wallMs();
  return entries.every((entry) => entry !== undefined && holds(decodeRecord(entry.value), nowMs));
}

const holds = ({ expiresAtMs, revokedAtMs }: KeyRecord, nowMs: number): boolean =>
  revokedAtMs === undefined && (expiresAtMs === undefined || nowMs < expiresAtMs);

const hasSecret = ({ hash, previous = [] }: KeyRecord, secretId: string): boolean =>
  [hash, ...previous.map((old) => old.hash)].some((at) => keyIdOfHash(at) === secretId);

const isHash = (known: string, shown: string): boolean =>
  timingSafeEqual(Buffer.from(known, 'hex'), Buffer.from(shown, 'hex'));

function validRecord(
  entry: KeyEntry | undefined,
  hash: string,
  nowMs: number,
): KeyRecord | undefined {
  if (entry === undefined) return undefined;
  const record = decodeRecord(entry.value);
  const hashes = [{ hash: record.hash, untilMs: Number.POSITIVE_INFINITY }];
  const isSame = [...hashes, ...(record.previous ?? [])].some(
    (known) => nowMs < known.untilMs && isHash(known.hash, hash),
  );
  return isSame && holds(record, nowMs) ? record : undefined;
}

/** When keys were last used: written seldom, by nobody who waits, and never over a change. */
function createUses({ keys }: Store, clock: Clock) {
  const writing = new Set<string>();
  return {
    note({ key, revision }: KeyEntry, record: KeyRecord): void {
      const nowMs = clock.wallMs();
      const isFresh = nowMs - (record.lastUsedAtMs ?? 0) < USE_PRECISION_MS;
      if (isFresh || writing.has(key)) return;
      writing.add(key);
      const leftMs = record.expiresAtMs === undefined ? undefined : record.expiresAtMs - nowMs;
      const ttl = leftMs === undefined ? {} : { ttlMs: leftMs + KEPT_MS };
      const used = encodeRecord({ ...record, lastUsedAtMs: nowMs });
      keys
        .compareAndSet(key, used, revision, ttl)
        // Somebody else has noted it, or the key was revoked, or the disk is full: the next use tries.
        .catch(() => undefined)
        .finally(() => writing.delete(key));
    },
  };
}
