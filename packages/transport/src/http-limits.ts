import { JSON_BODY_BYTES_MAX } from '@dsec/protocol';
import { KIB, SECOND_MS } from '@dsec/std';
import { WEBSOCKET_LIMITS, type WebSocketLimits } from './websocket-channel.ts';

export interface HttpServerLimits {
  /** Connections open at a time; further ones are closed at once. */
  readonly connectionsMax: number;
  /** Request line and headers together. */
  readonly headerBytesMax: number;
  readonly headersMax: number;
  /** Path and query. Paths of files may be 4,095 bytes of any value, so 12 KiB in percent encoding. */
  readonly targetBytesMax: number;
  readonly jsonBodyBytesMax: number;
  /** Time for the whole head of a request to arrive. */
  readonly headersTimeoutMs: number;
  /** Time for a whole JSON body to arrive. */
  readonly bodyTimeoutMs: number;
  /** A peer that neither sends nor takes what it should for this long is cut off. */
  readonly stallTimeoutMs: number;
  /** How long a connection without a request is kept. */
  readonly keepAliveTimeoutMs: number;
  /** After a refusal, how long the rest of a body is still read, so that the peer can read the answer. */
  readonly lingerMs: number;
  readonly webSocket: WebSocketLimits;
}

export const HTTP_SERVER_LIMITS: HttpServerLimits = {
  connectionsMax: 16_384,
  headerBytesMax: 32 * KIB,
  headersMax: 64,
  targetBytesMax: 16 * KIB,
  jsonBodyBytesMax: JSON_BODY_BYTES_MAX,
  headersTimeoutMs: 10 * SECOND_MS,
  bodyTimeoutMs: 30 * SECOND_MS,
  stallTimeoutMs: 120 * SECOND_MS,
  keepAliveTimeoutMs: 75 * SECOND_MS,
  lingerMs: 2 * SECOND_MS,
  webSocket: WEBSOCKET_LIMITS,
};
