import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { asDsecError, assert, DsecError } from '@dsec/std';
import type { NameRule } from '../rules/compiled.ts';
import { isNarrow } from '../rules/match.ts';
import type { DenialReason } from '../seams.ts';
import type { Flow, FlowTarget } from './flows.ts';
import type { EgressLimits } from './limits.ts';
import {
  forwardedHeaders,
  type RequestContext,
  type RequestTarget,
  requestTarget,
  withoutHeader,
} from './request-target.ts';
import { splice } from './splice.ts';
import { type Upstreams, upstreamDenial } from './upstreams.ts';

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

export interface HttpProxyOptions {
  readonly upstreams: Upstreams;
  readonly limits: EgressLimits;
  /** Answers instead of the outside where a rule leaves something out of an index. */
  readonly serveIndex: ServeIndex;
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

export interface HttpProxy {
  /** Serves a connection; bytes that were read of it already must have been put back. */
  serve(socket: Socket, connection: HttpConnection): void;
}

/**
 * Checks each request of a connection on its own, and writes it anew: what two readers could read in two
 * ways never goes out as it came. Node's own parser (llhttp, strict) reads it.
 */
export function createHttpProxy(options: HttpProxyOptions): HttpProxy {
  const { limits } = options;
  const server = createServer({
    maxHeaderSize: limits.requestHeadBytesMax,
    requireHostHeader: false,
    insecureHTTPParser: false,
    keepAliveTimeout: limits.startTimeoutMs,
  });
  server.maxHeadersCount = limits.requestHeadersMax;
  server.timeout = limits.idleTimeoutMs;
  const table = createConnectionTable(limits);
  serveRequests(server, table, options);
  return {
    serve(socket, connection) {
      table.add(socket, connection);
      server.emit('connection', socket);
    },
  };
}

/** Node's own deadline for heads needs a server that listens; here each request must begin in time too. */
function createConnectionTable({ startTimeoutMs }: EgressLimits) {
  const served = new WeakMap<
    Socket,
    { connection: HttpConnection; timer: NodeJS.Timeout; running: number }
  >();
  const startTimer = (socket: Socket) => setTimeout(() => socket.destroy(), startTimeoutMs);
  return {
    add(socket: Socket, connection: HttpConnection) {
      served.set(socket, { connection, timer: startTimer(socket), running: 0 });
      socket.once('close', () => clearTimeout(served.get(socket)?.timer));
    },
    begin(socket: Socket): HttpConnection {
      const one = served.get(socket);
      assert(one !== undefined, 'a request comes on a connection that is served');
      clearTimeout(one.timer);
      one.running += 1;
      return one.connection;
    },
    end(socket: Socket) {
      const one = served.get(socket);
      if (one === undefined) return;
      one.running -= 1;
      clearTimeout(one.timer);
      if (!socket.destroyed && one.running === 0) one.timer = startTimer(socket);
    },
    /** The connection, where no answer is on its way. */
    idle(socket: Socket): HttpConnection | undefined {
      const one = served.get(socket);
      return one?.running === 0 ? one.connection : undefined;
    },
  };
}

type ConnectionTable = ReturnType<typeof createConnectionTable>;

function serveRequests(server: Server, table: ConnectionTable, options: HttpProxyOptions): void {
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const connection = table.begin(request.socket);
    response.once('close', () => table.end(request.socket));
    forward(request, response, connection, options).catch((thrown) =>
      refuse(response, connection, asDsecError(thrown)),
    );
  });
  server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const connection = table.begin(socket);
    try {
      const target = judged(request, connection);
      if (head.length > 0) socket.unshift(head);
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      connection.tunnel(socket, target);
    } catch (thrown) {
      refuseRaw(socket, connection, asDsecError(thrown));
    }
  });
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const connection = table.begin(socket);
    if (head.length > 0) socket.unshift(head);
    upgrade(request, socket, connection, options).catch((thrown) =>
      refuseRaw(socket, connection, asDsecError(thrown)),
    );
  });
  server.on('clientError', (thrown: Error, socket: Socket) => {
    const connection = table.idle(socket);
    if (connection === undefined || !socket.writable) return void socket.destroy();
    connection.deny('malformed', connection.boundName, connection.port);
    refuseRaw(socket, connection, new DsecError('protocol', 'HTTP: no request', { cause: thrown }));
  });
}

interface Judged extends FlowTarget {
  readonly path: string;
}

function judged(request: IncomingMessage, connection: HttpConnection): Judged {
  const target = targetOf(request, connection);
  const { name, port, path, isTunnel } = target;
  const rule = connection.judge(name, port);
  if (!connection.isTls && !isTunnel && (rule.inject !== undefined || isNarrow(rule))) {
    connection.deny('plain-text', name, port);
    throw new DsecError('permission-denied', `${name} may be used with TLS only`);
  }
  const flowTarget = { name, port, rule };
  connection.flow.addTarget(flowTarget);
  return { ...flowTarget, path };
}

function targetOf(request: IncomingMessage, connection: HttpConnection): RequestTarget {
  const { method = '', url = '', httpVersion, rawHeaders } = request;
  try {
    return requestTarget({ method, target: url, httpVersion, rawHeaders }, connection);
  } catch (thrown) {
    const error = asDsecError(thrown);
    const reason = error.code === 'protocol' ? 'malformed' : 'name-mismatch';
    connection.deny(reason, connection.boundName, connection.port);
    throw error;
  }
}

async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  connection: HttpConnection,
  options: HttpProxyOptions,
): Promise<void> {
  const target = judged(request, connection);
  const headers = forwardedHeaders(request.rawHeaders);
  const send = (path: string, out: readonly string[]) =>
    sendOut({ request, connection, target, path, headers: out }, options);
  const deny = (reason: DenialReason) => connection.deny(reason, target.name, target.port);
  if (isNarrow(target.rule)) {
    const exchange = {
      request,
      response,
      connection,
      target,
      path: target.path,
      headers,
      send,
      deny,
    };
    return options.serveIndex(exchange);
  }
  const answer = await send(target.path, headers);
  passAnswer(answer, response, connection);
}

/** Passes an answer on as it comes. */
export function passAnswer(
  answer: IncomingMessage,
  response: ServerResponse,
  connection: HttpConnection,
): void {
  // How its body ends is between this proxy and the sandbox, so Node writes that anew.
  const headers = withoutHeader(forwardedHeaders(answer.rawHeaders), 'transfer-encoding');
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, headers);
  answer.on('data', (chunk: Buffer) => connection.flow.count('down', chunk.length));
  answer.once('error', () => response.destroy());
  answer.once('aborted', () => response.destroy());
  response.once('close', () => answer.destroy());
  answer.pipe(response);
}

interface Outgoing {
  readonly request: IncomingMessage;
  readonly connection: HttpConnection;
  readonly target: FlowTarget;
  readonly path: string;
  readonly headers: readonly string[];
}

async function sendOut(outgoing: Outgoing, options: HttpProxyOptions): Promise<IncomingMessage> {
  const { request, connection } = outgoing;
  const headers = [...outgoing.headers, 'Connection', 'close'];
  const out = await openRequest({ ...outgoing, headers }, options);
  request.on('data', (chunk: Buffer) => connection.flow.count('up', chunk.length));
  request.pipe(out);
  request.once('close', () => {
    if (!request.complete) out.destroy();
  });
  return new Promise((resolve, reject) => {
    out.once('response', (answer) => {
      answer.once('close', () => answer.socket.destroy());
      resolve(answer);
    });
    out.once('error', (thrown) =>
      reject(
        new DsecError('unavailable', `${outgoing.target.name} did not answer`, { cause: thrown }),
      ),
    );
  });
}

/** A request on a connection of its own: nothing outside is shared by two requests of anybody. */
async function openRequest(outgoing: Outgoing, { upstreams }: HttpProxyOptions) {
  const { request, connection, target, path, headers } = outgoing;
  const credentials = injected(target.rule, connection, headers);
  const { flow, isTls } = connection;
  const opening = isTls ? upstreams.openTls(flow, target) : upstreams.openPlain(flow, target);
  const socket = await opening.catch((thrown) => {
    const error = asDsecError(thrown);
    if (error.code === 'permission-denied') {
      connection.deny(upstreamDenial(error), target.name, target.port);
    }
    throw error;
  });
  return httpRequest({
    ...{ method: request.method ?? 'GET', path, headers: credentials, setHost: false },
    // Without an agent Node takes this connection or none. Were it to make one, it would lead nowhere.
    ...{ createConnection: () => socket, host: 'no-host.invalid' },
  });
}

/** The headers with the credential that the rule adds, instead of whatever stood there. */
function injected(
  { inject }: NameRule,
  connection: HttpConnection,
  headers: readonly string[],
): string[] {
  if (inject === undefined) return [...headers];
  const value = connection.secret(inject.secret);
  if (value === undefined || !/^[\x20-\x7e]+$/.test(value)) {
    throw new DsecError('unavailable', `the node has no usable secret ${inject.secret}`);
  }
  return [...withoutHeader(headers, inject.header), inject.header, value];
}

/** A web socket: after the outside has agreed, bytes pass both ways to that one host. */
async function upgrade(
  request: IncomingMessage,
  socket: Socket,
  connection: HttpConnection,
  options: HttpProxyOptions,
): Promise<void> {
  const target = judged(request, connection);
  if (request.headers.upgrade?.toLowerCase() !== 'websocket' || isNarrow(target.rule)) {
    throw new DsecError('unsupported', 'HTTP: of all upgrades only web sockets pass');
  }
  const headers = [...forwardedHeaders(request.rawHeaders), 'Connection', 'Upgrade'];
  const outgoing = { request, connection, target, path: target.path };
  const out = await openRequest(
    { ...outgoing, headers: [...headers, 'Upgrade', 'websocket'] },
    options,
  );
  out.end();
  await new Promise<void>((resolve, reject) => {
    out.once('error', reject);
    out.once('response', (answer) => {
      answer.resume();
      reject(new DsecError('unavailable', `${target.name} does not open a web socket`));
    });
    out.once('upgrade', (answer, upstream, head) => {
      const lines = [`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}`];
      for (let i = 0; i < answer.rawHeaders.length; i += 2) {
        lines.push(`${answer.rawHeaders[i]}: ${answer.rawHeaders[i + 1]}`);
      }
      socket.write(`${lines.join('\r\n')}\r\n\r\n`);
      if (head.length > 0) upstream.unshift(head);
      resolve(splice(socket, upstream as Socket, connection.flow, options.limits.idleTimeoutMs));
    });
  });
}

const LINGER_MS = 2000;
const STATUS_OF: Partial<Record<DsecError['code'], number>> = {
  protocol: 400,
  'permission-denied': 403,
  'not-found': 502,
  unavailable: 502,
  overloaded: 503,
  unsupported: 501,
};

/** What the sandbox is told: a code and a sentence of ours, nothing of an upstream and no secret. */
function refuse(response: ServerResponse, connection: HttpConnection, error: DsecError): void {
  connection.flow.countRefused();
  if (response.headersSent || response.destroyed) return void response.destroy();
  const text = `dsec: ${error.message}\n`;
  response.writeHead(STATUS_OF[error.code] ?? 502, {
    'content-type': 'text/plain',
    'content-length': Buffer.byteLength(text),
    'x-dsec-error': error.code,
    connection: 'close',
  });
  response.end(text);
}

function refuseRaw(socket: Socket, connection: HttpConnection, error: DsecError): void {
  connection.flow.countRefused();
  const text = `dsec: ${error.message}\n`;
  socket.end(
    `HTTP/1.1 ${STATUS_OF[error.code] ?? 502} refused\r\nContent-Type: text/plain\r\n` +
      `Content-Length: ${Buffer.byteLength(text)}\r\nX-Dsec-Error: ${error.code}\r\n` +
      `Connection: close\r\n\r\n${text}`,
  );
  // Long enough to be read, whatever the other end goes on to send.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
