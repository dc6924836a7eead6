import { connect as netConnect, type Socket } from 'node:net';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { asDsecError, type Clock, DsecError, systemClock } from '@dsec/std';
import type { NameResolver } from '../dns/resolver.ts';
import { createRecentMap } from '../recent-map.ts';
import type { DenialReason } from '../seams.ts';
import { type Flow, type FlowTarget, reset } from './flows.ts';
import type { EgressLimits } from './limits.ts';

/** Opens a TCP connection; a seam for tests and for nodes that go out by another way. */
export type Dial = (address: string, port: number) => Socket;

export interface UpstreamsOptions {
  readonly resolver: NameResolver;
  readonly limits: EgressLimits;
  /** PEM of the authorities that may vouch for a name; absent: those of Node. */
  readonly ca?: string | readonly string[] | undefined;
  readonly dial?: Dial | undefined;
  /** 4 alone unless the node reaches the Internet by IPv6 too. */
  readonly families?: readonly (4 | 6)[] | undefined;
  readonly clock?: Clock | undefined;
}

/**
 * Connections to the outside for a flow. Each resolves its name once and goes to an address of that answer.
 * They reject with `permission-denied` (no public address; `details.reason` is `certificate` where the
 * address does not prove its name), `not-found`, `unavailable`, `overloaded` or `cancelled`.
 */
export interface Upstreams {
  /** Plain TCP. */
  openPlain(flow: Flow, target: FlowTarget): Promise<Socket>;
  /** TCP to an address that lately showed a valid certificate for the name, in a handshake of our own. */
  openProven(flow: Flow, target: FlowTarget): Promise<Socket>;
  /** TLS with HTTP/1.1 in it, to the verified name. */
  openTls(flow: Flow, target: FlowTarget): Promise<TLSSocket>;
}

/** Why an upstream that rejected with `permission-denied` was not let through. */
export function upstreamDenial(error: DsecError): DenialReason {
  return error.details.reason === 'certificate' ? 'certificate' : 'answer';
}

const PROOF_TTL_MS = 5 * 60_000;
const FAILED_PROOF_TTL_MS = 10_000;
const PROOFS_MAX = 8192;
const PROVING_MAX = 1024;

const directDial: Dial = (host, port) => netConnect({ host, port, allowHalfOpen: true });

export function createUpstreams(options: UpstreamsOptions): Upstreams {
  const { resolver, limits, families = [4], dial = directDial } = options;
  const prove = createProver(options);

  const addressesOf = async ({ name, rule }: FlowTarget): Promise<readonly string[]> => {
    if (rule.addresses !== undefined) return rule.addresses;
    const answers = await Promise.allSettled(families.map((one) => resolver.resolve(name, one)));
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (found.length > 0) return found.map(({ address }) => address);
    const failure = answers.find((answer) => answer.status === 'rejected');
    throw failure?.reason ?? new DsecError('not-found', `${name} has no address`);
  };

  const opening = createOpeningTable(limits.openingPerSandboxMax);

  /** The first address that works; the error of the last one where none does. */
  const first = <T>(flow: Flow, target: FlowTarget, open: (address: string) => Promise<T>) =>
    opening.run(flow.sandbox, () => tryEach(flow, target, open));

  const tryEach = async <T>(
    flow: Flow,
    target: FlowTarget,
    open: (address: string) => Promise<T>,
  ) => {
    let failure = new DsecError('not-found', `${target.name} has no address`);
    for (const address of (await addressesOf(target)).slice(0, limits.addressesTriedMax)) {
      if (flow.signal.aborted) throw new DsecError('cancelled', 'the connection has ended');
      try {
        return await open(address);
      } catch (thrown) {
        failure = asDsecError(thrown);
      }
    }
    throw failure;
  };

  const connectTo = (flow: Flow, address: string, port: number) => {
    const socket = dial(address, port);
    flow.addSocket(socket);
    return settled(socket, 'connect', limits.connectTimeoutMs, `${address} port ${port}`);
  };

  return {
    openPlain: (flow, target) =>
      first(flow, target, (address) => connectTo(flow, address, target.port)),
    openProven: (flow, target) =>
      first(flow, target, async (address) => {
        await prove(target.name, address, target.port);
        return connectTo(flow, address, target.port);
      }),
    openTls: (flow, target) =>
      first(flow, target, (address) => {
        const raw = dial(address, target.port);
        flow.addSocket(raw);
        return handshake(raw, target.name, address, options, (secure) => flow.addSocket(secure));
      }),
  };
}

/** Bounds what one sandbox has waiting for name servers and hosts. */
function createOpeningTable(openingMax: number) {
  const opening = new Map<string, number>();
  return {
    async run<T>(sandbox: string, work: () => Promise<T>): Promise<T> {
      const before = opening.get(sandbox) ?? 0;
      if (before >= openingMax) {
        throw new DsecError('overloaded', 'the sandbox opens too many connections at a time');
      }
      opening.set(sandbox, before + 1);
      try {
        return await work();
      } finally {
        const left = (opening.get(sandbox) ?? 1) - 1;
        if (left === 0) opening.delete(sandbox);
        else opening.set(sandbox, left);
      }
    },
  };
}

/** A socket once it is ready; destroyed where it fails or takes too long. It is paused then. */
function settled<S extends Socket>(
  socket: S,
  event: 'connect' | 'secureConnect',
  timeoutMs: number,
  what: string,
): Promise<S> {
  return new Promise((resolve, reject) => {
    const fail = (thrown: unknown) => {
      clearTimeout(timer);
      socket.destroy();
      reject(
        new DsecError('unavailable', `${what} does not take the connection`, { cause: thrown }),
      );
    };
    const timer = setTimeout(() => fail(new Error('timed out')), timeoutMs);
    const closed = () => fail(new Error('closed'));
    socket.once('error', fail);
    socket.once('close', closed);
    socket.once(event, () => {
      clearTimeout(timer);
      socket.off('error', fail);
      socket.off('close', closed);
      // What fails from now on is seen as a close by whoever holds the socket.
      socket.on('error', () => socket.destroy());
      resolve(socket);
    });
  });
}

async function handshake(
  raw: Socket,
  name: string,
  address: string,
  { ca, limits }: UpstreamsOptions,
  onStart?: (secure: TLSSocket) => void,
): Promise<TLSSocket> {
  raw.on('error', () => raw.destroy());
  const secure = tlsConnect({
    socket: raw,
    servername: name,
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }),
  });
  onStart?.(secure);
  try {
    return await settled(secure, 'secureConnect', limits.connectTimeoutMs, `${name} (${address})`);
  } catch (thrown) {
    raw.destroy();
    const cause = (thrown as DsecError).cause;
    if (!isCertificateFault(cause)) throw thrown;
    throw new DsecError('permission-denied', `${address} does not prove that it is ${name}`, {
      cause,
      details: { reason: 'certificate' },
    });
  }
}

/** What Node calls a certificate that it does not take; everything else is a fault of the connection. */
function isCertificateFault(thrown: unknown): boolean {
  const code = String((thrown as { code?: unknown } | undefined)?.code ?? '');
  return /CERT|SIGNATURE|ALTNAME|ISSUER|CRL|SELF_SIGNED|VERIFY|INVALID_CA|INVALID_PURPOSE/.test(
    code,
  );
}

/**
 * A spliced connection hides its certificate (TLS 1.3), so a handshake of our own asks the same address for
 * it first. One proof serves for minutes, and one handshake for all who wait for it.
 */
function createProver(options: UpstreamsOptions) {
  const { clock = systemClock, dial = directDial } = options;
  const proofs = createRecentMap<string, { untilMs: number; fault?: DsecError }>(PROOFS_MAX);
  const running = new Map<string, Promise<void>>();

  const proveNow = async (key: string, name: string, address: string, port: number) => {
    const raw = dial(address, port);
    try {
      const secure = await handshake(raw, name, address, options);
      proofs.set(key, { untilMs: clock.monotonicMs() + PROOF_TTL_MS });
      secure.destroy();
    } catch (thrown) {
      const fault = asDsecError(thrown);
      proofs.set(key, { untilMs: clock.monotonicMs() + FAILED_PROOF_TTL_MS, fault });
      throw fault;
    } finally {
      reset(raw);
    }
  };

  return async (name: string, address: string, port: number): Promise<void> => {
    const key = `${name} ${address} ${port}`;
    const known = proofs.get(key);
    if (known !== undefined && known.untilMs > clock.monotonicMs()) {
      if (known.fault !== undefined) throw known.fault;
      return;
    }
    let work = running.get(key);
    if (work === undefined) {
      if (running.size >= PROVING_MAX) {
        throw new DsecError('overloaded', `${PROVING_MAX} certificates are being asked for`);
      }
      work = proveNow(key, name, address, port).finally(() => running.delete(key));
      running.set(key, work);
    }
    await work;
  };
}
