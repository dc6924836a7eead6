/** One edge as an apiserver sees it: where it is, tickets for it, and connections to it. */
import {
  type BodyOf,
  check,
  formatTarget,
  IDEMPOTENCY_HEADER,
  isStreamRoute,
  type ParamsOf,
  type QueryOf,
  type ReplyOf,
  type Route,
  SANDBOX_HEADER,
} from '@dsec/protocol';
import {
  type Clock,
  DsecError,
  type EdgeId,
  KIB,
  MIB,
  MINUTE_MS,
  type Random,
  type ShardId,
} from '@dsec/std';
import {
  createHttpForwarder,
  errorOfBody,
  type ForwardReply,
  type HttpForwarder,
  type ListenAddress,
  REQUEST_ID_HEADER,
  sha256Of,
  startDeadline,
  TRACEPARENT_HEADER,
} from '@dsec/transport';
import { attempts } from './attempts.ts';
import {
  createTicketSigner,
  type TicketHolder,
  type TicketKey,
  type TicketSigner,
} from './ticket-signer.ts';

/** As the operator configures it: a sandbox id names an edge by id, never by address (THREATS F3). */
export interface EdgeAddress {
  readonly edgeId: EdgeId;
  readonly shardId: ShardId;
  readonly address: ListenAddress;
}

export interface EdgeLinkOptions {
  readonly edge: EdgeAddress;
  readonly ticketKey: TicketKey;
  readonly clock: Clock;
  readonly random: Random;
}

export interface EdgeCallInput<R extends Route> {
  readonly params?: ParamsOf<R>;
  readonly query?: QueryOf<R>;
  readonly body?: BodyOf<R>;
  /** Of a create: the id that the sandbox is to have. */
  readonly newSandbox?: string;
}

export interface EdgeCallOptions {
  readonly holder: TicketHolder;
  readonly signal: AbortSignal;
  readonly idempotencyKey?: string;
  readonly requestId?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly deadlineMs?: number;
  readonly patienceMs?: number;
  /** Asked again only where the request cannot have been begun with. */
  readonly onlyUnsent?: boolean;
}

export interface EdgeLink extends EdgeAddress {
  /** It runs on this machine, and ends with it: it is reached by a socket file. */
  readonly isLocal: boolean;
  readonly sign: TicketSigner;
  readonly http: HttpForwarder;
  /**
   * A JSON operation of the edge for `holder`; asked again, with another ticket, where that does no harm.
   * Rejects with the edge's own error, or `unavailable`.
   */
  call<R extends Route>(
    route: R,
    input: EdgeCallInput<R>,
    options: EdgeCallOptions,
  ): Promise<ReplyOf<R>>;
  close(): Promise<void>;
}

const ERROR_BYTES_MAX = 64 * KIB;
/** A page of a thousand sandboxes with long specs. */
const REPLY_BYTES_MAX = 64 * MIB;
const DEADLINE_MS = 3 * MINUTE_MS;

export function createEdgeLink({ edge, ticketKey, clock, random }: EdgeLinkOptions): EdgeLink {
  const sign = createTicketSigner(edge.edgeId, ticketKey, clock);
  const http = createHttpForwarder({ address: edge.address });
  return {
    ...edge,
    ...{ sign, http, isLocal: 'socketPath' in edge.address },
    async call(route, input, options) {
      const { holder, idempotencyKey, deadlineMs = DEADLINE_MS, patienceMs } = options;
      const request = requestOf(route, input, options);
      const deadline = startDeadline(deadlineMs, options.signal);
      const { signal } = deadline;
      const attempt = async () => {
        const ticket = sign({ ...request.bound, isStream: isStreamRoute(route) }, holder);
        const headers = { ...request.headers, ...ticket };
        const { method, target } = request.bound;
        const reply = await http.send({ method, target, headers, body: request.body, signal });
        const body = await (await successOf(reply)).read(REPLY_BYTES_MAX);
        return answerOf(route, body);
      };
      const isRepeatable = route.effect !== 'keyed' || idempotencyKey !== undefined;
      const mayRepeat = isRepeatable && options.onlyUnsent !== true;
      const patience = patienceMs === undefined ? {} : { patienceMs };
      try {
        return await attempts(attempt, { clock, random, signal, mayRepeat, ...patience });
      } finally {
        deadline.stop();
      }
    },
    close: () => http.close(),
  };
}

/** The reply if it is a success; throws what the edge says otherwise. */
export async function successOf(reply: ForwardReply): Promise<ForwardReply> {
  if (reply.status >= 200 && reply.status < 300) return reply;
  throw asSeenByCaller(errorOfBody(reply.status, await reply.read(ERROR_BYTES_MAX)));
}

/** That an edge does not believe us is no fault of the caller's key. */
export function asSeenByCaller(error: DsecError): DsecError {
  if (error.code !== 'unauthenticated') return error;
  return new DsecError('unavailable', 'the edge does not take tickets of this apiserver', {
    cause: error,
  });
}

function requestOf<R extends Route>(
  route: R,
  { params, query, body, newSandbox }: EdgeCallInput<R>,
  { idempotencyKey, requestId, traceparent }: EdgeCallOptions,
) {
  const target = formatTarget(route, (params ?? {}) as ParamsOf<R>, (query ?? {}) as QueryOf<R>);
  const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  const sandbox = newSandbox ?? (params as { sandboxId?: string } | undefined)?.sandboxId;
  const { operationClass, method } = route;
  if (operationClass === 'none') throw new DsecError('internal', 'an open route needs no ticket');
  return {
    body: bytes,
    bound: {
      ...{ operationClass, method, target, sandbox },
      bodyDigest: bytes === undefined ? undefined : sha256Of(bytes),
    },
    headers: {
      ...(bytes === undefined ? {} : { 'content-type': 'application/json' }),
      ...(newSandbox === undefined ? {} : { [SANDBOX_HEADER]: newSandbox }),
      ...(idempotencyKey === undefined ? {} : { [IDEMPOTENCY_HEADER]: idempotencyKey }),
      ...(requestId === undefined ? {} : { [REQUEST_ID_HEADER]: requestId }),
      ...(traceparent === undefined ? {} : { [TRACEPARENT_HEADER]: traceparent }),
    },
  };
}

function answerOf<R extends Route>(route: R, body: Buffer): ReplyOf<R> {
  if (route.reply.kind !== 'json') return undefined as ReplyOf<R>;
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return check(route.reply.schema, value, 'answer') as ReplyOf<R>;
  } catch (cause) {
    throw new DsecError('protocol', 'the answer of the edge does not fit its route', { cause });
  }
}
