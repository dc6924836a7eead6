import { type Iam, type Identity, keyIdOf, newSecret } from '@dsec/iam';
import { type BodyOf, type KeyCreated, names, type RouteOf } from '@dsec/protocol';
import {
  asDsecError,
  type Clock,
  DsecError,
  type PrincipalId,
  type ProjectId,
  type Random,
} from '@dsec/std';
import type { KeyStore } from '@dsec/store';
import { sha256Of } from '@dsec/transport';
import Type from 'typebox';
import { createRecords } from '../create/create-record.ts';
import type { KeyQuota } from '../create/key-quota.ts';
import { formatCursor, LIMIT_DEFAULT, parseCursor } from '../paging.ts';
import type { ApiHandlers } from './handlers.ts';
import { identityOf } from './key-authorizer.ts';
import { createKeyRotation } from './key-rotation.ts';

export interface KeyHandlersOptions {
  readonly iam: Iam;
  readonly keys: KeyStore;
  readonly quota: KeyQuota;
  readonly clock: Clock;
  readonly random: Random;
  /** No key is of it. */
  readonly platformProject: ProjectId;
}

const KeyCreateRecord = names.record('KeyCreateRecord', {
  format: Type.Literal(1),
  digest: names.digest,
  keyId: names.keyId,
});

const KEY_ID = /^ke-[a-z2-7]{16}$/;

/**
 * Whoever may do something on nodes operates the platform, and so sees and makes keys of every project;
 * others those of their own.
 */
const isOperator = ({ scopes }: Identity): boolean => scopes.includes('node');
const projectSeenBy = (identity: Identity): ProjectId | undefined =>
  isOperator(identity) ? undefined : identity.project;

export function createKeyHandlers(
  options: KeyHandlersOptions,
): Pick<ApiHandlers, 'createKey' | 'listKeys' | 'revokeKey' | 'rotateKey'> {
  const { iam } = options;
  const createOnce = createKeyOnce(options);
  const rotateOnce = createKeyRotation(options);
  return {
    async createKey({ body }, call) {
      const identity = identityOf(call.principal);
      const request = settleKey(body, identity, options);
      const digest = call.bodyDigest ?? sha256Of('');
      if (call.idempotencyKey !== undefined) {
        return createOnce(request, identity, call.idempotencyKey, digest);
      }
      return iam.create(request);
    },
    rotateKey: ({ params, body }, call) => rotateOnce(params.keyId, body, call),
    async listKeys({ query: { limit = LIMIT_DEFAULT, cursor } }, call) {
      const project = projectSeenBy(identityOf(call.principal));
      const after = cursor === undefined ? undefined : parseCursor(cursor, KEY_ID);
      const { keys, next } = await iam.list({ project, after, limit });
      return { keys: [...keys], ...(next === undefined ? {} : { cursor: formatCursor(next) }) };
    },
    async revokeKey({ params }, call) {
      await iam.revoke(params.keyId, projectSeenBy(identityOf(call.principal)));
      return undefined;
    },
  };
}

type KeyRequest = Parameters<Iam['create']>[0];

/** A key gives nothing that its maker has not, and lives no longer. */
function settleKey(
  { name, scopes, lifetimeMs, principal, project }: BodyOf<RouteOf<'createKey'>>,
  identity: Identity,
  { platformProject, clock }: Pick<KeyHandlersOptions, 'platformProject' | 'clock'>,
): KeyRequest {
  const missing = scopes.find((scope) => !identity.scopes.includes(scope));
  if (missing !== undefined) {
    throw new DsecError('permission-denied', `this key cannot give ${missing}, which it has not`, {
      details: { scope: missing },
    });
  }
  const wanted = (project ?? identity.project) as ProjectId;
  if (wanted === platformProject || (wanted !== identity.project && !isOperator(identity))) {
    throw new DsecError('permission-denied', 'this key cannot make keys of that project', {
      details: { field: 'project' },
    });
  }
  return {
    ...{ name, scopes: [...new Set(scopes)], project: wanted },
    lifetimeMs: settleLifetime(lifetimeMs, identity, clock),
    principal: (principal ?? identity.principal) as PrincipalId,
    maker: identity,
  };
}

/** That of its maker, unless a shorter one is asked for. */
function settleLifetime(
  wantedMs: number | undefined,
  { expiresAtMs }: Identity,
  clock: Clock,
): number | undefined {
  if (expiresAtMs === undefined) return wantedMs;
  const leftMs = Math.max(1, expiresAtMs - clock.wallMs());
  if (wantedMs === undefined || wantedMs <= leftMs) return wantedMs ?? leftMs;
  throw new DsecError('permission-denied', 'this key cannot make one that outlives it', {
    details: { field: 'lifetimeMs', max: leftMs },
  });
}

/** Exactly once for one idempotency key; the secret is told by the request that made it. */
function createKeyOnce({ iam, keys, random, quota }: KeyHandlersOptions) {
  const records = createRecords(keys, KeyCreateRecord);
  return async (
    request: KeyRequest,
    identity: Identity,
    idempotencyKey: string,
    digest: ReturnType<typeof sha256Of>,
  ): Promise<KeyCreated> => {
    const name = records.nameOf(identity, 'createKey', idempotencyKey);
    quota.take(identity.project);
    const secret = newSecret(random);
    const value = { format: 1 as const, digest, keyId: keyIdOf(secret) };
    const claimed = await records.claim(name, value, digest);
    if (claimed.isNew) return iam.create({ ...request, secret });
    const made = await iam.find(claimed.value.keyId).catch((thrown) => {
      if (asDsecError(thrown).code === 'not-found') return undefined;
      throw thrown;
    });
    if (made !== undefined) return { key: made };
    // The first one was cut off before there was a key; nobody has its secret.
    const moved = await records.move(name, claimed, value, digest);
    if (moved.isNew) return iam.create({ ...request, secret });
    return { key: await iam.find(moved.value.keyId) };
  };
}
