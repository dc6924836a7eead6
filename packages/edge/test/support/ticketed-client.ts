/** What an apiserver would be to an edge: it makes a ticket for each request. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  formatTarget,
  isStreamRoute,
  type ParamsOf,
  type QueryOf,
  type Route,
  SANDBOX_HEADER,
  STREAM_HEADER,
  TICKET_HEADER,
  type TicketClaims,
} from '@dsec/protocol';
import { type Clock, type SandboxId, systemClock } from '@dsec/std';
import {
  type CallInput,
  type CallReply,
  callRoute,
  connectWebSocket,
  createHttpClient,
  newStreamId,
  newTicketClaims,
  RETRY_POLICY,
  sha256Of,
  signTicket,
  type WebSocketChannel,
} from '@dsec/transport';

export const KEY_ID = 'test-key';

/** A new edge refuses tickets from before its start, and for a skew's length after it. */
const AHEAD_MS = 2000;
const ahead: Clock = { ...systemClock, wallMs: () => systemClock.wallMs() + AHEAD_MS };

/** Changes to what ticket and request say, for tickets that do not fit. */
export interface Forgery {
  readonly claims?: (claims: TicketClaims) => TicketClaims;
  readonly privateKey?: KeyObject;
  readonly streamId?: string;
}

export interface CallChanges {
  readonly signal?: AbortSignal;
  readonly idempotencyKey?: string;
  /** Of a sandbox to be made. */
  readonly newId?: SandboxId;
}

export interface TicketedClient {
  /** The headers of a request, with a ticket for it. */
  headersOf(
    route: Route,
    target: string,
    body: string | undefined,
    forgery?: Forgery & { readonly newId?: SandboxId | undefined },
  ): Record<string, string>;
  call<R extends Route>(
    route: R,
    input: CallInput<R>,
    changes?: CallChanges,
  ): Promise<CallReply<R>>;
  socket<R extends Route>(
    route: R,
    params: ParamsOf<R>,
    query: QueryOf<R>,
  ): Promise<WebSocketChannel>;
  close(): Promise<void>;
}

export interface Holder {
  readonly edge: string;
  readonly project: string;
  readonly principal: string;
}

export const newTicketKeys = () => generateKeyPairSync('ed25519');

export function createTicketedClient(
  baseUrl: string,
  holder: Holder,
  privateKey: KeyObject,
): TicketedClient {
  const client = createHttpClient({
    ...{ baseUrl, deadlineMs: 120_000 },
    // A ticket is good for one attempt.
    retries: { ...RETRY_POLICY, attemptsMax: 1 },
  });
  const headersOf: TicketedClient['headersOf'] = (route, target, body, forgery = {}) => {
    const { newId } = forgery;
    const streamId = isStreamRoute(route) ? newStreamId() : undefined;
    const request = {
      ...{ sandbox: newId ?? sandboxIn(route, target), method: route.method, target, streamId },
      operationClass: route.operationClass as TicketClaims['operationClass'],
      bodyDigest: body === undefined ? undefined : sha256Of(body),
    };
    const claims = newTicketClaims(request, holder, 20_000, ahead);
    const signed = forgery.claims?.(claims) ?? claims;
    const sentStream = forgery.streamId ?? streamId;
    return {
      [TICKET_HEADER]: signTicket(signed, forgery.privateKey ?? privateKey, KEY_ID),
      ...(sentStream === undefined ? {} : { [STREAM_HEADER]: sentStream }),
      ...(newId === undefined ? {} : { [SANDBOX_HEADER]: newId }),
    };
  };
  return {
    headersOf,
    async call(route, input, { newId, ...changes } = {}) {
      const { params = {}, query = {}, body } = input as Readonly<Record<string, unknown>>;
      const target = formatTarget(route, params as never, query as never);
      const sent = route.body.kind === 'json' ? JSON.stringify(body) : undefined;
      const headers = headersOf(route, target, sent, { newId });
      return callRoute(client, route, input, { ...changes, headers });
    },
    socket(route, params, query) {
      const target = formatTarget(route, params, query);
      return connectWebSocket({ baseUrl, target, headers: headersOf(route, target, undefined) });
    },
    close: () => client.close(),
  };
}

function sandboxIn(route: Route, target: string): SandboxId | undefined {
  const pattern = route.path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)');
  const match = new RegExp(`^${pattern}$`).exec(target.split('?')[0] ?? '');
  const id = match?.groups?.sandboxId;
  return id === undefined ? undefined : (decodeURIComponent(id) as SandboxId);
}
