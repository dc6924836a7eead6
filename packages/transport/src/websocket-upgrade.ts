import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { DsecError } from '@dsec/std';
import { WebSocketServer } from 'ws';
import type { UpgradedConnection } from './http-routes.ts';
import {
  createWebSocketChannel,
  type WebSocketChannel,
  type WebSocketLimits,
} from './websocket-channel.ts';

/**
 * WebSockets on an HTTP server. A request to upgrade goes through the same routing, checks and
 * authorization as every other; only its handler then takes the connection (the way of
 * @fastify/websocket).
 */
export interface WebSocketUpgrades {
  /**
   * Takes the connection of a request over and says `headers` in the answer. `invalid-argument` when the
   * request did not ask for that.
   */
  accept(
    request: IncomingMessage,
    response: ServerResponse,
    headers: Readonly<Record<string, string>>,
  ): Promise<WebSocketChannel>;
  /**
   * Takes the connection of a request over as it is. `invalid-argument` when the request did not ask for a
   * WebSocket, `cancelled` when it is gone.
   */
  take(request: IncomingMessage, response: ServerResponse): UpgradedConnection;
  /** Closes every channel with this error, and cuts the connections that were taken as they are. */
  closeAll(error: DsecError): Promise<void>;
  /** Cuts every connection that has asked for an upgrade. */
  destroyAll(): void;
}

export function createWebSocketUpgrades(
  server: Server,
  route: (request: IncomingMessage, response: ServerResponse) => void,
  limits: WebSocketLimits,
): WebSocketUpgrades {
  const upgrader = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: limits.messageBytesMax,
  });
  const requests = new WeakMap<IncomingMessage, { socket: Duplex; head: Buffer }>();
  const answers = new WeakMap<IncomingMessage, Readonly<Record<string, string>>>();
  const channels = new Set<WebSocketChannel>();
  const sockets = new Set<Duplex>();
  const taken = new Set<Duplex>();
  const take = createTaker(requests);

  upgrader.on('headers', (lines, request) => {
    for (const [name, value] of Object.entries(answers.get(request) ?? {})) {
      lines.push(`${name}: ${value}`);
    }
  });
  server.on('upgrade', (request, socket, head) => {
    requests.set(request, { socket, head });
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.on('finish', () => (socket as Socket).destroySoon());
    response.assignSocket(socket as Socket);
    route(request, response);
  });

  return {
    async accept(request, response, headers) {
      const { socket, head } = take(request, response);
      answers.set(request, headers);
      return new Promise((resolve, reject) => {
        socket.once('close', () => reject(new DsecError('cancelled', 'the caller is gone')));
        upgrader.handleUpgrade(request, socket, head, (webSocket) => {
          const channel = createWebSocketChannel(webSocket, limits);
          channels.add(channel);
          void channel.closed.then(() => channels.delete(channel));
          resolve(channel);
        });
      });
    },
    take(request, response) {
      const connection = take(request, response);
      const { socket } = connection;
      taken.add(socket);
      socket.once('close', () => taken.delete(socket));
      (socket as Socket).setTimeout(0);
      return connection;
    },
    async closeAll(error) {
      for (const socket of taken) socket.destroy();
      await Promise.all(Array.from(channels, (channel) => channel.close(error)));
    },
    destroyAll() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Takes a connection from the response that it was given to. */
function createTaker(requests: WeakMap<IncomingMessage, UpgradedConnection>) {
  return (request: IncomingMessage, response: ServerResponse): UpgradedConnection => {
    const waiting = requests.get(request);
    if (waiting === undefined || request.headers.upgrade?.toLowerCase() !== 'websocket') {
      throw new DsecError('invalid-argument', 'this operation is a WebSocket');
    }
    if (waiting.socket.destroyed) throw new DsecError('cancelled', 'the caller is gone');
    response.detachSocket(waiting.socket as Socket);
    return waiting;
  };
}
