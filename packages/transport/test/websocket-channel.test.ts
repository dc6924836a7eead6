import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { DsecError, KIB, MIB } from '@dsec/std';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import {
  connectWebSocket,
  WEBSOCKET_LIMITS,
  type WebSocketChannel,
  type WebSocketLimits,
} from '../src/index.ts';
import { settled, until } from './support/socket-pair.ts';
import { newSocketPath, startServer, stopAll, stopLater } from './support/test-server.ts';

afterEach(stopAll);

type Options = Parameters<typeof startServer>[1];

/** A server whose channel the test holds, until it lets the handler go. */
async function serve(limits: Partial<WebSocketLimits> = {}, options: Options = {}) {
  const channels: WebSocketChannel[] = [];
  let release: (error?: DsecError) => void = () => {};
  const held = new Promise<DsecError | undefined>((resolve) => {
    release = resolve;
  });
  const server = await startServer(
    {
      socket: async (_input, _call, channel) => {
        channels.push(channel);
        const error = await held;
        if (error !== undefined) throw error;
      },
    },
    {
      ...options,
      limits: { webSocket: { ...WEBSOCKET_LIMITS, ...limits } },
    },
  );
  const connect = (overrides: Partial<Parameters<typeof connectWebSocket>[0]> = {}) =>
    connectWebSocket({
      baseUrl: server.baseUrl,
      target: '/v1/things/abc/socket',
      ...overrides,
    });
  const channel = async () => {
    await until(() => channels.length > 0);
    return channels[0] as WebSocketChannel;
  };
  return { ...server, connect, channel, release };
}

describe('WebSocket channel', () => {
  it('carries text and bytes, in order, both ways', async () => {
    const { connect, channel, release } = await serve();
    const client = await connect();
    const server = await channel();
    for (let i = 0; i < 200; i += 1) {
      await client.send(i % 2 === 0 ? `text ${i}` : Uint8Array.of(i));
      await server.send(Buffer.alloc(i, i));
    }
    for (let i = 0; i < 200; i += 1) {
      const up = await server.receive();
      expect(typeof up === 'string' ? up : [...(up ?? [])]).toEqual(
        i % 2 === 0 ? `text ${i}` : [i],
      );
      expect((await client.receive())?.length).toBe(i);
    }
    release();
    expect(await client.receive()).toBeUndefined();
    expect(await client.closed).toBeUndefined();
    await expect(client.send('late')).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('closes with the error of its handler', async () => {
    const { connect, release } = await serve();
    const client = await connect();
    release(new DsecError('agent-lost', 'the agent is gone'));
    const expected = { code: 'agent-lost', message: 'the agent is gone' };
    await expect(client.receive()).rejects.toMatchObject(expected);
    expect(await client.closed).toMatchObject(expected);
    await expect(client.send('x')).rejects.toMatchObject(expected);
  });

  it('hides what a fault of its handler says', async () => {
    const faults: string[] = [];
    const { connect, release } = await serve(
      {},
      { onFault: (error) => faults.push(error.message) },
    );
    const client = await connect();
    release(new Error('secret detail') as DsecError);
    expect(await client.closed).toMatchObject({ code: 'internal', message: 'a fault in DSec' });
    expect(faults).toEqual(['secret detail']);
  });

  it('tells the handler how its caller left', async () => {
    const { connect, channel } = await serve();
    const client = await connect();
    const server = await channel();
    await client.close(new DsecError('cancelled', 'enough'));
    await expect(server.receive()).rejects.toMatchObject({ code: 'cancelled', message: 'enough' });
  });

  it('makes a sender wait for a slow reader, and holds a bounded number of bytes', async () => {
    const { connect, channel, release } = await serve();
    const client = await connect({
      limits: { receiveBytesMax: 128 * KIB, receiveMessagesMax: 10 },
    });
    const server = await channel();
    const message = Buffer.alloc(64 * KIB);
    const total = 600;
    let sent = 0;
    const sending = (async () => {
      for (; sent < total; sent += 1) await server.send(message);
      release();
    })();
    expect(await settled(() => sent)).toBeLessThan(300);
    expect(server.sendBytes).toBeLessThan(2 * MIB);
    let received = 0;
    for await (const part of client.messages()) received += part.length;
    await sending;
    expect(received).toBe(total * message.length);
  });

  it('refuses a message that is too long, and only that channel suffers', async () => {
    const { connect, channel, release } = await serve({ messageBytesMax: 1000 });
    const client = await connect();
    const server = await channel();
    await client.send(Buffer.alloc(1001)).catch(() => {});
    await expect(server.receive()).rejects.toMatchObject({ code: 'too-large' });
    expect(await client.closed).toMatchObject({ code: 'too-large' });
    const other = await connect();
    release();
    expect(await other.receive()).toBeUndefined();
  });

  it('notices a peer that is gone without a word', async () => {
    const { server, port } = await silentServer();
    const channel = await connectWebSocket({
      baseUrl: `http://127.0.0.1:${port}`,
      target: '/',
      limits: { pingMs: 30 },
    });
    expect(await channel.closed).toMatchObject({ code: 'unavailable' });
    server.close();
  });

  it('does not take its own slowness for the death of the peer', async () => {
    const { connect, channel, release } = await serve();
    const client = await connect({ limits: { pingMs: 30, receiveMessagesMax: 1 } });
    const server = await channel();
    for (let i = 0; i < 5; i += 1) await server.send(`${i}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
    for (let i = 0; i < 5; i += 1) expect(await client.receive()).toBe(`${i}`);
    release();
    expect(await client.receive()).toBeUndefined();
  });

  it('calls an abrupt end a loss, and noise a breach of the protocol', async () => {
    const ends: ((socket: Socket) => void)[] = [
      (socket) => socket.destroy(),
      (socket) => socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff])),
    ];
    const codes: (string | undefined)[] = [];
    for (const end of ends) {
      const server = createServer();
      const upgrader = new WebSocketServer({ noServer: true });
      server.on('upgrade', (request, socket, head) => {
        upgrader.handleUpgrade(request, socket, head, () => end(socket as Socket));
      });
      const baseUrl = `http://127.0.0.1:${await listenOn(server)}`;
      const channel = await connectWebSocket({ baseUrl, target: '/' });
      codes.push((await channel.closed)?.code);
    }
    expect(codes).toEqual(['unavailable', 'protocol']);
  });

  it('cuts a peer that does not answer a close', async () => {
    const { server, port } = await silentServer();
    const channel = await connectWebSocket({
      baseUrl: `http://127.0.0.1:${port}`,
      target: '/',
      limits: { closeMs: 50 },
    });
    await channel.close();
    server.close();
  });
});

describe('WebSocket connection', () => {
  it('brings the refusal of the server', async () => {
    const refuse = async () => {
      throw new DsecError('quota-exceeded', 'too many');
    };
    const { connect } = await serve({}, { authorize: refuse as never });
    await expect(connect()).rejects.toMatchObject({ code: 'quota-exceeded', message: 'too many' });
    await expect(connect({ target: '/v1/things/ABC/socket' })).rejects.toMatchObject({
      code: 'invalid-argument',
    });
    await expect(connect({ target: '/nowhere' })).rejects.toMatchObject({ code: 'not-found' });
  });

  it('is refused to pages of other origins', async () => {
    const { connect } = await serve();
    await expect(connect({ headers: { origin: 'https://evil.example' } })).rejects.toMatchObject({
      code: 'permission-denied',
    });
  });

  it('is named in the answer to its request', async () => {
    const { baseUrl } = await serve();
    const url = `${baseUrl.replace('http', 'ws')}/v1/things/abc/socket`;
    const socket = new WebSocket(url, { headers: { 'x-request-id': 'req-1' } });
    const [{ headers }] = await once(socket, 'upgrade');
    expect(headers['x-request-id']).toBe('req-1');
    expect(headers.traceparent).toMatch(/^00-/);
    socket.terminate();
  });

  it('works over a unix socket', async () => {
    const socketPath = newSocketPath();
    const { connect, channel, release } = await serve({}, { listen: { socketPath } });
    const client = await connect({ baseUrl: 'http://localhost', socketPath });
    await (await channel()).send('hello');
    expect(await client.receive()).toBe('hello');
    release();
    expect(await client.receive()).toBeUndefined();
  });

  it('fails in the terms of the error table', async () => {
    const socketPath = newSocketPath();
    await expect(
      connectWebSocket({ baseUrl: 'http://localhost', socketPath, target: '/' }),
    ).rejects.toMatchObject({ code: 'unavailable' });

    const mute = createServer();
    mute.on('upgrade', () => {});
    const port = await listenOn(mute);
    const target = { baseUrl: `http://127.0.0.1:${port}`, target: '/' };
    await expect(connectWebSocket({ ...target, deadlineMs: 50 })).rejects.toMatchObject({
      code: 'deadline-exceeded',
    });
    const abort = AbortSignal.abort();
    await expect(connectWebSocket({ ...target, signal: abort })).rejects.toMatchObject({
      code: 'cancelled',
    });
    mute.closeAllConnections();

    const moved = createServer((_request, response) => {
      response.writeHead(302, { location: '/elsewhere' }).end();
    });
    const movedPort = await listenOn(moved);
    await expect(
      connectWebSocket({ baseUrl: `http://127.0.0.1:${movedPort}`, target: '/' }),
    ).rejects.toMatchObject({ code: 'protocol' });
  });

  it('is closed as unavailable when the server closes', async () => {
    const { connect, channel, close, release } = await serve();
    const client = await connect();
    await channel();
    const closed = close(5000);
    expect(await client.closed).toMatchObject({ code: 'unavailable' });
    release();
    await closed;
  });
});

async function listenOn(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stopLater(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Accepts WebSockets and then neither reads nor writes. */
async function silentServer() {
  const server = createServer();
  const upgrader = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request, socket, head) => {
    upgrader.handleUpgrade(request, socket, head, (webSocket) => webSocket.pause());
  });
  return { server, port: await listenOn(server) };
}
