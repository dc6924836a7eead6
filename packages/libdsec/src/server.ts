import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { formatTarget, type ParamsOf, type QueryOf, type Route } from '@dsec/protocol';
import { MINUTE_MS, SECOND_MS } from '@dsec/std';
import {
  type BytesReply,
  type CallInput,
  type CallReply,
  callRoute,
  connectWebSocket,
  createHttpClient,
  REQUEST_ID_HEADER,
  type RetryPolicy,
  type WebSocketChannel,
} from '@dsec/transport/client';
import { askedOf } from './asked.ts';
import { CancelledError, clientErrorOf, InvalidArgumentError } from './errors.ts';
import { type FoundServer, keyFromFile } from './settings.ts';

export interface CallSettings {
  readonly signal?: AbortSignal | undefined;
  /** Absent: the client's own. Of a stream it limits the time to its beginning. */
  readonly timeoutMs?: number | undefined;
  /** Absent, where the operation needs one: a new one, kept over the attempts of this call. */
  readonly idempotencyKey?: string | undefined;
  /** A stream that is silent for longer is `unavailable`. Absent: it may be. */
  readonly silenceMs?: number | undefined;
}

/** The server of a client. Errors come as the classes of this package. */
export interface Server {
  readonly timeoutMs: number;
  call<R extends Route>(
    route: R,
    input: CallInput<R>,
    settings?: CallSettings,
  ): Promise<CallReply<R>>;
  connect<R extends Route>(
    route: R,
    params: ParamsOf<R>,
    query: QueryOf<R>,
    settings?: CallSettings,
  ): Promise<WebSocketChannel>;
  close(): Promise<void>;
}

/** For a call that says nothing else. */
export const TIMEOUT_MS = MINUTE_MS;
/** One that answers, or has answered, comes back: the time of the call is the limit. */
const RETRIES: RetryPolicy = { attemptsMax: 60, firstDelayMs: 50, delayMsMax: 2 * SECOND_MS };
/** Where nobody has ever answered there may well be no server. */
const RETRIES_AT_FIRST: RetryPolicy = { ...RETRIES, unreachedAttemptsMax: 4 };
/** Only binds the Host header; no name is looked up. */
const SOCKET_BASE_URL = 'http://localhost';

export interface ServerOptions extends FoundServer {
  readonly timeoutMs: number;
}

export function createServer({ timeoutMs, ...found }: ServerOptions): Server {
  const address = { ...addressOf(found.url), ...trustOf(found.caFile) };
  const http = createHttpClient({ ...address, deadlineMs: timeoutMs });
  const key = createKey(found);
  const channels = new Set<WebSocketChannel>();
  let isOpen = true;
  let hasAnswered = false;
  const checkOpen = () => {
    if (!isOpen) throw new CancelledError('cancelled', 'the client was closed');
  };

  return {
    timeoutMs,
    async call(route, input, { signal, timeoutMs: deadlineMs, idempotencyKey, silenceMs } = {}) {
      checkOpen();
      const requestId = randomUUID();
      const once = idempotencyKey ?? (route.effect === 'keyed' ? randomUUID() : undefined);
      try {
        const reply = await key.use(isReplayable(input), (headers) =>
          callRoute(http, route, input, {
            headers: { ...headers, [REQUEST_ID_HEADER]: requestId },
            ...{ signal, deadlineMs, silenceMs, idempotencyKey: once },
            retries: hasAnswered ? RETRIES : RETRIES_AT_FIRST,
          }),
        );
        hasAnswered = true;
        return withClientErrors(route, reply, requestId);
      } catch (thrown) {
        throw clientErrorOf(thrown, requestId, askedOf(input));
      }
    },
    async connect(route, params, query, { signal, timeoutMs: deadlineMs = timeoutMs } = {}) {
      checkOpen();
      const requestId = randomUUID();
      try {
        const channel = await key.use(true, (headers) =>
          connectWebSocket({
            ...address,
            target: formatTarget(route, params, query),
            headers: { ...headers, [REQUEST_ID_HEADER]: requestId },
            deadlineMs,
            ...(signal === undefined ? {} : { signal }),
          }),
        );
        channels.add(channel);
        void channel.closed.then(() => channels.delete(channel));
        return channel;
      } catch (thrown) {
        throw clientErrorOf(thrown, requestId, askedOf({ params }));
      }
    },
    async close() {
      isOpen = false;
      const reason = new CancelledError('cancelled', 'the client was closed');
      await Promise.all([...channels].map((channel) => channel.close(reason)));
      await http.close();
    },
  };
}

/** A stream is sent once, whatever becomes of it. */
function isReplayable({ body }: { readonly body?: unknown }): boolean {
  return typeof body !== 'object' || body === null || !(Symbol.asyncIterator in body);
}

/** The key of a client. When it is refused and came from a file, the file may hold another by now. */
function createKey({ url, apiKey, keyFile }: FoundServer) {
  let current = apiKey;
  const headersOf = (secret: string) => ({ authorization: `Bearer ${secret}` });
  return {
    async use<T>(mayRepeat: boolean, ask: (headers: Record<string, string>) => Promise<T>) {
      const used = current;
      try {
        return await ask(headersOf(used));
      } catch (thrown) {
        if ((thrown as { code?: unknown }).code !== 'unauthenticated' || !keyFile) throw thrown;
        if (current === used) current = keyFromFile(keyFile, url) ?? used;
        if (current === used || !mayRepeat) throw thrown;
        return ask(headersOf(current));
      }
    },
  };
}

function trustOf(caFile: string | undefined): { readonly ca?: string } {
  if (caFile === undefined) return {};
  try {
    return { ca: [...rootCertificates, readFileSync(caFile, 'utf8')].join('\n') };
  } catch (cause) {
    throw new InvalidArgumentError('invalid-argument', `${caFile} cannot be read`, { cause });
  }
}

function addressOf(url: string): { readonly baseUrl: string; readonly socketPath?: string } {
  if (url.startsWith('unix:/')) {
    return { baseUrl: SOCKET_BASE_URL, socketPath: url.slice('unix:'.length) };
  }
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const isPlain = parsed?.pathname === '/' && parsed.search === '' && parsed.hash === '';
  if (parsed !== undefined && isPlain && ['http:', 'https:'].includes(parsed.protocol)) {
    return { baseUrl: parsed.origin };
  }
  throw new InvalidArgumentError(
    'invalid-argument',
    'the url of a server is http://host:port or unix:/path',
  );
}

/** What is read later fails with the same classes. */
function withClientErrors<R extends Route>(route: R, reply: CallReply<R>, requestId: string) {
  switch (route.reply.kind) {
    case 'bytes': {
      const { headers, body } = reply as BytesReply;
      return { headers, body: translated(body, requestId) } as CallReply<R>;
    }
    case 'lines':
    case 'events':
      return translated(reply as AsyncIterable<unknown>, requestId) as CallReply<R>;
    default:
      return reply;
  }
}

async function* translated<T>(items: AsyncIterable<T>, requestId: string): AsyncGenerator<T> {
  try {
    yield* items;
  } catch (thrown) {
    throw clientErrorOf(thrown, requestId);
  }
}
