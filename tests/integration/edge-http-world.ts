import type { KeyObject } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { type AgentLink, connectAgent } from '@dsec/backend';
import {
  createEdgeHandlers,
  createEdgeMetrics,
  createFiles,
  createPorts,
  type EdgeServer,
  type EdgeServices,
  type Idempotency,
  type SandboxEntry,
  type Sandboxes,
  startEdgeServer,
} from '@dsec/edge';
import {
  DsecError,
  type ProjectId,
  parseEdgeId,
  parseSandboxId,
  type SandboxId,
  systemClock,
  systemRandom,
} from '@dsec/std';
import { connectUnix } from '@dsec/transport';
import { afterAll, beforeAll } from 'vitest';
import {
  createTicketedClient,
  KEY_ID,
  newTicketKeys,
  type TicketedClient,
} from '../../packages/edge/test/support/ticketed-client.ts';
import { type Aether, startAether } from './aether-peer.ts';

export const EDGE = parseEdgeId('edgea');
export const SANDBOX = parseSandboxId('sb-s1-edgea-aaaaaaaaaaaaaaaa').id;
export const FOREIGN = parseSandboxId('sb-s1-edgea-bbbbbbbbbbbbbbbb').id;
export const UNKNOWN = parseSandboxId('sb-s1-edgea-cccccccccccccccc').id;
export const PROJECT = 'ours' as ProjectId;

/** Files and ports of an edge in front of a real agent, with two sandboxes that always run. */
export interface EdgeWorld extends TicketedClient {
  readonly root: string;
  readonly aether: Aether;
  readonly server: EdgeServer;
  readonly baseUrl: string;
  readonly publicKeys: ReadonlyMap<string, KeyObject>;
  readonly logs: unknown[];
  /** Whether raw streams can be made. */
  raw: boolean;
}

export function useEdge(): () => EdgeWorld {
  let world: EdgeWorld;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    ({ world, stop } = await startWorld());
  });
  afterAll(() => stop?.());
  return () => world;
}

async function startWorld() {
  const root = mkdtempSync(join(tmpdir(), 'dsec-edge-http-'));
  chmodSync(root, 0o777);
  const aether = await startAether({});
  const sandboxes = fakeSandboxes(root);
  const agents = keptLink(() => dialSocket(aether.path));
  const switches = { raw: true };
  const backend = {
    async dial() {
      if (switches.raw) return dialSocket(aether.path);
      throw new DsecError('unsupported', 'no second connection here');
    },
  };
  const files = createFiles({
    ...{ sandboxes, agents, backend, random: systemRandom, idempotency: rememberKeys() },
  });
  const ports = createPorts({ sandboxes, agents });
  const keys = newTicketKeys();
  const publicKeys = new Map([[KEY_ID, keys.publicKey]]);
  const logs: unknown[] = [];
  const log = (...line: unknown[]) => void logs.push(line);
  const metrics = createEdgeMetrics(() => sandboxes.list());
  const services = { ...{ version: '0.1.0', sandboxes, files, ports, metrics }, exec: {} };
  const server = await startEdgeServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, edgeId: EDGE, publicKeys, clock: systemClock },
    ...{ sandboxes, metrics, handlers: createEdgeHandlers(services as unknown as EdgeServices) },
    log: { debug: log, info: log, warn: log, error: log } as never,
  });
  const baseUrl = `http://127.0.0.1:${'port' in server.address ? server.address.port : 0}`;
  const holder = { edge: EDGE, project: PROJECT, principal: 'tester' };
  const client = createTicketedClient(baseUrl, holder, keys.privateKey);
  const world: EdgeWorld = {
    ...{ ...client, root, aether, server, baseUrl, publicKeys, logs },
    get raw() {
      return switches.raw;
    },
    set raw(on) {
      switches.raw = on;
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

async function dialSocket(path: string): Promise<Duplex> {
  const socket = connectUnix(path, { allowHalfOpen: true });
  await new Promise<void>((resolve, reject) =>
    socket.once('connect', resolve).once('error', reject),
  );
  return socket;
}

function fakeSandboxes(cwd: string): Sandboxes {
  const defaults = { env: {}, user: String(process.getuid?.() ?? 0), cwd };
  const entry = (id: SandboxId, project: ProjectId) =>
    ({
      ...{ id, project, generation: 1, key: { id, generation: 1 }, state: 'running' },
      ...{ defaults, spec: {} },
    }) as unknown as SandboxEntry;
  const entries = new Map([
    [SANDBOX, entry(SANDBOX, PROJECT)],
    [FOREIGN, entry(FOREIGN, 'theirs' as ProjectId)],
  ]);
  return {
    find: (id: SandboxId) => entries.get(id),
    list: () => entries.values(),
    requireRunning: async (id: SandboxId) => entries.get(id),
    touch: () => {},
    hold: () => () => {},
  } as unknown as Sandboxes;
}

/** Without a journal, which has tests of its own. */
function rememberKeys(): Idempotency {
  const known = new Set<string>();
  return {
    run: () => Promise.reject(new DsecError('unsupported', 'nothing with an id is made here')),
    async attempt({ key }, _digest, _refusals, effect) {
      if (key !== undefined && known.has(key)) return;
      await effect();
      if (key !== undefined) known.add(key);
    },
    expire: () => 0,
  };
}

function keptLink(dial: () => Promise<Duplex>) {
  const agent = { dial, sandboxId: SANDBOX, epoch: 1, random: systemRandom, clock: systemClock };
  let link: Promise<AgentLink> | undefined;
  const open = async () => {
    const opened = await connectAgent(agent);
    void opened.closed.then(() => {
      link = undefined;
    });
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
