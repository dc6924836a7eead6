import { type Iam, type Identity, keyIdOf, newSecret } from '@dsec/iam';
import { type BodyOf, type KeyCreated, names, type RouteOf } from '@dsec/protocol';
import { DsecError, HOUR_MS, type Random } from '@dsec/std';
import type { KeyStore } from '@dsec/store';
import { type Call, sha256Of } from '@dsec/transport';
import Type from 'typebox';
import { createRecords } from '../create/create-record.ts';
import type { KeyQuota } from '../create/key-quota.ts';
import { identityOf, type Visitor } from './key-authorizer.ts';

const GRACE_MS = HOUR_MS;

export interface KeyRotationParts {
  readonly iam: Pick<Iam, 'find' | 'knows' | 'rotate'>;
  readonly keys: KeyStore;
  readonly quota: KeyQuota;
  readonly random: Random;
}

const KeyRotateRecord = names.record('KeyRotateRecord', {
  format: Type.Literal(1),
  digest: names.digest,
  /** Of the secret that it is to get. */
  secretId: names.keyId,
});

/**
 * A key replaces its own secret, and those of keys that come of it: so nobody gets a secret of a key that
 * may do more, or that would outlive his. Once for one idempotency key; a repetition is not told the secret.
 */
export function createKeyRotation({ iam, keys, random, quota }: KeyRotationParts) {
  const records = createRecords(keys, KeyRotateRecord);
  return async (
    keyId: string,
    { graceMs = GRACE_MS }: BodyOf<RouteOf<'rotateKey'>>,
    call: Call<Visitor>,
  ): Promise<KeyCreated> => {
    const identity = identityOf(call.principal);
    const { project } = identity;
    const rotate = async (secret: string): Promise<KeyCreated> => {
      refuseRetired(identity);
      const check = (key: Pick<Identity, 'makers'> & { readonly id: string }) =>
        checkKinship(key, identity);
      return iam.rotate(keyId, { graceMs, project, check, secret });
    };
    const secret = newSecret(random);
    if (call.idempotencyKey === undefined) return rotate(secret);
    const digest = call.bodyDigest ?? sha256Of('');
    const name = records.nameOf(identity, `rotateKey/${keyId}`, call.idempotencyKey);
    quota.take(project);
    const value = { format: 1 as const, digest, secretId: keyIdOf(secret) };
    const claimed = await records.claim(name, value, digest);
    if (claimed.isNew) return rotate(secret);
    if (!(await iam.knows(keyId, claimed.value.secretId))) {
      // The first one was cut off before the key had its secret, which nobody has.
      const moved = await records.move(name, claimed, value, digest);
      if (moved.isNew) return rotate(secret);
    }
    return { key: await iam.find(keyId, project) };
  };
}

/** A secret in its grace is for work that goes on: who has found one shall not get a longer hold by it. */
export function refuseRetired({ isRetired }: Identity): void {
  if (isRetired !== true) return;
  throw new DsecError(
    'permission-denied',
    'this secret of the key was replaced: it makes no keys and replaces no secrets any more',
  );
}

function checkKinship(
  { id, makers = [] }: Pick<Identity, 'makers'> & { readonly id: string },
  { keyId }: Identity,
): void {
  if (id === keyId || makers.includes(keyId)) return;
  throw new DsecError(
    'permission-denied',
    'a key gives another secret only to itself and to keys that were made with it',
    { details: { field: 'keyId' } },
  );
}
