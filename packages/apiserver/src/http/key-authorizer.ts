import type { IncomingHttpHeaders } from 'node:http';
import type { Iam, Identity } from '@dsec/iam';
import { assert, DsecError } from '@dsec/std';
import type { Authorizer } from '@dsec/transport';
import type { RateLimits } from './rate-limits.ts';

/** Who is let in. */
export interface Visitor {
  /** Absent for the few operations that anybody may use. */
  readonly identity: Identity | undefined;
}

const NOBODY: Visitor = { identity: undefined };

/**
 * Lets in who shows an API key whose scopes hold the class of the operation, and not more often than it may.
 * A request may be looked at several times, and counts once: it is known by its headers.
 */
export function createKeyAuthorizer(
  iam: Pick<Iam, 'authenticate'>,
  limits: RateLimits,
): Authorizer<Visitor> {
  const counted = new WeakSet<IncomingHttpHeaders>();
  return async ({ route, headers }) => {
    const { operationClass } = route;
    if (operationClass === 'none') return NOBODY;
    const identity = await iam.authenticate(headers.authorization);
    if (!counted.has(headers)) {
      limits.take(identity);
      counted.add(headers);
    }
    if (identity.scopes.includes(operationClass)) return { identity };
    throw new DsecError('permission-denied', `this key may not do what needs ${operationClass}`, {
      details: { scope: operationClass },
    });
  };
}

export function identityOf({ identity }: Visitor): Identity {
  assert(identity !== undefined, 'only an operation with a class has a caller');
  return identity;
}
