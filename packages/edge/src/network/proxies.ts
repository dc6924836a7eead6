import { closeSync, openSync, statSync } from 'node:fs';
import type { RouterNamespace } from '@dsec/backend';
import { type ListeningSocket, openListeningSockets } from '@dsec/linux';
import {
  createAddressFilter,
  createDnsAnswerer,
  createNameGuard,
  createNameResolver,
  createUpstream,
  type DenialReporter,
  type DnsServer,
  type EgressServer,
  type FindSandbox,
  type OperatorNetwork,
  startDnsServer,
  startEgressServer,
} from '@dsec/network';
import { type Clock, createCleanupStack, DsecError, type SandboxId } from '@dsec/std';
import { addressesOfHost } from './packet-judge.ts';

export interface ProxiesOptions {
  readonly operator: OperatorNetwork;
  readonly poolRange: string;
  readonly gateway: string;
  /** Of the egress proxy. */
  readonly ports: readonly number[];
  readonly nameServers?: readonly string[] | undefined;
  readonly authorities?: string | undefined;
  readonly findSandbox: FindSandbox;
  readonly denials: DenialReporter;
  readonly clock: Clock;
}

/** The two proxies of a node, in whatever router namespace it has now. */
export interface Proxies {
  /** Resolves when both listen in this namespace; those of an earlier one are closed. */
  ensure(router: RouterNamespace): Promise<void>;
  /** Cuts what the present rules of a sandbox do not open. */
  revokeStale(id: SandboxId, address: string): void;
  /** Cuts all of a sandbox that is gone. */
  forget(id: SandboxId): void;
  close(): Promise<void>;
}

interface Running {
  readonly namespace: string;
  readonly dns: DnsServer;
  readonly egress: EgressServer;
}

const DNS_PORT = 53;

export function createProxies(options: ProxiesOptions): Proxies {
  let running: Running | undefined;
  let starting: Promise<void> = Promise.resolve();
  let isClosed = false;

  const start = async ({ namespacePath }: RouterNamespace) => {
    if (isClosed) throw new DsecError('unavailable', 'the edge is closing');
    const { dev, ino } = statSync(namespacePath);
    const namespace = `${dev}:${ino}`;
    if (running?.namespace === namespace) return;
    const last = running;
    running = undefined;
    // A launcher that nobody needed has gone, and its router with the last sandbox.
    if (last !== undefined) await closeBoth(last);
    running = await startBoth(options, namespacePath, namespace);
  };
  return {
    ensure(router) {
      const started = starting.catch(() => undefined).then(() => start(router));
      starting = started;
      return started;
    },
    revokeStale: (id, address) => void running?.egress.revokeStale(id, address),
    forget: (id) => running?.egress.forget(id),
    async close() {
      isClosed = true;
      await starting.catch(() => undefined);
      if (running !== undefined) await closeBoth(running);
      running = undefined;
    },
  };
}

const closeBoth = ({ dns, egress }: Running) => Promise.all([dns.close(), egress.close()]);

async function startBoth(
  options: ProxiesOptions,
  namespacePath: string,
  namespace: string,
): Promise<Running> {
  const { findSandbox, denials, clock, gateway, ports, operator } = options;
  const { nameServers: servers, authorities: ca } = options;
  const guard = createNameGuard(undefined, clock);
  const filter = createAddressFilter({
    denied: [
      ...(operator.deniedAddresses ?? []),
      ...[options.poolRange, `${gateway}/32`],
      ...addressesOfHost(),
    ],
    permitted: operator.permittedAddresses,
  });
  const resolver = createNameResolver({ upstream: createUpstream({ servers }), filter, clock });
  const answerer = createDnsAnswerer({
    ...{ findSandbox, gatewayAddress: gateway, resolver, guard, denials, clock },
    onDedicated() {
      throw new DsecError('unsupported', 'packets have no way out of this node');
    },
  });
  const cleanup = createCleanupStack();
  const [udp = -1, tcp = -1, ...rest] = socketsIn(namespacePath, gateway, ports);
  /** Those that no server has taken yet: one that fails closes what it was given. */
  let free = rest;
  cleanup.push('descriptors', () => {
    for (const fd of free) closeSync(fd);
  });
  try {
    const dns = await startDnsServer({ answerer, findSandbox, udp: { fd: udp }, tcp: { fd: tcp } });
    cleanup.push('dns', () => dns.close());
    const endpoints = ports.map((port, i) => ({ listen: { fd: rest[i] ?? -1 }, port }));
    free = [];
    const egress = await startEgressServer({
      ...{ findSandbox, guard, denials, resolver, clock, ca, endpoints },
    });
    return { namespace, dns, egress };
  } catch (thrown) {
    await cleanup.run();
    throw thrown;
  }
}

function socketsIn(namespacePath: string, address: string, ports: readonly number[]): number[] {
  const kinds = [
    { kind: 'udp', port: DNS_PORT },
    { kind: 'tcp', port: DNS_PORT },
  ] as const;
  const wanted: ListeningSocket[] = [
    ...kinds.map((one) => ({ ...one, address })),
    ...ports.map((port) => ({ kind: 'tcp' as const, address, port })),
  ];
  const namespaceFd = openSync(namespacePath, 'r');
  try {
    return openListeningSockets(namespaceFd, wanted);
  } finally {
    closeSync(namespaceFd);
  }
}
