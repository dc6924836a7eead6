import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { NameRule } from '../rules/compiled.ts';
import type { DenialReason } from '../seams.ts';
import type { Flow, FlowTarget } from './flows.ts';
import type { RequestContext } from './request-target.ts';

/** One connection that speaks HTTP/1, with what is known of it. */
export interface HttpConnection extends RequestContext {
  readonly flow: Flow;
  /** It came in TLS that ends here, so the outside is reached by verified TLS as well. */
  readonly isTls: boolean;
  /** The rule that opens the target now, or a typed refusal. Reports the denial. */
  judge(name: string, port: number): NameRule;
  deny(reason: DenialReason, name?: string, port?: number): void;
  /** The value of a secret that a rule injects. */
  secret(name: string): string | undefined;
  /** Takes over a connection that became a tunnel to one name. */
  tunnel(socket: Socket, target: FlowTarget): void;
}

export type ServeIndex = (exchange: HttpExchange) => Promise<void>;

/** A judged request with its answer, and the way out. */
export interface HttpExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly connection: HttpConnection;
  readonly target: FlowTarget;
  readonly path: string;
  /** The request's headers as they go out, credentials aside. */
  readonly headers: readonly string[];
  /** Sends a request out; resolves with the head of its answer. */
  send(path: string, headers: readonly string[]): Promise<IncomingMessage>;
  deny(reason: DenialReason): void;
}
