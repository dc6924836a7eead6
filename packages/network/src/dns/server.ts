import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, isIPv6, type Socket } from 'node:net';
import { closeGiven, closeServer, type ListenAt, listenOn, plainAddress } from '../listen.ts';
import type { FindSandbox } from '../seams.ts';
import type { DnsAnswerer } from './answerer.ts';
import { DNS_QUERY_BYTES_MAX } from './message.ts';

export interface DnsServerLimits {
  readonly connectionsMax: number;
  readonly connectionsPerSandboxMax: number;
  readonly queriesPerConnectionMax: number;
  readonly idleTimeoutMs: number;
}

export const DNS_SERVER_LIMITS: DnsServerLimits = {
  connectionsMax: 1024,
  connectionsPerSandboxMax: 8,
  queriesPerConnectionMax: 64,
  idleTimeoutMs: 5000,
};

export interface DnsServerOptions {
  readonly answerer: DnsAnswerer;
  readonly findSandbox: FindSandbox;
  readonly udp: ListenAt;
  readonly tcp: ListenAt;
  readonly limits?: DnsServerLimits | undefined;
}

export interface DnsServer {
  readonly udpPort: number;
  readonly tcpPort: number;
  close(): Promise<void>;
}

/** Serves queries over UDP and TCP. Whoever is no sandbox gets no answer and no connection. */
export async function startDnsServer(options: DnsServerOptions): Promise<DnsServer> {
  const { answerer, udp, tcp } = options;
  const socket = await bindUdp(udp).catch((thrown) => {
    closeGiven(tcp);
    throw thrown;
  });
  socket.on('message', async (message, peer) => {
    const reply = await answerer.answer(message, plainAddress(peer.address));
    // What cannot be sent now is asked for again by a resolver, as every lost datagram.
    if (reply !== undefined && !isClosed)
      socket.send(reply, peer.port, peer.address, () => undefined);
  });
  socket.on('error', () => undefined);

  let isClosed = false;
  const connections = createConnectionTable(options);
  const server = createServer({ pauseOnConnect: true }, (connection) => {
    connection.on('error', () => connection.destroy());
    if (!connections.admit(connection)) return void connection.resetAndDestroy();
    void serveConnection(connection, options).finally(() => connection.destroy());
  });
  const tcpPort = await listenOn(server, tcp).catch((thrown) => {
    socket.close();
    closeGiven(tcp);
    throw thrown;
  });
  return {
    udpPort: socket.address().port,
    tcpPort,
    async close() {
      if (isClosed) return;
      isClosed = true;
      connections.endAll();
      await Promise.all([closeServer(server), new Promise<void>((done) => socket.close(done))]);
    },
  };
}

async function bindUdp(at: ListenAt): Promise<UdpSocket> {
  const isV6 = 'host' in at && isIPv6(at.host);
  const socket = createSocket(isV6 ? 'udp6' : 'udp4');
  // With a descriptor the event comes before `bind` returns.
  const listening = once(socket, 'listening');
  if ('fd' in at) socket.bind({ fd: at.fd });
  else socket.bind(at.port, at.host);
  await listening;
  return socket;
}

function createConnectionTable({ findSandbox, limits = DNS_SERVER_LIMITS }: DnsServerOptions) {
  const open = new Map<Socket, string>();
  const counts = new Map<string, number>();
  const count = (sandbox: string, change: 1 | -1) => {
    const left = (counts.get(sandbox) ?? 0) + change;
    if (left === 0) counts.delete(sandbox);
    else counts.set(sandbox, left);
  };
  return {
    admit(connection: Socket): boolean {
      const sandbox = findSandbox(plainAddress(connection.remoteAddress));
      if (sandbox === undefined || open.size >= limits.connectionsMax) return false;
      if ((counts.get(sandbox.id) ?? 0) >= limits.connectionsPerSandboxMax) return false;
      open.set(connection, sandbox.id);
      count(sandbox.id, 1);
      connection.once('close', () => {
        open.delete(connection);
        count(sandbox.id, -1);
      });
      return true;
    },
    endAll() {
      for (const connection of open.keys()) connection.destroy();
    },
  };
}

/** One query after the other: the next one is read when the answer to the last one is taken. */
async function serveConnection(connection: Socket, options: DnsServerOptions): Promise<void> {
  const { answerer, limits = DNS_SERVER_LIMITS } = options;
  const address = plainAddress(connection.remoteAddress);
  connection.setTimeout(limits.idleTimeoutMs, () => connection.destroy());
  let pending = Buffer.alloc(0);
  let queries = 0;
  try {
    for await (const chunk of connection) {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 2) {
        const length = pending.readUInt16BE(0);
        if (length > DNS_QUERY_BYTES_MAX) return;
        if (pending.length < 2 + length) break;
        queries += 1;
        if (queries > limits.queriesPerConnectionMax) return;
        const reply = await answerer.answer(pending.subarray(2, 2 + length), address);
        if (reply === undefined) return;
        pending = pending.subarray(2 + length);
        const prefix = Buffer.alloc(2);
        prefix.writeUInt16BE(reply.length);
        if (!connection.write(Buffer.concat([prefix, reply]))) await once(connection, 'drain');
      }
    }
  } catch {
    // The peer is gone or too slow; there is nobody to tell.
  }
}
