/** Another secret for a key that stays what it is: its id, its scopes, and the keys that come of it. */
import type { Key } from '@dsec/protocol';
import { type Clock, DAY_MS, DsecError, type ProjectId } from '@dsec/std';
import type { KeyStore } from '@dsec/store';
import {
  decodeEntry,
  encodeAlias,
  encodeRecord,
  type KeyRecord,
  PREVIOUS_MAX,
  shownKey,
} from './key-record.ts';
import { hashOfSecret, keyIdOfHash } from './secret.ts';

export interface Rotation {
  readonly graceMs: number;
  /** That of a project; absent: of any. */
  readonly project?: ProjectId | undefined;
  /** Asked about the key before anything is changed; throws what forbids it. */
  readonly check?: (key: Pick<KeyRecord, 'id' | 'makers'>) => void;
  /** Of `newSecret`; a caller that must be able to repeat itself chooses it first. */
  readonly secret?: string | undefined;
}

interface Parts {
  readonly keys: KeyStore;
  readonly clock: Clock;
  keyOf(id: string): string;
}

const KEPT_MS = 30 * DAY_MS;

export async function rotateKey(
  { keys, clock, keyOf }: Parts,
  id: string,
  { graceMs, project, check, secret }: Rotation & { readonly secret: string },
): Promise<Key> {
  const hash = hashOfSecret(secret);
  for (;;) {
    const entry = await keys.get(keyOf(id));
    const record = entry === undefined ? '' : decodeEntry(entry.value);
    const isSeen =
      typeof record !== 'string' && (project === undefined || record.project === project);
    if (entry === undefined || !isSeen) throw new DsecError('not-found', 'there is no such key');
    check?.(record);
    const rotated = withSecret(record, hash, graceMs, clock.wallMs());
    const ttl = ttlOf(record, clock.wallMs());
    // The way to the record first: until the record knows the secret, it lets nobody in.
    await keys.put(keyOf(keyIdOfHash(hash)), encodeAlias(id), ttl);
    try {
      await keys.compareAndSet(entry.key, encodeRecord(rotated), entry.revision, ttl);
      return shownKey(rotated);
    } catch (thrown) {
      // Its last use was noted, say.
      if ((thrown as DsecError).code !== 'conflict') throw thrown;
    }
  }
}

function withSecret(record: KeyRecord, hash: string, graceMs: number, nowMs: number): KeyRecord {
  const { revokedAtMs, expiresAtMs } = record;
  if (revokedAtMs !== undefined || (expiresAtMs !== undefined && expiresAtMs <= nowMs)) {
    throw new DsecError('state-conflict', 'a key that is revoked or has expired stays so');
  }
  // Without a grace nothing that was good before is: a secret that is known to others, say.
  const good = graceMs === 0 ? [] : (record.previous ?? []).filter((old) => nowMs < old.untilMs);
  const now = graceMs === 0 ? [] : [{ hash: record.hash, untilMs: nowMs + graceMs }];
  if (good.length + now.length > PREVIOUS_MAX) {
    throw new DsecError('conflict', `${PREVIOUS_MAX} earlier secrets of this key are good yet`, {
      details: { limit: 'secrets', max: PREVIOUS_MAX },
    });
  }
  return { ...record, hash, previous: [...now, ...good] };
}

function ttlOf({ expiresAtMs }: KeyRecord, nowMs: number): { ttlMs?: number } {
  return expiresAtMs === undefined ? {} : { ttlMs: expiresAtMs - nowMs + KEPT_MS };
}
