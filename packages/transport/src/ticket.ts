import { type KeyObject, randomBytes, sign } from 'node:crypto';
import { check, TICKET_LIFETIME_MS_MAX, TicketClaims } from '@dsec/protocol';
import { type Clock, DsecError, systemClock } from '@dsec/std';
import { sha256Of } from './digest.ts';

/**
 * A ticket as text: `dt1.<key id>.<claims>.<signature>`, the last two base64url; the signature
 * (Ed25519) is over all that comes before it. The shape follows JWS, without its choice of
 * algorithms, which is where forgeries come from.
 */

export const TICKET_PREFIX = 'dt1';
/** No ticket is longer. */
export const TICKET_BYTES_MAX = 2048;
export const KEY_ID = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** Signs claims. Throws `invalid-argument` when they break the schema or live longer than a ticket may. */
export function signTicket(claims: TicketClaims, privateKey: KeyObject, keyId: string): string {
  check(TicketClaims, claims, 'ticket');
  checkLifetime(claims);
  if (!KEY_ID.test(keyId)) {
    throw new DsecError('invalid-argument', 'a key id is 1 to 32 of a-z, 0-9 and hyphen');
  }
  const signed = signedPart(keyId, Buffer.from(JSON.stringify(claims)).toString('base64url'));
  const signature = sign(null, Buffer.from(signed), privateKey).toString('base64url');
  return `${signed}.${signature}`;
}

/** What a request says of itself: what its ticket must say too. */
export interface TicketRequest {
  readonly sandbox?: string | undefined;
  readonly operationClass: TicketClaims['operationClass'];
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  /** Of a body that is not a stream. */
  readonly bodyDigest?: string | undefined;
  /** Of a stream. */
  readonly streamId?: string | undefined;
}

/** Claims for one request, valid from now for `lifetimeMs`, with a nonce of their own. */
export function newTicketClaims(
  request: TicketRequest,
  holder: Pick<TicketClaims, 'edge' | 'project' | 'principal' | 'job' | 'mayGrade'>,
  lifetimeMs = TICKET_LIFETIME_MS_MAX,
  clock: Clock = systemClock,
): TicketClaims {
  const { sandbox, operationClass, method, target, bodyDigest, streamId } = request;
  const nowMs = Math.floor(clock.wallMs());
  const claims = {
    version: 1,
    ...holder,
    ...(sandbox === undefined ? {} : { sandbox }),
    operationClass,
    method,
    pathDigest: sha256Of(target),
    ...(bodyDigest === undefined ? {} : { bodyDigest }),
    ...(streamId === undefined ? {} : { streamId }),
    nonce: randomBytes(16).toString('base64url'),
    notBeforeMs: nowMs,
    notAfterMs: nowMs + lifetimeMs,
  };
  return check(TicketClaims, claims, 'ticket');
}

/** Ties a stream to its ticket; both travel with the request. */
export function newStreamId(): string {
  return randomBytes(16).toString('base64url');
}

export function signedPart(keyId: string, claims: string): string {
  return `${TICKET_PREFIX}.${keyId}.${claims}`;
}

export function lifetimeFits({ notBeforeMs, notAfterMs }: TicketClaims): boolean {
  return notAfterMs > notBeforeMs && notAfterMs - notBeforeMs <= TICKET_LIFETIME_MS_MAX;
}

function checkLifetime(claims: TicketClaims): void {
  if (lifetimeFits(claims)) return;
  throw new DsecError(
    'invalid-argument',
    `a ticket lives longer than 0 and at most ${TICKET_LIFETIME_MS_MAX} ms`,
  );
}
