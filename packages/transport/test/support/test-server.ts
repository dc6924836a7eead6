import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Route } from '@dsec/protocol';
import Type from 'typebox';
import { request as undiciRequest } from 'undici';
import {
  createHttpServer,
  type HttpServer,
  type HttpServerOptions,
  type RouteHandlers,
  type RouteTable,
} from '../../src/index.ts';

const params = Type.Object({ id: Type.String({ pattern: '^[a-z]{1,8}$' }) });
const none = Type.Object({});
const schema = Type.Object(
  { text: Type.String({ maxLength: 100 }) },
  { additionalProperties: false },
);
const edge = { home: 'edge', operationClass: 'exec', summary: '' } as const;

/** One route of each kind. */
export const TABLE = {
  echo: {
    ...{ method: 'POST', path: '/v1/things/{id}/echo', ...edge, effect: 'keyed', params },
    query: Type.Object({ times: Type.Optional(Type.Integer({ minimum: 1, maximum: 9 })) }),
    body: { kind: 'json', schema },
    reply: { kind: 'json', status: 201, schema },
  },
  show: {
    ...{ method: 'GET', path: '/v1/things/{id}', ...edge, effect: 'read', params, query: none },
    body: { kind: 'none' },
    reply: { kind: 'json', status: 200, schema },
  },
  remove: {
    ...{ method: 'DELETE', path: '/v1/things/{id}', ...edge, effect: 'idempotent', params },
    query: none,
    body: { kind: 'none' },
    reply: { kind: 'empty', status: 204 },
  },
  poke: {
    ...{ method: 'POST', path: '/v1/things/{id}/poke', ...edge, effect: 'keyed', params },
    query: none,
    body: { kind: 'none' },
    reply: { kind: 'text', status: 200, contentType: 'text/plain' },
  },
  upload: {
    ...{ method: 'PUT', path: '/v1/things/{id}/bytes', ...edge, effect: 'idempotent', params },
    query: none,
    body: { kind: 'bytes' },
    reply: { kind: 'json', status: 200, schema },
  },
  download: {
    ...{ method: 'GET', path: '/v1/things/{id}/bytes', ...edge, effect: 'read', params },
    query: none,
    body: { kind: 'none' },
    reply: { kind: 'bytes', status: 200, headers: ['dsec-offset'] },
  },
  lines: {
    ...{ method: 'GET', path: '/v1/things/{id}/lines', ...edge, effect: 'read', params },
    query: none,
    body: { kind: 'none' },
    reply: { kind: 'lines', status: 200, schema },
  },
  events: {
    ...{ method: 'GET', path: '/v1/things/{id}/events', ...edge, effect: 'read', params },
    query: none,
    body: { kind: 'none' },
    reply: { kind: 'events', status: 200, schema },
  },
  socket: {
    ...{ method: 'GET', path: '/v1/things/{id}/socket', ...edge, effect: 'idempotent', params },
    query: none,
    body: { kind: 'none' },
    reply: { kind: 'socket', status: 101, client: undefined, server: undefined },
  },
} as const satisfies Record<string, Route> & RouteTable;

export type TestHandlers = RouteHandlers<typeof TABLE, string>;

const running: { close(): Promise<void> }[] = [];
let directory: string | undefined;

export async function startServer(
  handlers: TestHandlers,
  options: Partial<HttpServerOptions<typeof TABLE, string>> = {},
): Promise<HttpServer & { readonly port: number; readonly baseUrl: string }> {
  const server = await createHttpServer({
    listen: { host: '127.0.0.1', port: 0 },
    routes: TABLE,
    authorize: async () => 'tester',
    handlers,
    ...options,
  });
  stopLater(() => server.close(0));
  const port = 'port' in server.address ? server.address.port : 0;
  return { ...server, port, baseUrl: `http://127.0.0.1:${port}` };
}

export function stopLater(close: () => Promise<void>): void {
  running.push({ close });
}

export function newSocketPath(): string {
  directory ??= mkdtempSync(join(tmpdir(), 'dsec-http-'));
  return join(directory, `${running.length}.sock`);
}

export async function stopAll(): Promise<void> {
  for (const { close } of running.splice(0).reverse()) await close();
  if (directory !== undefined) rmSync(directory, { recursive: true });
  directory = undefined;
}

/** A connection on which a test writes what no client library would. */
export function rawConnection(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket));
    socket.on('error', reject);
    stopLater(async () => {
      socket.destroy();
    });
  });
}

/** Sends bytes on a connection of their own and returns all that comes back until the server closes. */
export async function exchange(port: number, sent: string): Promise<string> {
  const socket = await rawConnection(port);
  let received = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk) => {
    received += chunk;
  });
  socket.write(sent, 'latin1');
  await new Promise((resolve) => socket.once('close', resolve));
  return received;
}

/** One request through a client that knows nothing of ours. */
export async function ask(
  baseUrl: string,
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string | Buffer } = {},
) {
  const method = (options.method ?? 'GET') as 'GET';
  const reply = await undiciRequest(`${baseUrl}${path}`, { ...options, method });
  const text = await reply.body.text();
  const body = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : text;
  return { status: reply.statusCode, headers: reply.headers, body };
}
