import type { IncomingHttpHeaders } from 'node:http';
import type { Iam, Identity } from '@dsec/iam';
import { assert, DsecError } from '@dsec/std';
import type { Authorizer } from '@dsec/transport';
import type { Children } from '../agents/children.ts';
import { checkOperation } from '../agents/confinement.ts';
import type { SandboxLife } from '../agents/sandbox-life.ts';
import type { RateLimits } from './rate-limits.ts';

/** Who is let in. */
export interface Visitor {
  /** Absent for the few operations that anybody may use. */
  readonly identity: Identity | undefined;
}

const NOBODY: Visitor = { identity: undefined };

export interface KeyAuthorizerParts {
  readonly iam: Pick<Iam, 'authenticate'>;
  readonly limits: RateLimits;
  readonly life: Pick<SandboxLife, 'requireLive'>;
  readonly children: Pick<Children, 'list'>;
}

/**
 * Lets in who shows an API key whose scopes hold the class of the operation, and not more often than it may;
 * a key with limits only to its own sandboxes. A request may be looked at several times, and counts once: it
 * is known by its headers.
 */
export function createKeyAuthorizer({
  iam,
  limits,
  life,
  children,
}: KeyAuthorizerParts): Authorizer<Visitor> {
  const counted = new WeakSet<IncomingHttpHeaders>();
  return async ({ route, headers, operation, params }) => {
    const { operationClass } = route;
    if (operationClass === 'none') return NOBODY;
    const identity = await iam.authenticate(headers.authorization);
    if (!counted.has(headers)) {
      limits.take(identity);
      counted.add(headers);
    }
    if (identity.sandbox !== undefined) {
      life.requireLive(identity.sandbox, identity.createdAtMs ?? 0);
    }
    if (identity.scopes.includes(operationClass)) {
      if (identity.limits === undefined) return { identity };
      checkOperation(operation, route);
      await requireOwn(children, identity, params.sandboxId);
      return { identity };
    }
    throw new DsecError('permission-denied', `this key may not do what needs ${operationClass}`, {
      details: { scope: operationClass },
    });
  };
}

/** That of somebody else is the same as none. */
async function requireOwn(
  children: Pick<Children, 'list'>,
  identity: Identity,
  sandbox: unknown,
): Promise<void> {
  if (sandbox === undefined) return;
  const own = await children.list(identity);
  if (own.includes(String(sandbox))) return;
  throw new DsecError('not-found', 'there is no such sandbox');
}

export function identityOf({ identity }: Visitor): Identity {
  assert(identity !== undefined, 'only an operation with a class has a caller');
  return identity;
}
