import { IDEMPOTENCY_HEADER, isStreamRoute } from '@dsec/protocol';
import { type Clock, DsecError, type Random } from '@dsec/std';
import { type Call, REQUEST_ID_HEADER, TRACEPARENT_HEADER } from '@dsec/transport';
import type { EdgeLink } from '../fleet/edge-link.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { identityOf, type Visitor } from '../http/key-authorizer.ts';

/** What forwarding stands on. */
export interface ForwardParts {
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly random: Random;
}

/** What an edge needs to know of a request; never the key of the caller. */
const PASSED_ON = ['content-type', 'content-length', IDEMPOTENCY_HEADER] as const;

/** With a ticket of its own: each is good for one attempt. */
export function headersFor(
  { sign }: EdgeLink,
  { route, target, bodyDigest, params, principal, headers, requestId, traceparent }: Call<Visitor>,
): Record<string, string> {
  const { operationClass, method } = route;
  if (operationClass === 'none') throw new DsecError('internal', 'an open route is not forwarded');
  const ticket = sign(
    {
      ...{ operationClass, method, target, bodyDigest },
      sandbox: String(params.sandboxId),
      isStream: isStreamRoute(route),
    },
    identityOf(principal),
  );
  const passed: Record<string, string> = {
    ...ticket,
    [REQUEST_ID_HEADER]: requestId,
    [TRACEPARENT_HEADER]: traceparent,
  };
  for (const name of PASSED_ON) {
    const value = headers[name];
    if (typeof value === 'string') passed[name] = value;
  }
  return passed;
}
