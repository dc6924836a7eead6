import { generateKeyPairSync, type KeyObject, timingSafeEqual, verify } from 'node:crypto';
import { isValid, TICKET_LIFETIME_MS_MAX, TicketClaims } from '@dsec/protocol';
import { type Clock, DsecError, type EdgeId, SECOND_MS, systemClock } from '@dsec/std';
import { sha256Of } from './digest.ts';
import { createNonceMemory } from './nonce-memory.ts';
import {
  KEY_ID,
  lifetimeFits,
  signedPart,
  TICKET_BYTES_MAX,
  TICKET_PREFIX,
  type TicketRequest,
} from './ticket.ts';

export interface TicketVerifierOptions {
  /** Public keys of the apiservers by key id. Several may be valid at once, so that keys can be changed. */
  readonly publicKeys: ReadonlyMap<string, KeyObject>;
  readonly edgeId: EdgeId;
  readonly clock?: Clock;
  /** How far an apiserver's clock may be off. */
  readonly skewMs?: number;
  /** Tickets accepted within the life of a ticket; more are `overloaded`. */
  readonly nonceCapacity?: number;
}

export interface TicketVerifier {
  /**
   * Accepts a ticket for exactly this request, once, and returns its claims. Every mismatch is
   * `unauthenticated`, after the same work and in the same words. A good ticket can be
   * `overloaded`, or `unavailable` right after the start: what an earlier process accepted is not
   * known.
   */
  verify(ticket: string, request: TicketRequest): TicketClaims;
  /** Replaces the keys. Tickets of a key that is gone are refused from now on. */
  setPublicKeys(publicKeys: ReadonlyMap<string, KeyObject>): void;
}

/**
 * Checks tickets at an edge (THREATS F1): public keys only, so an edge that is taken over cannot
 * make one.
 */
export function createTicketVerifier(options: TicketVerifierOptions): TicketVerifier {
  const {
    edgeId,
    clock = systemClock,
    skewMs = 2 * SECOND_MS,
    nonceCapacity = 1_000_000,
  } = options;
  let { publicKeys } = options;
  const nonces = createNonceMemory(nonceCapacity);
  /** Verifies what names no key of ours, so that an unknown key costs what a known one does. */
  const decoy = generateKeyPairSync('ed25519').publicKey;
  const startMs = clock.wallMs();
  const startMonotonicMs = clock.monotonicMs();
  /** Whether a process before this one may have accepted the ticket. */
  const mayBeUsed = ({ notBeforeMs }: TicketClaims) =>
    notBeforeMs < startMs + skewMs &&
    clock.monotonicMs() - startMonotonicMs < TICKET_LIFETIME_MS_MAX + 2 * skewMs;

  return {
    verify(ticket, request) {
      const claims = openTicket(ticket, publicKeys, decoy);
      const nowMs = clock.wallMs();
      const expected = claims === undefined ? undefined : describe(claims);
      const actual = describeRequest(request, edgeId);
      const isMeant = sameText(expected ?? '', actual);
      const isTimely = claims !== undefined && isNow(claims, nowMs, skewMs);
      if (claims === undefined || !isMeant || !isTimely) throw refusal();
      const expiresMs = claims.notAfterMs + skewMs;
      if (expiresMs <= nonces.forgottenThroughMs) throw refusal();
      if (mayBeUsed(claims)) {
        throw new DsecError('unavailable', 'this edge has just started; try again', {
          details: { begun: false },
        });
      }
      if (!nonces.use(claims.nonce, expiresMs, nowMs)) throw refusal();
      return claims;
    },
    setPublicKeys(keys) {
      publicKeys = keys;
    },
  };
}

function refusal(): DsecError {
  return new DsecError('unauthenticated', 'the ticket is not valid for this request');
}

/** The claims of a ticket whose signature holds. Nothing inside is looked at before that. */
function openTicket(
  ticket: string,
  publicKeys: ReadonlyMap<string, KeyObject>,
  decoy: KeyObject,
): TicketClaims | undefined {
  const isShort = ticket.length <= TICKET_BYTES_MAX;
  const [prefix, keyId = '', claims = '', signature = '', ...rest] = isShort
    ? ticket.split('.')
    : [];
  const key = publicKeys.get(keyId);
  const isSigned = verify(
    null,
    Buffer.from(signedPart(keyId, claims)),
    key ?? decoy,
    Buffer.from(signature, 'base64url'),
  );
  if (prefix !== TICKET_PREFIX || rest.length > 0 || !KEY_ID.test(keyId)) return undefined;
  if (!isSigned || key === undefined || !isCanonical(signature)) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8'));
    return isValid(TicketClaims, value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Decoders pass over what is not base64url, so one signature could be written in many ways. */
function isCanonical(text: string): boolean {
  return Buffer.from(text, 'base64url').toString('base64url') === text;
}

function isNow(claims: TicketClaims, nowMs: number, skewMs: number): boolean {
  const hasBegun = claims.notBeforeMs <= nowMs + skewMs;
  const hasNotEnded = nowMs <= claims.notAfterMs + skewMs;
  return lifetimeFits(claims) && hasBegun && hasNotEnded;
}

/** All that a ticket ties together, as one text that either side can write. */
function describe(claims: TicketClaims): string {
  const { edge, sandbox, operationClass, method, pathDigest, bodyDigest, streamId } = claims;
  return JSON.stringify([
    ...[edge, sandbox ?? null, operationClass, method],
    ...[pathDigest, bodyDigest ?? null, streamId ?? null],
  ]);
}

function describeRequest(request: TicketRequest, edge: EdgeId): string {
  const { sandbox, operationClass, method, target, bodyDigest, streamId } = request;
  return JSON.stringify([
    ...[edge, sandbox ?? null, operationClass, method],
    ...[sha256Of(target), bodyDigest ?? null, streamId ?? null],
  ]);
}

function sameText(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(sha256Of(a)), Buffer.from(sha256Of(b)));
}
