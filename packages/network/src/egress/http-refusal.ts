import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { DsecError } from '@dsec/std';
import type { HttpConnection } from './http-connection.ts';

const LINGER_MS = 2000;
const STATUS_OF: Partial<Record<DsecError['code'], number>> = {
  protocol: 400,
  'permission-denied': 403,
  'not-found': 502,
  unavailable: 502,
  overloaded: 503,
  unsupported: 501,
};

const textOf = ({ code, message }: DsecError) =>
  `dsec: ${code === 'internal' ? 'a fault of the proxy' : message}\n`;

/** What the sandbox is told: a code and a sentence of ours, nothing of an upstream and no secret. */
export function refuse(
  response: ServerResponse,
  connection: HttpConnection,
  error: DsecError,
): void {
  connection.flow.countRefused();
  if (response.headersSent || response.destroyed) return void response.destroy();
  const text = textOf(error);
  response.writeHead(STATUS_OF[error.code] ?? 502, {
    'content-type': 'text/plain',
    'content-length': Buffer.byteLength(text),
    'x-dsec-error': error.code,
    connection: 'close',
  });
  response.end(text);
}

/** The same on a connection that Node's server has let go. */
export function refuseRaw(socket: Socket, connection: HttpConnection, error: DsecError): void {
  connection.flow.countRefused();
  const text = textOf(error);
  socket.end(
    `HTTP/1.1 ${STATUS_OF[error.code] ?? 502} refused\r\nContent-Type: text/plain\r\n` +
      `Content-Length: ${Buffer.byteLength(text)}\r\nX-Dsec-Error: ${error.code}\r\n` +
      `Connection: close\r\n\r\n${text}`,
  );
  // Long enough to be read, whatever the other end goes on to send.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
