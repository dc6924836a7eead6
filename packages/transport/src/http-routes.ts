import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { BodyOf, HeaderName, ParamsOf, QueryOf, ReplyOf, Route } from '@dsec/protocol';
import type { Digest, DsecError } from '@dsec/std';
import type { WebSocketChannel } from './websocket-channel.ts';

/** Between the route table and the code behind it: what a handler is given and what it gives. */

export type RouteTable = Readonly<Record<string, Route>>;

/** What is known of a request before anybody has said that it may go on. */
export interface RequestFacts {
  /** Its name in the route table. */
  readonly operation: string;
  readonly route: Route;
  readonly params: Readonly<Record<string, unknown>>;
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  /** Of a JSON body; `undefined` without a body and for streams. */
  readonly bodyDigest: Digest | undefined;
  readonly requestId: string;
  /** W3C trace context: the caller's, or a new one. */
  readonly traceparent: string;
}

/** Decides who is calling; throws `unauthenticated` or `permission-denied`. */
export type Authorizer<Principal> = (facts: RequestFacts) => Promise<Principal>;

export interface Call<Principal> extends RequestFacts {
  readonly principal: Principal;
  readonly idempotencyKey: string | undefined;
  /**
   * Aborts with `cancelled` when the caller is gone, and with `unavailable` when the server closes:
   * at once for events and WebSockets, which can be taken up again elsewhere, at the end of its
   * patience for everything else.
   */
  readonly signal: AbortSignal;
}

/** How a request ended, for logs and metrics: no header, no query and no body. */
export interface AnsweredRequest<Principal> {
  /** Its name in the route table; absent when it met no route. */
  readonly operation: string | undefined;
  readonly requestId: string;
  /** Of the answer; 101 for a WebSocket that was opened, 499 when the caller left before the end. */
  readonly status: number;
  /** Why it failed. */
  readonly error: DsecError | undefined;
  /** From its head to the end of the answer. */
  readonly durationMs: number;
  /** Present when it was let in. */
  readonly call: Call<Principal> | undefined;
}

export interface RouteInput<R extends Route> {
  readonly params: ParamsOf<R>;
  readonly query: QueryOf<R>;
  /**
   * The checked JSON; for a route of bytes the stream, read as fast as the handler takes it. It
   * throws `cancelled` when the caller breaks off.
   */
  readonly body: R['body'] extends { readonly kind: 'bytes' }
    ? AsyncIterable<Uint8Array>
    : BodyOf<R>;
}

export interface BytesAnswer {
  readonly headers?: Partial<Record<HeaderName, string>>;
  /** Sent as fast as the caller takes it. An error before the first byte becomes an error response. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface EventAnswer<T> {
  /** The cursor, by which a caller goes on. */
  readonly id: string;
  readonly data: T;
}

interface AnswerByKind<R extends Route> {
  readonly empty: undefined;
  readonly json: ReplyOf<R>;
  readonly bytes: BytesAnswer;
  readonly text: string;
  readonly lines: AsyncIterable<ReplyOf<R>>;
  /**
   * `undefined` is sent as a sign of life. The reply begins with the first item, which comes as soon as
   * nothing can be missed any more.
   */
  readonly events: AsyncIterable<EventAnswer<ReplyOf<R>> | undefined>;
  readonly socket: never;
}

export type RouteAnswer<R extends Route> = AnswerByKind<R>[R['reply']['kind']];

/**
 * A handler of a WebSocket route owns the channel until it returns; then, or when it throws, the
 * channel is closed.
 */
export type RouteHandler<R extends Route, Principal> = R['reply'] extends {
  readonly kind: 'socket';
}
  ? (input: RouteInput<R>, call: Call<Principal>, channel: WebSocketChannel) => Promise<void>
  : (input: RouteInput<R>, call: Call<Principal>) => Promise<RouteAnswer<R>>;

/** Handlers by operation. A route without one does not exist on this server. */
export type RouteHandlers<Table extends RouteTable, Principal> = {
  readonly [Id in keyof Table]?: RouteHandler<Table[Id], Principal>;
};

/** A connection that is no longer HTTP, with what has been read of it already. */
export interface UpgradedConnection {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** A request whose answer comes from somewhere else, as it is. */
export interface Exchange {
  readonly request: IncomingMessage;
  /** Of a route of JSON: the body as it came, not looked at. Absent where there is none. */
  readonly body: Buffer | undefined;
  /** From here on the answer, its head included, is the forwarder's. */
  begin(): ServerResponse;
  /** Of a WebSocket: from here on the connection is the forwarder's. `invalid-argument` if it is none. */
  take(): UpgradedConnection;
}

/**
 * Answers a request by passing it on. What it throws before it has begun is answered as any error; after
 * that it must have broken off the answer itself.
 */
export type Forward<Principal> = (call: Call<Principal>, exchange: Exchange) => Promise<void>;
