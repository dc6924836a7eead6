import { randomBytes } from 'node:crypto';

export const REQUEST_ID_HEADER = 'x-request-id';
export const TRACEPARENT_HEADER = 'traceparent';

const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The caller's request id where it is one, else a new one. */
export function requestIdOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && REQUEST_ID.test(header) ? header : newRequestId();
}

export function newRequestId(): string {
  return randomBytes(12).toString('base64url');
}

/** The caller's W3C trace context where it is valid, else the beginning of a new trace, not sampled. */
export function traceparentOf(header: string | string[] | undefined): string {
  return typeof header === 'string' && TRACEPARENT.test(header) ? header : newTraceparent();
}

export function newTraceparent(): string {
  const hex = randomBytes(24).toString('hex');
  return `00-${hex.slice(0, 32)}-${hex.slice(32)}-00`;
}
