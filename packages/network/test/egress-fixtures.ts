import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import {
  type TLSSocket,
  type TlsOptions,
  connect as tlsConnect,
  createServer as tlsServer,
} from 'node:tls';
import {
  type AuthorityMaterial,
  type CompiledNetwork,
  compileNetwork,
  createAddressFilter,
  createAuthorityMaterial,
  createDenialReporter,
  createNameGuard,
  createNameResolver,
  EGRESS_LIMITS,
  type EgressLimits,
  type NetworkDenial,
  type OperatorNetwork,
  openAuthority,
  type ServiceTerms,
  startEgressServer,
} from '@dsec/network';
import type { NetworkRule } from '@dsec/protocol';
import { DsecError } from '@dsec/std';

/** The authority of the outside world, and a public address of each host. */
export const WORLD: AuthorityMaterial = createAuthorityMaterial('Test World', Date.now());
const world = openAuthority(WORLD);
export const SANDBOX_AUTHORITY = openAuthority(createAuthorityMaterial('Test Sandbox', Date.now()));

export const ends: (() => unknown)[] = [];
export async function endAll(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

async function listening(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

/** A TLS server whose certificate is for `name`. */
export function secureHost(
  name: string,
  serve: (socket: TLSSocket) => void,
  options: TlsOptions = {},
): Promise<number> {
  const secureContext = world.contextFor(name);
  const server = tlsServer(
    { ...options, SNICallback: (_, give) => give(null, secureContext) },
    (socket) => {
      socket.on('error', () => undefined);
      serve(socket);
    },
  );
  return listening(server);
}

export function plainHost(serve: (socket: Socket) => void): Promise<number> {
  return listening(createServer(serve));
}

/** The end of a socket, with or without an error. */
export const closeOf = (socket: Socket): Promise<unknown> =>
  new Promise((resolve) => socket.once('close', resolve));

export const echo = (socket: Socket) => void socket.pipe(socket);

export interface EgressSetting {
  readonly rules: readonly NetworkRule[];
  readonly operator?: OperatorNetwork;
  readonly terms?: Record<string, ServiceTerms>;
  /** Name to address; and `address:port` to the port of a server here. */
  readonly names: Record<string, string>;
  readonly hosts: Record<string, number>;
  readonly limits?: Partial<EgressLimits>;
  readonly secrets?: Record<string, string>;
}

export async function startEgress(setting: EgressSetting) {
  const compile = (rules: readonly NetworkRule[], version: number) =>
    compileNetwork(rules, { version, operator: setting.operator ?? {}, terms: setting.terms });
  const now: { network: CompiledNetwork | undefined } = { network: compile(setting.rules, 1) };
  const denied: NetworkDenial[] = [];
  const dialed: string[] = [];
  const lookups: (() => void)[] = [];
  const hold = { lookups: false };
  const resolver = createNameResolver({
    filter: createAddressFilter({ denied: [] }),
    upstream: {
      async lookup(name) {
        if (hold.lookups) await new Promise<void>((resume) => lookups.push(() => resume()));
        const address = setting.names[name];
        if (address === undefined) throw new DsecError('not-found', name);
        return [{ address, ttlS: 60 }];
      },
    },
  });
  const server = await startEgressServer({
    endpoints: [443, 80, 8443].map((port) => ({ listen: { host: '127.0.0.1', port: 0 }, port })),
    findSandbox: (address) =>
      now.network === undefined || address === '127.0.0.9'
        ? undefined
        : { id: `sb-${address}`, network: now.network },
    guard: createNameGuard(),
    denials: createDenialReporter({ onDenied: (denial) => denied.push(denial) }),
    resolver,
    ca: WORLD.certificatePem,
    dial(address, port) {
      dialed.push(`${address}:${port}`);
      return connect({
        ...{
          host: '127.0.0.1',
          port: setting.hosts[`${address}:${port}`] ?? 1,
          allowHalfOpen: true,
        },
      });
    },
    authorityOf: () => SANDBOX_AUTHORITY,
    secretOf: (_, name) => setting.secrets?.[name],
    limits: { ...EGRESS_LIMITS, ...setting.limits },
  });
  ends.push(() => server.close());
  const [tls = 0, http = 0, other = 0] = server.ports;
  return {
    ...{ server, denied, dialed, tls, http, other, hold, lookups },
    update(rules: readonly NetworkRule[] | undefined) {
      now.network = rules && compile(rules, (now.network?.version ?? 0) + 1);
    },
  };
}

export interface SecureOptions {
  readonly servername?: string;
  readonly ca?: string;
  readonly from?: string;
  readonly socket?: Socket;
}

/** A TLS connection through the proxy; rejects with what the client sees where it fails. */
export async function secureClient(port: number, options: SecureOptions): Promise<TLSSocket> {
  const { servername, ca = WORLD.certificatePem, from = '127.0.0.1', socket } = options;
  const raw = socket ?? connect({ host: '127.0.0.1', port, localAddress: from });
  raw.on('error', () => undefined);
  const client = tlsConnect({ socket: raw, ca, ...(servername ? { servername } : {}) });
  // TLS before what it runs over: Node crashes where the lower one is destroyed first.
  ends.push(() => raw.destroy());
  ends.push(() => client.destroy());
  await new Promise((resolve, reject) => {
    client.once('secureConnect', resolve);
    client.once('error', reject);
    client.once('close', () => reject(new Error('closed')));
  });
  client.on('error', () => undefined);
  return client;
}

/** Sends text and gives all that comes back until the other end closes. */
export async function rawExchange(to: number | Socket, text: string): Promise<string> {
  const socket = typeof to === 'number' ? connect({ host: '127.0.0.1', port: to }) : to;
  ends.push(() => socket.destroy());
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    received += `<${error.code}>`;
  });
  socket.write(text);
  await once(socket, 'close');
  return received;
}
