import { KIB, MINUTE_MS, SECOND_MS } from '@dsec/std';
import type { TokenBucketLimits } from '../token-bucket.ts';

export interface EgressLimits {
  readonly connectionsPerSandboxMax: number;
  readonly connectionsMax: number;
  /** New connections of one sandbox. */
  readonly connectionRate: TokenBucketLimits;
  /** Ways out of one sandbox that are being opened: it waits for name servers and hosts by itself. */
  readonly openingPerSandboxMax: number;
  /** For a ClientHello, or for the head of each request, to arrive whole. */
  readonly startTimeoutMs: number;
  /** For the proof of a certificate, and for a connection, each. */
  readonly connectTimeoutMs: number;
  /** Without a byte in either direction. */
  readonly idleTimeoutMs: number;
  /** Pieces in which a ClientHello may come: each is work. */
  readonly startPiecesMax: number;
  readonly requestHeadBytesMax: number;
  readonly requestHeadersMax: number;
  /** Requests that a client may send before their answers. */
  readonly requestsInTurnMax: number;
  /** Addresses of a name that are tried. */
  readonly addressesTriedMax: number;
}

export const EGRESS_LIMITS: EgressLimits = {
  connectionsPerSandboxMax: 256,
  connectionsMax: 16_384,
  connectionRate: { perSecond: 200, burst: 400 },
  openingPerSandboxMax: 32,
  startTimeoutMs: 10 * SECOND_MS,
  connectTimeoutMs: 10 * SECOND_MS,
  idleTimeoutMs: 15 * MINUTE_MS,
  startPiecesMax: 256,
  requestHeadBytesMax: 32 * KIB,
  requestHeadersMax: 100,
  requestsInTurnMax: 16,
  addressesTriedMax: 3,
};
