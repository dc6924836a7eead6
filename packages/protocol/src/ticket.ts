import Type, { type Static } from 'typebox';
import {
  digest,
  edgeId,
  instantMs,
  jobId,
  principalId,
  projectId,
  record,
  sandboxId,
  words,
} from './names.ts';

/**
 * What an operation does, for tickets and for the scopes of keys: a route has one class, a ticket names
 * one, a key holds a set of them.
 */
export const OPERATION_CLASSES = [
  'sandboxes:read',
  'sandboxes:write',
  'exec',
  'files:read',
  'files:write',
  'ports',
  'layers:read',
  'layers:write',
  'grading',
  'policies:loosen',
  'keys',
  'node',
] as const;
export const OperationClass = words('OperationClass', OPERATION_CLASSES);
export type OperationClass = Static<typeof OperationClass>;

/** A ticket is valid for at most this long. */
export const TICKET_LIFETIME_MS_MAX = 30_000;

/**
 * What an apiserver signs (Ed25519) when it forwards a request to an edge, and all that the edge believes
 * about the caller (THREATS F1). The ticket serves one request: `pathDigest` and, for a request with a body
 * that is not a stream, `bodyDigest` tie it to this one, and the edge keeps `nonce` until `notAfterMs`. A
 * streamed body, a download or a WebSocket has `streamId` instead, which the edge accepts once. Signature
 * and encoding are in `@dsec/transport`.
 */
export const TicketClaims = record('TicketClaims', {
  version: Type.Literal(1),
  edge: edgeId,
  /** Absent for operations on the edge itself. */
  sandbox: Type.Optional(sandboxId),
  project: projectId,
  principal: principalId,
  job: Type.Optional(jobId),
  /** The caller's key has the scope `grading`: it may make and reach sandboxes that grade. */
  mayGrade: Type.Optional(Type.Boolean()),
  operationClass: OperationClass,
  method: words('Method', ['GET', 'POST', 'PUT', 'DELETE']),
  /** sha256 of the request target as sent (path and query): paths may be longer than a header allows. */
  pathDigest: digest,
  bodyDigest: Type.Optional(digest),
  streamId: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_-]{22}$' })),
  nonce: Type.String({ pattern: '^[A-Za-z0-9_-]{22}$' }),
  notBeforeMs: instantMs(),
  /** At most TICKET_LIFETIME_MS_MAX after `notBeforeMs`. */
  notAfterMs: instantMs(),
});
export type TicketClaims = Static<typeof TicketClaims>;
