import { type Iam, type Identity, keyIdOf, newSecret } from '@dsec/iam';
import { type BodyOf, type KeyCreated, names, ROUTES, type RouteOf } from '@dsec/protocol';
import {
  asDsecError,
  type Clock,
  DAY_MS,
  DsecError,
  isEndState,
  type PrincipalId,
  type ProjectId,
  type Random,
} from '@dsec/std';
import type { KeyStore } from '@dsec/store';
import { sha256Of } from '@dsec/transport';
import Type from 'typebox';
import { CONFINED_SCOPES } from '../agents/confinement.ts';
import { createRecords } from '../create/create-record.ts';
import type { KeyQuota } from '../create/key-quota.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { formatCursor, LIMIT_DEFAULT, parseCursor } from '../paging.ts';
import type { ApiHandlers } from './handlers.ts';
import { identityOf } from './key-authorizer.ts';
import { createKeyRotation, refuseRetired } from './key-rotation.ts';

export interface KeyHandlersOptions {
  readonly iam: Iam;
  readonly fleet: Pick<Fleet, 'linkOf'>;
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
      refuseRetired(identity);
      const request = settleKey(body, identity, options);
      if (body.sandbox !== undefined) {
        await requireSandbox(options.fleet, body.sandbox, identity, call.signal);
      }
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

type KeyBody = BodyOf<RouteOf<'createKey'>>;
type KeyRequest = Parameters<Iam['create']>[0];

/** A key gives nothing that its maker has not, and lives no longer. */
function settleKey(
  body: KeyBody,
  identity: Identity,
  {
    platformProject,
    clock,
    random,
  }: Pick<KeyHandlersOptions, 'platformProject' | 'clock' | 'random'>,
): KeyRequest {
  const { name, scopes, lifetimeMs, principal, project, limits, sandbox } = body;
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
  const common = {
    ...{ name, scopes: [...new Set(scopes)], project: wanted, maker: identity },
    lifetimeMs: settleLifetime(lifetimeMs, identity, clock),
  };
  if (limits === undefined && sandbox === undefined) {
    return { ...common, principal: (principal ?? identity.principal) as PrincipalId };
  }
  checkConfined(body);
  const ownMs = Math.min(common.lifetimeMs ?? AGENT_KEY_MS, AGENT_KEY_MS_MAX);
  return { ...common, limits, sandbox, lifetimeMs: ownMs, principal: newPrincipal(random) };
}

const AGENT_KEY_MS = DAY_MS;
const AGENT_KEY_MS_MAX = 7 * DAY_MS;

/** Its idempotency keys have nothing to do with those of others. */
function newPrincipal(random: Random): PrincipalId {
  return `agent-${Buffer.from(random.bytes(8)).toString('hex')}` as PrincipalId;
}

function checkConfined({ scopes, principal, project, limits, sandbox }: KeyBody): void {
  const fault = (field: string, why: string) =>
    new DsecError('invalid-argument', why, { details: { field } });
  if (limits === undefined || sandbox === undefined) {
    throw fault(
      'limits',
      'the key of an agent has both: its limits, and the sandbox that it ends with',
    );
  }
  const other = scopes.find((scope) => !CONFINED_SCOPES.includes(scope));
  if (other !== undefined) throw fault('scopes', `a key with limits has no scope ${other}`);
  if (principal !== undefined || project !== undefined) {
    throw fault('principal', 'a key with limits is of its maker and of a principal of its own');
  }
}

/**
 * `not-found` for one that is not the caller's, `state-conflict` for one that has ended, `permission-denied`
 * for one with a policy: what its agent made would have none, and show it what is hidden from it.
 */
async function requireSandbox(
  fleet: Pick<Fleet, 'linkOf'>,
  sandboxId: string,
  holder: Identity,
  signal: AbortSignal,
): Promise<void> {
  const input = { params: { sandboxId }, query: {} };
  const { state, spec } = await fleet
    .linkOf(sandboxId)
    .call(ROUTES.getSandbox, input, { holder, signal });
  if (spec.policy !== undefined) {
    throw new DsecError(
      'permission-denied',
      'a sandbox with a policy gives its agent no key: what the agent makes would have no policy',
      { details: { field: 'sandbox' } },
    );
  }
  if (!isEndState(state)) return;
  throw new DsecError('state-conflict', 'the sandbox has ended, and with it every key of its own');
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
