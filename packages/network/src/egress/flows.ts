import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type Clock, DsecError, systemClock } from '@dsec/std';
import type { NameRule } from '../rules/compiled.ts';
import { createTokenBucket, type TokenBucket } from '../token-bucket.ts';
import type { EgressLimits } from './limits.ts';

/** What one connection of a sandbox is let through for. */
export interface FlowTarget {
  readonly name: string;
  readonly port: number;
  readonly rule: NameRule;
}

/** Totals of a sandbox since it was first seen. */
export interface EgressCounters {
  /** Connections that it has now. */
  readonly open: number;
  readonly connections: number;
  readonly refused: number;
  /** From the sandbox. */
  readonly bytesUp: number;
  readonly bytesDown: number;
}

/** One connection of a sandbox, with all that was opened for it. */
export interface Flow {
  readonly sandbox: string;
  readonly isCut: boolean;
  /** Aborted when the flow is cut or has ended. */
  readonly signal: AbortSignal;
  /**
   * From now on the flow may be revoked by this target, and a revocation cuts all of it. Throws
   * `quota-exceeded` for a flow of too many.
   */
  addTarget(target: FlowTarget): void;
  /** Is cut along with the flow; TLS needs to be told beside the socket that it runs over. */
  addSocket(socket: Socket): void;
  count(direction: 'up' | 'down', bytes: number): void;
  countRefused(): void;
}

export interface FlowTable {
  /** `undefined` where the sandbox or the node has as many connections as it may. */
  open(sandbox: string, socket: Socket): Flow | undefined;
  /** Cuts flows with a target that the predicate picks, with a reset at both ends. Returns how many. */
  revoke(sandbox: string, predicate: (target: FlowTarget) => boolean): number;
  /** Cuts every flow of a sandbox that is gone, and drops its counters. */
  forget(sandbox: string): void;
  counters(sandbox: string): EgressCounters;
  cutAll(): void;
}

interface Totals {
  connections: number;
  refused: number;
  bytesUp: number;
  bytesDown: number;
  readonly rate: TokenBucket;
  readonly flows: Set<OpenFlow>;
}

interface OpenFlow {
  readonly targets: Map<string, FlowTarget>;
  cut(): void;
}

/** A connection to a proxy may carry requests to several hosts. */
const TARGETS_MAX = 64;

const LEAVE_MS = 30_000;

const NOTHING: Omit<EgressCounters, 'open'> = {
  connections: 0,
  refused: 0,
  bytesUp: 0,
  bytesDown: 0,
};

/** Who has which connections, for quotas, counters and revocation. Its size follows the open connections. */
export function createFlowTable(limits: EgressLimits, clock: Clock = systemClock): FlowTable {
  const sandboxes = new Map<string, Totals>();
  let open = 0;
  const totalsOf = (sandbox: string) => {
    let totals = sandboxes.get(sandbox);
    if (totals === undefined) {
      totals = { ...NOTHING, rate: createTokenBucket(limits.connectionRate), flows: new Set() };
      sandboxes.set(sandbox, totals);
    }
    return totals;
  };
  const cut = (flows: Iterable<OpenFlow>) => {
    for (const flow of [...flows]) flow.cut();
  };

  return {
    open(sandbox, socket) {
      const totals = totalsOf(sandbox);
      const isFull = totals.flows.size >= limits.connectionsPerSandboxMax;
      if (isFull || open >= limits.connectionsMax || !totals.rate.take(clock.monotonicMs())) {
        totals.refused += 1;
        return undefined;
      }
      open += 1;
      totals.connections += 1;
      return openFlow(sandbox, socket, totals, () => {
        open -= 1;
      });
    },
    revoke(sandbox, predicate) {
      const flows = [...(sandboxes.get(sandbox)?.flows ?? [])];
      const chosen = flows.filter(({ targets }) => [...targets.values()].some(predicate));
      cut(chosen);
      return chosen.length;
    },
    forget(sandbox) {
      cut(sandboxes.get(sandbox)?.flows ?? []);
      sandboxes.delete(sandbox);
    },
    counters(sandbox) {
      const totals = sandboxes.get(sandbox);
      const { connections, refused, bytesUp, bytesDown } = totals ?? NOTHING;
      return { open: totals?.flows.size ?? 0, connections, refused, bytesUp, bytesDown };
    },
    cutAll() {
      for (const { flows } of sandboxes.values()) cut(flows);
    },
  };
}

function openFlow(sandbox: string, socket: Socket, totals: Totals, onEnd: () => void): Flow {
  const sockets = new Set([socket]);
  const ended = new AbortController();
  let isCut = false;
  const entry: OpenFlow = {
    targets: new Map(),
    cut() {
      isCut = true;
      ended.abort();
      cutSockets(sockets);
    },
  };
  totals.flows.add(entry);
  socket.once('close', () => {
    totals.flows.delete(entry);
    ended.abort();
    onEnd();
    for (const other of sockets) if (other !== socket) leave(other);
  });
  return {
    sandbox,
    signal: ended.signal,
    get isCut() {
      return isCut;
    },
    addTarget(target) {
      const key = `${target.name} ${target.port}`;
      if (!entry.targets.has(key) && entry.targets.size >= TARGETS_MAX) {
        throw new DsecError('quota-exceeded', `a connection reaches ${TARGETS_MAX} hosts at most`);
      }
      entry.targets.set(key, target);
    },
    addSocket(other) {
      if (ended.signal.aborted) return reset(other);
      sockets.add(other);
      other.once('close', () => sockets.delete(other));
    },
    count(direction, bytes) {
      if (direction === 'up') totals.bytesUp += bytes;
      else totals.bytesDown += bytes;
    },
    countRefused() {
      totals.refused += 1;
    },
  };
}

/** What was said to the outside may still go out; what nobody waits for any more ends. */
function leave(socket: Socket): void {
  if (socket.writableEnded && !(socket instanceof TLSSocket)) {
    socket.setTimeout(LEAVE_MS, () => socket.destroy());
  } else {
    // Plain connections under TLS end with it.
    setImmediate(() => reset(socket));
  }
}

/** TLS before what it runs over: Node crashes where the lower one is destroyed first. */
function cutSockets(sockets: Iterable<Socket>): void {
  const all = [...sockets];
  for (const socket of all) if (socket instanceof TLSSocket) socket.destroy();
  for (const socket of all) reset(socket);
}

/** Ends a socket with a reset, so that its peer has an error at once and no end that looks regular. */
export function reset(socket: Socket): void {
  // Only a plain TCP connection can be reset; TLS over one goes with it.
  if (socket.connecting || socket.destroyed || socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}
