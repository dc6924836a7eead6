import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { asDsecError, assert, DsecError } from '@dsec/std';
import { isNarrow } from '../rules/match.ts';
import type { DenialReason } from '../seams.ts';
import type { FlowTarget } from './flows.ts';
import type { HttpConnection, ServeIndex } from './http-connection.ts';
import { openRequest, sendOut } from './http-out.ts';
import { refuse, refuseRaw } from './http-refusal.ts';
import type { EgressLimits } from './limits.ts';
import {
  forwardedHeaders,
  type RequestTarget,
  requestTarget,
  withoutHeader,
} from './request-target.ts';
import { splice } from './splice.ts';
import type { Upstreams } from './upstreams.ts';

export interface HttpProxyOptions {
  readonly upstreams: Upstreams;
  readonly limits: EgressLimits;
  /** Answers instead of the outside where a rule leaves something out of an index. */
  readonly serveIndex: ServeIndex;
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
  // Over a count of its own Node drops headers without a word; here so many are refused instead.
  server.maxHeadersCount = 0;
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

interface Served {
  readonly connection: HttpConnection;
  timer: NodeJS.Timeout;
  running: number;
  isClosed: boolean;
}

/** Node's own deadline for heads needs a server that listens; here each request must begin in time too. */
function createConnectionTable({ startTimeoutMs, requestsInTurnMax }: EgressLimits) {
  const served = new WeakMap<Socket, Served>();
  const startTimer = (socket: Socket) => setTimeout(() => socket.destroy(), startTimeoutMs);
  return {
    add(socket: Socket, connection: HttpConnection) {
      const timer = startTimer(socket);
      served.set(socket, { connection, timer, running: 0, isClosed: false });
      socket.once('close', () => clearTimeout(served.get(socket)?.timer));
    },
    /** `undefined`, and the end of the socket, where no request may follow, or not so many at a time. */
    begin(socket: Socket, runningMax = requestsInTurnMax): HttpConnection | undefined {
      const one = served.get(socket);
      assert(one !== undefined, 'a request comes on a connection that is served');
      clearTimeout(one.timer);
      one.running += 1;
      if (!one.isClosed && one.running <= runningMax) return one.connection;
      if (!one.isClosed) socket.destroy();
      return undefined;
    },
    end(socket: Socket) {
      const one = served.get(socket);
      if (one === undefined) return;
      one.running -= 1;
      clearTimeout(one.timer);
      if (!socket.destroyed && one.running === 0) one.timer = startTimer(socket);
    },
    /** After a refusal nothing is believed that came behind it. */
    close(socket: Socket) {
      const one = served.get(socket);
      if (one !== undefined) one.isClosed = true;
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
    const { socket } = request;
    const connection = table.begin(socket);
    response.once('close', () => table.end(socket));
    response.on('error', () => response.destroy());
    if (connection === undefined) return;
    const refused = (thrown: unknown) => {
      table.close(socket);
      refuse(response, connection, asDsecError(thrown));
    };
    try {
      const target = judged(request, connection, options);
      forward({ request, response, connection, target }, options).catch(refused);
    } catch (thrown) {
      refused(thrown);
    }
  });
  server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const connection = table.begin(socket, 1);
    if (connection === undefined) return void socket.destroy();
    try {
      const target = judged(request, connection, options);
      if (head.length > 0) socket.unshift(head);
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      connection.tunnel(socket, target);
    } catch (thrown) {
      refuseRaw(socket, connection, asDsecError(thrown));
    }
  });
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const connection = table.begin(socket, 1);
    if (connection === undefined) return void socket.destroy();
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

function judged(
  request: IncomingMessage,
  connection: HttpConnection,
  { limits }: HttpProxyOptions,
): Judged {
  const target = targetOf(request, connection, limits);
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

function targetOf(
  request: IncomingMessage,
  connection: HttpConnection,
  limits: EgressLimits,
): RequestTarget {
  const { method = '', url = '', httpVersion, rawHeaders } = request;
  try {
    if (rawHeaders.length > 2 * limits.requestHeadersMax) {
      throw new DsecError('protocol', `HTTP: over ${limits.requestHeadersMax} headers`);
    }
    return requestTarget({ method, target: url, httpVersion, rawHeaders }, connection);
  } catch (thrown) {
    const error = asDsecError(thrown);
    const reason = error.code === 'protocol' ? 'malformed' : 'name-mismatch';
    connection.deny(reason, connection.boundName, connection.port);
    throw error;
  }
}

interface Forwarded {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly connection: HttpConnection;
  readonly target: Judged;
}

async function forward(forwarded: Forwarded, options: HttpProxyOptions): Promise<void> {
  const { request, response, connection, target } = forwarded;
  const { path } = target;
  const headers = forwardedHeaders(request.rawHeaders);
  const send = (to: string, out: readonly string[]) =>
    sendOut({ request, connection, target, path: to, headers: out }, options.upstreams);
  const deny = (reason: DenialReason) => connection.deny(reason, target.name, target.port);
  if (isNarrow(target.rule)) {
    return options.serveIndex({ ...forwarded, path, headers, send, deny });
  }
  passAnswer(await send(path, headers), response, connection);
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
  answer.on('error', () => response.destroy());
  answer.once('aborted', () => response.destroy());
  response.once('close', () => answer.destroy());
  answer.pipe(response);
}

/** A web socket: after the outside has agreed, bytes pass both ways to that one host. */
async function upgrade(
  request: IncomingMessage,
  socket: Socket,
  connection: HttpConnection,
  options: HttpProxyOptions,
): Promise<void> {
  const target = judged(request, connection, options);
  if (request.headers.upgrade?.toLowerCase() !== 'websocket' || isNarrow(target.rule)) {
    throw new DsecError('unsupported', 'HTTP: of all upgrades only web sockets pass');
  }
  const headers = [...forwardedHeaders(request.rawHeaders), 'Connection', 'Upgrade'];
  const outgoing = { request, connection, target, path: target.path };
  const asked = { ...outgoing, headers: [...headers, 'Upgrade', 'websocket'] };
  const { out, failure } = await openRequest(asked, options.upstreams);
  out.end();
  const upgraded = new Promise<Socket>((resolve, reject) => {
    out.once('response', (answer) => {
      answer.on('error', () => undefined);
      reject(new DsecError('unavailable', `${target.name} does not open a web socket`));
      out.destroy();
    });
    out.once('upgrade', (answer, upstream, head) => {
      socket.write(headOf(answer));
      if (head.length > 0) upstream.unshift(head);
      resolve(upstream as Socket);
    });
  });
  const upstream = await Promise.race([upgraded, failure]);
  await splice(socket, upstream, connection.flow, options.limits.idleTimeoutMs);
}

/** The head of an answer as it came, for a connection that is no HTTP any more. */
function headOf(answer: IncomingMessage): string {
  const lines = [`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}`];
  for (let i = 0; i < answer.rawHeaders.length; i += 2) {
    lines.push(`${answer.rawHeaders[i]}: ${answer.rawHeaders[i + 1]}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}
