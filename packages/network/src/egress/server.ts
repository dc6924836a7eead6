import { createServer, type Server, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { asDsecError, DsecError } from '@dsec/std';
import type { DenialReporter } from '../denials.ts';
import type { NameGuard } from '../dns/name-guard.ts';
import { closeGiven, closeServer, type ListenAt, listenOn, plainAddress } from '../listen.ts';
import type { NameRule } from '../rules/compiled.ts';
import { findNameRule, isNarrow } from '../rules/match.ts';
import type { DenialReason, FindSandbox } from '../seams.ts';
import type { CertificateAuthority } from './certificate-authority.ts';
import { TLS_ACCESS_DENIED, TLS_INTERNAL_ERROR } from './client-hello.ts';
import {
  createFlowTable,
  type EgressCounters,
  type Flow,
  type FlowTarget,
  reset,
} from './flows.ts';
import { isHelloRetry, parseSecondHello } from './hello-retry.ts';
import type { HttpConnection } from './http-connection.ts';
import { createHttpProxy, type HttpProxy } from './http-proxy.ts';
import { createIndexFilter } from './index-filter.ts';
import { EGRESS_LIMITS, type EgressLimits } from './limits.ts';
import { type ConnectionStart, readStart, readUntil } from './sniff.ts';
import { splice } from './splice.ts';
import {
  createUpstreams,
  type Upstreams,
  type UpstreamsOptions,
  upstreamDenial,
} from './upstreams.ts';

/** A socket to listen on, and the port that it stands for in the rules and outside. */
export interface EgressEndpoint {
  readonly listen: ListenAt;
  /** Absent: the one that it listens on. */
  readonly port?: number | undefined;
}

export interface EgressServerOptions extends Omit<UpstreamsOptions, 'limits'> {
  readonly endpoints: readonly EgressEndpoint[];
  readonly findSandbox: FindSandbox;
  readonly guard: NameGuard;
  readonly denials: DenialReporter;
  /** The authority that a sandbox trusts, for rules by which TLS ends here. Absent: such rules deny. */
  readonly authorityOf?: ((sandbox: string) => CertificateAuthority | undefined) | undefined;
  /** Values of secrets that rules inject. They are given out to verified hosts alone and never logged. */
  readonly secretOf?: ((sandbox: string, name: string) => string | undefined) | undefined;
  readonly limits?: EgressLimits | undefined;
}

export interface EgressServer {
  /** In the order of the endpoints. */
  readonly ports: readonly number[];
  /**
   * Cuts the flows of a sandbox that the predicate picks, before it returns; what is being opened for them
   * is dropped. Call it after `findSandbox` gives the new rules. Returns how many.
   */
  revoke(sandbox: string, predicate: (target: FlowTarget) => boolean): number;
  /** Cuts every flow that the sandbox's present rules no longer open. */
  revokeStale(sandbox: string, address: string): number;
  /** For a sandbox that is gone. */
  forget(sandbox: string): void;
  counters(sandbox: string): EgressCounters;
  close(): Promise<void>;
}

/** The node's way out for names: what a connection says it is for is checked, then it is let through. */
export async function startEgressServer(options: EgressServerOptions): Promise<EgressServer> {
  const { endpoints, limits = EGRESS_LIMITS, findSandbox } = options;
  const flows = createFlowTable(limits);
  const upstreams = createUpstreams({ ...options, limits });
  const index = createIndexFilter();
  const http = createHttpProxy({ upstreams, limits, serveIndex: index.serve });
  const parts: Parts = { options, limits, upstreams, http };

  const accept = (socket: Socket, port: number) => {
    socket.on('error', () => socket.destroy());
    const address = plainAddress(socket.remoteAddress);
    const sandbox = findSandbox(address);
    if (sandbox === undefined) return void socket.resetAndDestroy();
    const flow = flows.open(sandbox.id, socket);
    if (flow === undefined) {
      options.denials.report({ sandbox: sandbox.id, at: 'egress', reason: 'quota', port });
      return void socket.resetAndDestroy();
    }
    void handleStart(socket, createPassage(flow, address, port, parts), parts);
  };

  const servers = endpoints.map(() => createServer({ allowHalfOpen: true, pauseOnConnect: true }));
  const ports = await listenAll(servers, endpoints);
  for (const [i, server] of servers.entries()) {
    server.on('connection', (socket) => accept(socket, endpoints[i]?.port ?? ports[i] ?? 0));
  }
  return {
    ports,
    revoke: (sandbox, predicate) => flows.revoke(sandbox, predicate),
    revokeStale(sandbox, address) {
      const now = findSandbox(address);
      if (now?.id !== sandbox) return flows.revoke(sandbox, () => true);
      return flows.revoke(
        sandbox,
        (target) => !isSame(findNameRule(now.network, target.name, target.port), target.rule),
      );
    },
    forget(sandbox) {
      flows.forget(sandbox);
      index.forget(sandbox);
    },
    counters: (sandbox) => flows.counters(sandbox),
    async close() {
      flows.cutAll();
      await Promise.all(servers.map(closeServer));
    },
  };
}

async function listenAll(servers: readonly Server[], endpoints: readonly EgressEndpoint[]) {
  const ports: number[] = [];
  try {
    for (const [i, { listen }] of endpoints.entries()) {
      const server = servers[i];
      if (server !== undefined) ports.push(await listenOn(server, listen));
    }
  } catch (thrown) {
    for (const server of servers) server.close();
    for (const { listen } of endpoints.slice(ports.length)) closeGiven(listen);
    throw asDsecError(thrown);
  }
  return ports;
}

/** A rule that is written anew with the same words lets the same through. */
const isSame = (a: NameRule | undefined, b: NameRule) => JSON.stringify(a) === JSON.stringify(b);

interface Parts {
  readonly options: EgressServerOptions;
  readonly limits: EgressLimits;
  readonly upstreams: Upstreams;
  readonly http: HttpProxy;
}

/** What the ways through the proxy share of one connection. */
interface Passage {
  readonly flow: Flow;
  readonly address: string;
  readonly port: number;
  /** The name that a tunnel was opened for. */
  readonly tunnelName?: string | undefined;
  judge(name: string, port: number): NameRule;
  deny(reason: DenialReason, name?: string, port?: number): void;
}

function createPassage(flow: Flow, address: string, port: number, { options }: Parts): Passage {
  const { findSandbox, guard, denials } = options;
  const deny = (reason: DenialReason, name?: string, denied: number = port) =>
    denials.report({ sandbox: flow.sandbox, at: 'egress', reason, name, port: denied });
  return {
    ...{ flow, address, port, deny },
    judge(name, asked) {
      const sandbox = findSandbox(address);
      const isOwner = sandbox?.id === flow.sandbox;
      const rule = isOwner ? findNameRule(sandbox.network, name, asked) : undefined;
      if (rule === undefined || !guard.admits(flow.sandbox, name, rule)) {
        deny(rule === undefined ? 'name' : 'name-shape', name, asked);
        throw new DsecError(
          'permission-denied',
          `no rule of this sandbox opens ${name} port ${asked}`,
        );
      }
      return rule;
    },
  };
}

async function handleStart(socket: Socket, passage: Passage, parts: Parts): Promise<void> {
  let start: ConnectionStart;
  try {
    start = await readStart(socket, parts.limits);
  } catch (thrown) {
    if (asDsecError(thrown).code === 'protocol') passage.deny('malformed');
    passage.flow.countRefused();
    return reset(socket);
  }
  if (start.hello === undefined) {
    socket.unshift(start.bytes);
    const { tunnelName } = passage;
    return serveHttp(socket, passage, { isTls: false, boundName: tunnelName }, parts);
  }
  try {
    await handleTls(socket, start, passage, parts);
  } catch (thrown) {
    refuseTls(socket, passage, asDsecError(thrown));
  }
}

/** A TLS client is told at once, in its own words, whether it was denied or something failed. */
function refuseTls(socket: Socket, { flow }: Passage, error: DsecError): void {
  flow.countRefused();
  const isDenied = error.code === 'permission-denied' || error.code === 'protocol';
  socket.end(isDenied ? TLS_ACCESS_DENIED : TLS_INTERNAL_ERROR, () => socket.destroySoon());
}

async function handleTls(
  socket: Socket,
  { hello, bytes }: ConnectionStart,
  passage: Passage,
  parts: Parts,
): Promise<void> {
  const { flow, port } = passage;
  const name = hello?.serverName;
  const refuse = (reason: DenialReason) => {
    passage.deny(reason, name);
    return new DsecError('permission-denied', `TLS: ${reason}`);
  };
  if (name === undefined) throw refuse('name-mismatch');
  if (passage.tunnelName !== undefined && passage.tunnelName !== name)
    throw refuse('name-mismatch');
  if (hello?.isEncrypted === true) throw refuse('ech');
  const target = { name, port, rule: passage.judge(name, port) };
  flow.addTarget(target);
  if (endsHere(target.rule)) {
    socket.unshift(bytes);
    return terminate(socket, target, passage, parts);
  }
  const upstream = await parts.upstreams.openProven(flow, target).catch((thrown) => {
    const error = asDsecError(thrown);
    if (error.code !== 'permission-denied') throw error;
    throw refuse(upstreamDenial(error));
  });
  if (flow.signal.aborted) return reset(upstream);
  flow.count('up', bytes.length);
  upstream.write(bytes);
  try {
    const isSame = await settleHello(socket, upstream, name, parts.limits);
    if (!isSame) throw refuse('name-mismatch');
  } catch (thrown) {
    reset(upstream);
    throw thrown;
  }
  await splice(socket, upstream, flow, parts.limits.idleTimeoutMs);
}

/**
 * A server may ask for a second ClientHello, and TLS itself does not hold a client to the name of its first
 * one. Lets nothing of the client pass until the server has answered; whether the name is still the same.
 */
async function settleHello(
  ...[client, upstream, name, limits]: [Socket, Socket, string, EgressLimits]
): Promise<boolean> {
  const answer = await readUntil(upstream, limits, isHelloRetry);
  if (!answer.found) {
    upstream.unshift(answer.bytes);
    return true;
  }
  client.write(answer.bytes);
  const second = await readUntil(client, limits, parseSecondHello);
  if (second.found.serverName !== name || second.found.isEncrypted) return false;
  upstream.write(second.bytes);
  return true;
}

const endsHere = (rule: NameRule) =>
  rule.inject !== undefined || rule.isTerminated === true || isNarrow(rule);

function terminate(socket: Socket, target: FlowTarget, passage: Passage, parts: Parts): void {
  const authority = parts.options.authorityOf?.(passage.flow.sandbox);
  if (authority === undefined) {
    throw new DsecError('unsupported', 'this node has no authority that the sandbox trusts');
  }
  const secure = new TLSSocket(socket, {
    isServer: true,
    secureContext: authority.contextFor(target.name),
    ALPNProtocols: ['http/1.1'],
  });
  secure.on('error', () => secure.destroy());
  passage.flow.addSocket(secure);
  const timer = setTimeout(() => secure.destroy(), parts.limits.startTimeoutMs);
  socket.once('close', () => clearTimeout(timer));
  secure.once('secure', () => {
    clearTimeout(timer);
    serveHttp(secure, passage, { isTls: true, boundName: target.name }, parts);
  });
}

function serveHttp(
  socket: Socket,
  passage: Passage,
  bound: { isTls: boolean; boundName: string | undefined },
  parts: Parts,
): void {
  const { flow, port, judge, deny, address } = passage;
  const connection: HttpConnection = {
    ...{ flow, port, judge, deny, ...bound },
    secret: (name) => parts.options.secretOf?.(flow.sandbox, name),
    tunnel(raw, target) {
      const inner = createPassage(flow, address, target.port, parts);
      void handleStart(raw, { ...inner, tunnelName: target.name }, parts);
    },
  };
  parts.http.serve(socket, connection);
}
