import type { Iam, Identity } from '@dsec/iam';
import { assert, DsecError } from '@dsec/std';
import type { Authorizer } from '@dsec/transport';

/** Who is let in. */
export interface Visitor {
  /** Absent for the few operations that anybody may use. */
  readonly identity: Identity | undefined;
}

const NOBODY: Visitor = { identity: undefined };

/** Lets in who shows an API key whose scopes hold the class of the operation. */
export function createKeyAuthorizer(iam: Pick<Iam, 'authenticate'>): Authorizer<Visitor> {
  return async ({ route, headers }) => {
    const { operationClass } = route;
    if (operationClass === 'none') return NOBODY;
    const identity = await iam.authenticate(headers.authorization);
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
