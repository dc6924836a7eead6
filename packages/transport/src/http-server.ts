import type { Server } from 'node:http';
import { type Route, routerPath } from '@dsec/protocol';
import { type Digest, DsecError, SECOND_MS, toErrorBody } from '@dsec/std';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { type CallLifetimes, createCallLifetimes } from './call-lifetimes.ts';
import { type CallRecords, createCallRecords } from './call-records.ts';
import { sha256Of } from './digest.ts';
import { type AnyHandler, dispatch, factsOf } from './http-dispatch.ts';
import { failureOf } from './http-errors.ts';
import { checkRequest, type Guard, hasBody } from './http-guard.ts';
import { HTTP_SERVER_LIMITS, type HttpServerLimits } from './http-limits.ts';
import { createRawServer, type ListenAddress, listen, loopbackHosts } from './http-listener.ts';
import { passOn } from './http-passing.ts';
import type {
  AnsweredRequest,
  Authorizer,
  Forward,
  RouteHandlers,
  RouteTable,
} from './http-routes.ts';
import { lingerAfter, watchStalls } from './http-stalls.ts';
import type { TlsFiles } from './tls-files.ts';
import { REQUEST_ID_HEADER, requestIdOf, TRACEPARENT_HEADER, traceparentOf } from './trace.ts';
import { createWebSocketUpgrades, type WebSocketUpgrades } from './websocket-upgrade.ts';

export interface HttpServerOptions<Table extends RouteTable, Principal> {
  readonly listen: ListenAddress;
  readonly routes: Table;
  readonly handlers: RouteHandlers<Table, Principal>;
  /** Of every operation that `isForwarded` and has no handler. */
  readonly forward?: Forward<Principal>;
  /** Default: none is. */
  readonly isForwarded?: (route: Route) => boolean;
  readonly authorize: Authorizer<Principal>;
  /**
   * Asked before a body is read into memory, when its digest is not known yet; so that strangers cannot make
   * the server hold theirs. Default: all are let on to `authorize`.
   */
  readonly admit?: Authorizer<unknown>;
  /**
   * How often `authorize` is asked again for streams and WebSockets that are under way, so that a right that
   * is taken away ends them too. Default: never.
   */
  readonly recheckMs?: number;
  /** Values of the Host header that are answered, with or without a port. Default: the names of loopback. */
  readonly allowedHosts?: readonly string[];
  /** Origins whose pages may call. Default: none. */
  readonly allowedOrigins?: readonly string[];
  readonly limits?: Partial<HttpServerLimits>;
  /** Absent: no TLS. */
  readonly tls?: TlsFiles;
  /** Told of faults of our own, which callers only see as `internal` with the request id. */
  readonly onFault?: (error: DsecError, requestId: string) => void;
  /** Told of every request when its answer has ended. */
  readonly onAnswered?: (answered: AnsweredRequest<Principal>) => void;
}

export interface HttpServer {
  /** Where it listens; with the port that the kernel chose for port 0. */
  readonly address: ListenAddress;
  /**
   * Accepts nothing new, ends event streams and WebSockets, lets other calls finish for
   * `patienceMs` (default 10 s), then cuts what is left. Resolves when every connection is gone.
   */
  close(patienceMs?: number): Promise<void>;
}

/** Starts a server for the routes that have a handler. Rejects when it cannot listen. */
export async function createHttpServer<Table extends RouteTable, Principal>(
  options: HttpServerOptions<Table, Principal>,
): Promise<HttpServer> {
  const limits = { ...HTTP_SERVER_LIMITS, ...options.limits };
  const lifetimes = createCallLifetimes();
  const { server, closeUnused } = createRawServer(
    limits,
    (request, response) => app.routing(request, response),
    options.tls,
  );
  const app = createApp(limits, () => server);
  const upgrades = createWebSocketUpgrades(
    server,
    (request, response) => app.routing(request, response),
    limits.webSocket,
  );
  let isClosing = false;
  const { recheckMs, authorize } = options;
  const rechecks =
    recheckMs === undefined ? undefined : every(recheckMs, () => lifetimes.recheck(authorize));
  const records = createCallRecords(options.onAnswered);
  addHooks(app, options, limits, records, () => isClosing);
  registerRoutes(app, options, limits, { lifetimes, upgrades, records });
  await app.ready();
  const address = await listen(server, options.listen);

  return {
    address,
    async close(patienceMs = 10 * SECOND_MS) {
      isClosing = true;
      clearInterval(rechecks);
      const error = new DsecError('unavailable', 'the server is closing');
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const sweep = setInterval(closeUnused, 50);
      const cut = setTimeout(() => {
        lifetimes.endAll(error);
        upgrades.destroyAll();
        server.closeAllConnections();
      }, patienceMs);
      lifetimes.endFollowers(error);
      await upgrades.closeAll(error);
      await closed;
      clearInterval(sweep);
      clearTimeout(cut);
      await app.close();
    },
  };
}

/** One after the other, however long each takes. */
function every(ms: number, work: () => Promise<void>): NodeJS.Timeout {
  let isBusy = false;
  return setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    void work().finally(() => {
      isBusy = false;
    });
  }, ms).unref();
}

function createApp(limits: HttpServerLimits, serverFactory: () => Server) {
  const app = fastify({
    serverFactory,
    bodyLimit: limits.jsonBodyBytesMax,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    genReqId: (request) => requestIdOf(request.headers[REQUEST_ID_HEADER]),
    routerOptions: { maxParamLength: limits.targetBytesMax },
    frameworkErrors: (error, request, reply) => {
      sendError(reply as FastifyReply, failureOf(error, request.id).told);
    },
  });
  app.removeContentTypeParser('text/plain');
  return app;
}

function addHooks<Table extends RouteTable, Principal>(
  app: FastifyInstance,
  options: HttpServerOptions<Table, Principal>,
  limits: HttpServerLimits,
  records: CallRecords<Principal>,
  isClosing: () => boolean,
): void {
  const guard: Guard = {
    allowedHosts: new Set(
      (options.allowedHosts ?? loopbackHosts(options.listen)).map((host) => host.toLowerCase()),
    ),
    allowedOrigins: new Set(options.allowedOrigins ?? []),
    headersMax: limits.headersMax,
    targetBytesMax: limits.targetBytesMax,
  };
  // Hooks that wait for nothing are no promises: a request passes them all.
  app.addHook('onRequest', (request, reply, done) => {
    records.begin(request, reply);
    // From here on every request has one.
    const traceparent = traceparentOf(request.headers[TRACEPARENT_HEADER]);
    request.headers[TRACEPARENT_HEADER] = traceparent;
    void reply.headers({
      [REQUEST_ID_HEADER]: request.id,
      [TRACEPARENT_HEADER]: traceparent,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    checkRequest(request.raw, guard);
    if (isClosing()) {
      throw new DsecError('unavailable', 'the server is closing', { details: { begun: false } });
    }
    // What clients say of a body that they do not send says nothing.
    if (!hasBody(request.raw)) delete request.headers['content-type'];
    watchStalls(request.raw, reply.raw, limits, isStream(request));
    done();
  });
  app.addHook('preParsing', async (request) => {
    if (!hasBody(request.raw)) return;
    const { operation } = request.routeOptions.config as { operation?: string };
    const route = operation === undefined ? undefined : options.routes[operation];
    if (operation === undefined || route === undefined) throw noOperation();
    await options.admit?.(factsOf(operation, route, request, undefined));
  });
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (isClosing()) void reply.header('connection', 'close');
    done(null, payload);
  });
  app.addHook('onResponse', (request, _reply, done) => {
    lingerAfter(request.raw, limits.lingerMs);
    done();
  });
  app.setNotFoundHandler(async () => {
    throw noOperation();
  });
  app.setErrorHandler(async (thrown, request, reply) => {
    const { error, told } = failureOf(thrown, request.id);
    if (error.code === 'internal') options.onFault?.(error, request.id);
    records.failed(request, error);
    // The rest of a body is read for a while instead, so that the caller gets to see the answer.
    reply.removeHeader('connection');
    return sendError(reply, told);
  });
}

const noOperation = () => new DsecError('not-found', 'there is no such operation');

function sendError(reply: FastifyReply, error: DsecError): FastifyReply {
  const json = JSON.stringify(toErrorBody(error));
  const { retryAfterMs } = error.details;
  if (typeof retryAfterMs === 'number') {
    void reply.header('retry-after', String(Math.max(1, Math.ceil(retryAfterMs / SECOND_MS))));
  }
  return reply.code(error.status).type('application/json').send(json);
}

const isStream = (request: FastifyRequest): boolean =>
  (request.routeOptions.config as { isStream?: boolean }).isStream === true;

interface SharedParts<Principal> {
  readonly lifetimes: CallLifetimes;
  readonly upgrades: WebSocketUpgrades;
  readonly records: CallRecords<Principal>;
}

function registerRoutes<Table extends RouteTable, Principal>(
  app: FastifyInstance,
  options: HttpServerOptions<Table, Principal>,
  limits: HttpServerLimits,
  shared: SharedParts<Principal>,
): void {
  const { authorize, handlers, forward, isForwarded = () => false } = options;
  const digests = new WeakMap<FastifyRequest, Digest>();
  const bodyDigestOf = (request: FastifyRequest) => digests.get(request);
  const onFault = options.onFault ?? (() => {});
  const common = { authorize, bodyDigestOf, onFault, ...shared };
  const add = (scope: FastifyInstance, operation: string, route: Route) => {
    const handler = handlers[operation] as AnyHandler<Principal> | undefined;
    const work = (request: FastifyRequest, reply: FastifyReply) => {
      if (handler !== undefined) {
        return dispatch({ operation, route, handler, ...common }, request, reply);
      }
      return passOn(
        { operation, route, forward: forward as Forward<Principal>, ...common },
        request,
        reply,
      );
    };
    scope.route({
      method: route.method,
      url: routerPath(route),
      config: { operation, isStream: route.body.kind === 'bytes' },
      handler: work,
    });
  };
  const entries = Object.entries(options.routes);
  const isHandled = ([id]: [string, Route]) => handlers[id] !== undefined;
  const isPassed = (entry: [string, Route]) =>
    !isHandled(entry) && forward !== undefined && isForwarded(entry[1]);
  const isBytes = ([, route]: [string, Route]) => route.body.kind === 'bytes';

  addJsonParser(app, limits, digests);
  for (const entry of entries) if (isHandled(entry) && !isBytes(entry)) add(app, ...entry);
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
    for (const entry of entries) {
      if (isBytes(entry) && (isHandled(entry) || isPassed(entry))) add(scope, ...entry);
    }
  });
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    addByteParser(scope, limits, digests);
    for (const entry of entries) if (isPassed(entry) && !isBytes(entry)) add(scope, ...entry);
  });
}

/** Bodies that are passed on: kept as they are, with their digest. */
function addByteParser(
  scope: FastifyInstance,
  limits: HttpServerLimits,
  digests: WeakMap<FastifyRequest, Digest>,
): void {
  scope.addContentTypeParser<Buffer>(
    '*',
    { parseAs: 'buffer', bodyLimit: limits.jsonBodyBytesMax },
    (request, body, done) => {
      if (body.length > 0) digests.set(request, sha256Of(body));
      done(null, body);
    },
  );
}

/**
 * Fastify's parser of JSON, which refuses `__proto__`, over bytes that must be UTF-8 and whose
 * digest is kept.
 */
function addJsonParser(
  app: FastifyInstance,
  limits: HttpServerLimits,
  digests: WeakMap<FastifyRequest, Digest>,
): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  app.removeContentTypeParser('application/json');
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer', bodyLimit: limits.jsonBodyBytesMax },
    (request, body, done) => {
      digests.set(request, sha256Of(body));
      try {
        void parse(request, utf8.decode(body), done);
      } catch (cause) {
        done(new DsecError('invalid-argument', 'the body is not UTF-8', { cause }));
      }
    },
  );
}
