/** The world of hostile actions, with a network: a mirror on this host, and what must stay out of reach. */
import { createSocket } from 'node:dgram';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { Backend, BackendReport } from '@dsec/backend';
import { createNodeNetwork, type EdgeOptions, NETWORK_DEFAULTS } from '@dsec/edge';
import type { OperatorNetwork } from '@dsec/network';
import type { Event, NetworkRule } from '@dsec/protocol';
import { systemClock } from '@dsec/std';
import { NATIVE } from '../integration/launcher-world.ts';
import { type Box, openSecurityWorld, type SecurityWorld } from './security-world.ts';

export const MIRROR = 'mirror.dsec-tests.net';
export const REBOUND = 'rebound.dsec-tests.net';
/** Of the mirror: a loopback address of this host, which no sandbox reaches by itself. */
const MIRROR_ADDRESS = '127.77.0.1';
export const MIRROR_TEXT = 'hello from the mirror';

export const MIRROR_RULES: readonly NetworkRule[] = [{ kind: 'service', target: 'mirror' }];

export interface NetworkWorld {
  readonly world: SecurityWorld;
  /** A sandbox that may reach the mirror unless it gets other rules. */
  make(rules?: readonly NetworkRule[]): Promise<Box>;
  /** Of a server on this host, at an address that is not loopback. */
  readonly host: { readonly address: string; readonly port: number; readonly connections: number };
  readonly mirror: { readonly requests: number; readonly open: number };
  /** Whoever asks this name server by UDP is told this address for any name, and some text. */
  readonly nameServer: { readonly port: number; answer: string; readonly queries: number };
  /** Events of a type so far. */
  events(type: Event['type']): Promise<Event[]>;
  /** What is left of sandboxes. */
  close(): Promise<readonly string[]>;
}

export async function openNetworkWorld(
  operator: OperatorNetwork = {},
  changes: Partial<EdgeOptions> = {},
): Promise<NetworkWorld> {
  const mirror = await startMirror();
  const host = await startHostServer();
  const nameServer = await startNameServer();
  let stateRoot = '';
  const services = {
    mirror: { names: [MIRROR], ports: [80], mirror: mirrorOf([MIRROR], [MIRROR_ADDRESS]) },
  };
  const openNetwork = (backend: Backend, report: BackendReport) =>
    createNodeNetwork({
      ...{ backend, report, clock: systemClock, ...NETWORK_DEFAULTS },
      operator: { ...operator, services: { ...services, ...operator.services } },
      nameServers: [`127.0.0.1:${nameServer.port}`],
      filter: { objectsDirectory: join(NATIVE, 'build/bpf'), stateRoot },
    });
  const world = await openSecurityWorld((root) => {
    stateRoot = root;
    return { openNetwork, ...changes };
  });
  return {
    world,
    host,
    mirror,
    nameServer,
    make: (rules = MIRROR_RULES) => world.make({}, rules),
    async events(type) {
      const found: Event[] = [];
      const { events, journal } = world.edge;
      const { signal } = new AbortController();
      for await (const event of events.follow({ cursor: `${journal.id}-0`, signal, quietMs: 1 })) {
        if (event === undefined) return found;
        if (event.type === type) found.push(event);
      }
      return found;
    },
    async close() {
      const left = await world.close();
      mirror.server.closeAllConnections();
      mirror.server.close();
      host.server.close();
      nameServer.socket.close();
      return left;
    },
  };
}

const mirrorOf = (names: string[], addresses: string[]) => ({ names, ports: [80], addresses });

/** `/` says hello, `/slow` goes on for ever, a word at a time. */
async function startMirror() {
  const sockets = new Set<Socket>();
  let requests = 0;
  const server = createHttpServer((request, response) => {
    requests += 1;
    if (request.url !== '/slow') return void response.end(MIRROR_TEXT);
    const timer = setInterval(() => response.write('tick\n'), 20);
    response.once('close', () => clearInterval(timer));
  });
  server.on('connection', (socket) => {
    sockets.add(socket.once('close', () => sockets.delete(socket)));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(80, MIRROR_ADDRESS, resolve);
  });
  return {
    server,
    get requests() {
      return requests;
    },
    get open() {
      return sockets.size;
    },
  };
}

/** Answers questions of type A with one address, TXT with a word, and others with nothing. */
async function startNameServer() {
  const socket = createSocket('udp4');
  const state = { answer: MIRROR_ADDRESS, queries: 0 };
  socket.on('message', (query, { address, port }) => {
    state.queries += 1;
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    const type = question.readUInt16BE(question.length - 4);
    const data =
      type === 1
        ? Buffer.from(state.answer.split('.').map(Number))
        : type === 16
          ? Buffer.from('\x04word')
          : undefined;
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(0x8180, 2);
    head.writeUInt16BE(data === undefined ? 0 : 1, 6);
    head.fill(0, 8, 12);
    const record = Buffer.from('c00c00000001000000010000', 'hex').subarray(0, 10);
    record.writeUInt16BE(type, 2);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(data?.length ?? 0);
    const answer = data === undefined ? [] : [record, length, data];
    socket.send(Buffer.concat([head, question, ...answer]), port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return Object.assign(state, { socket, port: socket.address().port });
}

async function startHostServer() {
  const address = Object.values(networkInterfaces())
    .flat()
    .find((one) => one !== undefined && one.family === 'IPv4' && !one.internal)?.address;
  let connections = 0;
  const server: Server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined);
    socket.end('the host\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  return {
    server,
    address: address ?? '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
  };
}

/** What a program of the sandbox gets from a web server, or how it failed. */
export async function get(box: Box, name: string, path = '/'): Promise<string> {
  const request = `GET ${path} HTTP/1.1\\r\\nHost: ${name}\\r\\nConnection: close\\r\\n\\r\\n`;
  const { stdout, stderr } = await box.run(
    ['/bin/bash', '-c', `exec 3<>/dev/tcp/${name}/80 && printf '${request}' >&3 && cat <&3`],
    { timeoutMs: 10_000 },
  );
  return stdout + stderr;
}

/** `open`, `refused` with what the program was told, or `timeout`. */
export async function connect(box: Box, address: string, port: number): Promise<string> {
  const { exec, stderr } = await box.run(
    ['/bin/bash', '-c', `exec 3<>/dev/tcp/${address}/${port}`],
    { timeoutMs: 1_500 },
  );
  if (exec.exit?.exitCode === 0) return 'open';
  const told = /: ((?:Operation|Connection|Network|No route)[^:]*)$/m.exec(stderr)?.[1];
  return told === undefined ? 'timeout' : `refused: ${told.trim()}`;
}

/** Addresses of a name, by the resolver of the sandbox's C library. */
export async function lookUp(box: Box, name: string): Promise<string> {
  const { stdout } = await box.run(['/bin/getent', 'ahostsv4', name], { timeoutMs: 15_000 });
  return stdout.split(/\s/)[0] ?? '';
}
