import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { type AgentLink, connectAgent } from '@dsec/backend';
import {
  createEdgeMetrics,
  createFileHandlers,
  createFiles,
  createPorts,
  type EdgeHandlers,
  type EdgeServer,
  type SandboxEntry,
  type Sandboxes,
  startEdgeServer,
} from '@dsec/edge';
import {
  formatTarget,
  isStreamRoute,
  type ParamsOf,
  type QueryOf,
  type Route,
  STREAM_HEADER,
  TICKET_HEADER,
  type TicketClaims,
} from '@dsec/protocol';
import {
  type Clock,
  DsecError,
  type ProjectId,
  parseEdgeId,
  parseSandboxId,
  type SandboxId,
  systemClock,
  systemRandom,
} from '@dsec/std';
import {
  type CallInput,
  type CallReply,
  callRoute,
  connectWebSocket,
  createHttpClient,
  type HttpClient,
  newStreamId,
  newTicketClaims,
  RETRY_POLICY,
  sha256Of,
  signTicket,
  type WebSocketChannel,
} from '@dsec/transport';
import { afterAll, beforeAll } from 'vitest';
import { type Aether, startAether } from './aether-peer.ts';

export const EDGE = parseEdgeId('edgea');
export const SANDBOX = parseSandboxId('sb-s1-edgea-aaaaaaaaaaaaaaaa').id;
export const FOREIGN = parseSandboxId('sb-s1-edgea-bbbbbbbbbbbbbbbb').id;
export const UNKNOWN = parseSandboxId('sb-s1-edgea-cccccccccccccccc').id;
export const PROJECT = 'ours' as ProjectId;
const KEY_ID = 'test-key';

/** A new edge refuses tickets from before its start, and a skew's length after it. */
const AHEAD_MS = 2000;
const ahead: Clock = { ...systemClock, wallMs: () => systemClock.wallMs() + AHEAD_MS };

/** Changes to what the ticket and the request say, for tickets that do not fit. */
export interface Forgery {
  readonly claims?: (claims: TicketClaims) => TicketClaims;
  readonly privateKey?: KeyObject;
  readonly target?: string;
  readonly streamId?: string;
}

/** An edge's HTTP server in front of a real agent, without a lifecycle: two sandboxes that always run. */
export interface EdgeWorld {
  readonly root: string;
  readonly aether: Aether;
  readonly server: EdgeServer;
  readonly baseUrl: string;
  readonly client: HttpClient;
  readonly publicKeys: ReadonlyMap<string, KeyObject>;
  readonly uses: { count: number };
  readonly logs: unknown[];
  /** Whether raw streams can be made. */
  raw: boolean;
  headersOf(
    route: Route,
    target: string,
    body: unknown,
    forgery?: Forgery,
  ): Readonly<Record<string, string>>;
  call<R extends Route>(
    route: R,
    input: CallInput<R>,
    options?: { signal?: AbortSignal; idempotencyKey?: string },
  ): Promise<CallReply<R>>;
  socket<R extends Route>(
    route: R,
    params: ParamsOf<R>,
    query: QueryOf<R>,
  ): Promise<WebSocketChannel>;
}

export function useEdge(handlersOf: () => Partial<EdgeHandlers> = () => ({})): () => EdgeWorld {
  let world: EdgeWorld;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    ({ world, stop } = await startWorld(handlersOf()));
  });
  afterAll(() => stop?.());
  return () => world;
}

async function startWorld(more: Partial<EdgeHandlers>) {
  const root = mkdtempSync(join(tmpdir(), 'dsec-edge-http-'));
  chmodSync(root, 0o777);
  const aether = await startAether({});
  const uses = { count: 0 };
  const switches = { raw: true };
  const sandboxes = fakeSandboxes(root, uses);
  const dial = async (): Promise<Duplex> => {
    const socket = connect({ path: aether.path, allowHalfOpen: true });
    await new Promise<void>((resolve, reject) =>
      socket.once('connect', resolve).once('error', reject),
    );
    return socket;
  };
  const agents = keptLink(dial);
  const rawDial = async () => {
    if (!switches.raw) throw new DsecError('unsupported', 'no second connection here');
    return dial();
  };
  const files = createFiles({
    ...{ sandboxes, agents, random: systemRandom, backend: { dial: rawDial } },
    idempotency: forgetful(),
  });
  const ports = createPorts({ sandboxes, agents });
  const keys = generateKeyPairSync('ed25519');
  const publicKeys = new Map([[KEY_ID, keys.publicKey]]);
  const logs: unknown[] = [];
  const log = (...line: unknown[]) => void logs.push(line);
  const server = await startEdgeServer({
    listen: { host: '127.0.0.1', port: 0 },
    edgeId: EDGE,
    publicKeys,
    clock: systemClock,
    sandboxes,
    handlers: { ...createFileHandlers(files, ports), ...more } as EdgeHandlers,
    metrics: createEdgeMetrics(() => sandboxes.list()),
    log: { debug: log, info: log, warn: log, error: log } as never,
  });
  const baseUrl = `http://127.0.0.1:${'port' in server.address ? server.address.port : 0}`;
  const client = createHttpClient({
    ...{ baseUrl, deadlineMs: 120_000 },
    // A ticket is good for one attempt.
    retries: { ...RETRY_POLICY, attemptsMax: 1 },
  });
  const ticket = ticketing(keys.privateKey);
  const world: EdgeWorld = {
    ...{ root, aether, server, baseUrl, client, publicKeys, uses, logs },
    get raw() {
      return switches.raw;
    },
    set raw(on) {
      switches.raw = on;
    },
    headersOf: ticket,
    async call(route, input, options = {}) {
      const { params = {}, query = {}, body } = input as Record<string, never>;
      const target = formatTarget(route, params, query);
      const sent = route.body.kind === 'json' ? JSON.stringify(body) : undefined;
      return callRoute(client, route, input, { ...options, headers: ticket(route, target, sent) });
    },
    socket(route, params, query) {
      const target = formatTarget(route, params, query);
      return connectWebSocket({ baseUrl, target, headers: ticket(route, target, undefined) });
    },
  };
  const stop = async () => {
    await client.close();
    await server.close(100);
    agents.close();
    await aether.stop();
    rmSync(root, { recursive: true, force: true });
  };
  return { world, stop };
}

function ticketing(privateKey: KeyObject): EdgeWorld['headersOf'] {
  return (route, target, body, forgery = {}) => {
    const { sandboxId } = matchParams(route, target);
    const streamId = isStreamRoute(route) ? newStreamId() : undefined;
    const request = {
      ...{ sandbox: sandboxId, operationClass: route.operationClass as never },
      ...{ method: route.method, target, streamId },
      bodyDigest: typeof body === 'string' ? sha256Of(body) : undefined,
    };
    const holder = { edge: EDGE, project: PROJECT, principal: 'tester' };
    const claims = newTicketClaims(request, holder, 20_000, ahead);
    const signed = signTicket(
      forgery.claims?.(claims) ?? claims,
      forgery.privateKey ?? privateKey,
      KEY_ID,
    );
    const sentStream = forgery.streamId ?? streamId;
    return {
      [TICKET_HEADER]: signed,
      ...(sentStream === undefined ? {} : { [STREAM_HEADER]: sentStream }),
    };
  };
}

function matchParams(route: Route, target: string): { sandboxId?: SandboxId } {
  const pattern = route.path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)');
  const match = new RegExp(`^${pattern}$`).exec(target.split('?')[0] as string);
  const id = match?.groups?.sandboxId;
  return id === undefined ? {} : { sandboxId: decodeURIComponent(id) as SandboxId };
}

function fakeSandboxes(cwd: string, uses: { count: number }): Sandboxes {
  const entry = (id: SandboxId, project: ProjectId) =>
    ({
      ...{ id, project, generation: 1, key: { id, generation: 1 }, state: 'running' },
      defaults: { env: {}, user: String(process.getuid?.() ?? 0), cwd },
    }) as unknown as SandboxEntry;
  const entries = new Map([
    [SANDBOX, entry(SANDBOX, PROJECT)],
    [FOREIGN, entry(FOREIGN, 'theirs' as ProjectId)],
  ]);
  const found = (id: SandboxId) => entries.get(id) as SandboxEntry;
  return {
    find: (id: SandboxId) => entries.get(id),
    list: () => entries.values(),
    requireRunning: async (id: SandboxId) => found(id),
    touch: () => {
      uses.count += 1;
    },
  } as unknown as Sandboxes;
}

/** Remembers keys, and nothing of digests: the journal's own tests are elsewhere. */
function forgetful() {
  const known = new Map<string, string>();
  return {
    async run(
      scope: { readonly key: string | undefined },
      _digest: unknown,
      prepare: () => Promise<() => string>,
    ) {
      const before = scope.key === undefined ? undefined : known.get(scope.key);
      if (before !== undefined) return { id: before, repeated: true };
      const id = (await prepare())();
      if (scope.key !== undefined) known.set(scope.key, id);
      return { id, repeated: false };
    },
    expire: () => 0,
  };
}

function keptLink(dial: () => Promise<Duplex>) {
  let link: Promise<AgentLink> | undefined;
  const open = () => {
    const opened = connectAgent({
      ...{ dial, sandboxId: SANDBOX, epoch: 1, random: systemRandom, clock: systemClock },
    });
    void opened.then((made) => made.closed).then(() => (link = undefined));
    return opened;
  };
  return {
    link: () => {
      link ??= open();
      return link;
    },
    close: () => void link?.then((made) => made.close()),
  };
}

export function randomName(): string {
  return randomBytes(6).toString('hex');
}
