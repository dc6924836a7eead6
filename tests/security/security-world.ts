/**
 * An edge on real containers whose sandboxes hold a program of hostile actions (native/probe), the same
 * program without any protection to compare with, and how a sandbox looks from the host.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openContainerBackend } from '@dsec/backend-container';
import {
  createHostProbe,
  defaultNodePolicy,
  type Edge,
  type EdgeOptions,
  openEdge,
  type SandboxEntry,
  startEdgeServer,
} from '@dsec/edge';
import { createLayerStore, resolveEnvironment } from '@dsec/layers';
import {
  type Exec,
  type ExecSpec,
  type NetworkRule,
  ROUTES,
  type SandboxCreate,
  type SandboxLimits,
} from '@dsec/protocol';
import {
  type Digest,
  DsecError,
  MIB,
  type PrincipalId,
  type ProjectId,
  parseShardId,
  systemClock,
  systemRandom,
} from '@dsec/std';
import {
  createTicketedClient,
  KEY_ID,
  newTicketKeys,
  type TicketedClient,
} from '../../packages/edge/test/support/ticketed-client.ts';
import {
  type BackendWorld,
  openBackendWorld,
  openSharedStore,
} from '../integration/backend-container-world.ts';
import { NATIVE } from '../integration/launcher-world.ts';
import { type HostView, hostViewOf } from './host-view.ts';

export const PROBE = join(NATIVE, 'build/hostile_probe');
const PROGRAMS = [
  'ln',
  'mkdir',
  'mkfifo',
  'mv',
  'cp',
  'chmod',
  'chown',
  'find',
  'truncate',
  'mknod',
  'mount',
  'umount',
  ...['bash', 'getent'],
];

export const LIMITS = {
  ...{ cpuMillicores: 1000, memoryBytes: 192 * MIB, pidsMax: 96 },
  ...{ diskBytes: 32 * MIB, inodesMax: 4096, openFilesMax: 512 },
};

/** How a command ended, with the beginning of what it wrote. */
export interface Ended {
  readonly exec: Exec;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Box {
  readonly entry: SandboxEntry;
  readonly host: HostView;
  /** Runs to the end; a string is a shell's. */
  run(what: string | readonly string[], more?: ExecSpec): Promise<Ended>;
  /** Starts it and waits until its output has the text. */
  start(what: string | readonly string[], until: string, more?: ExecSpec): Promise<Exec>;
  output(exec: Pick<Exec, 'id'>): Promise<string>;
  probe(...words: readonly string[]): Promise<Ended>;
  readFile(path: string): Promise<Buffer>;
  writeFile(path: string, body: Uint8Array): Promise<void>;
  stop(): Promise<void>;
}

export interface SecurityWorld {
  readonly edge: Edge;
  /** Of the edge's routes, with a ticket for each request. */
  readonly client: TicketedClient;
  readonly node: BackendWorld;
  make(
    limits?: SandboxLimits,
    network?: readonly NetworkRule[],
    more?: Pick<SandboxCreate, 'policy' | 'stage'>,
  ): Promise<Box>;
  /** Lets go of the edge and opens another on the same state root; something may happen between. */
  reopen(between?: () => Promise<void>): Promise<void>;
  /** Stops all sandboxes, and says what is left of them. */
  close(): Promise<readonly string[]>;
}

const CALLER = { project: 'tests' as ProjectId, principal: 'tester' as PrincipalId };

export function context(signal: AbortSignal = new AbortController().signal) {
  return {
    ...{ caller: CALLER, signal, idempotencyKey: undefined },
    traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`,
    requestDigest: `sha256:${'0'.repeat(64)}` as Digest,
  };
}

/** The probe, a copy of it with the set-user-id bit, and names of users. */
function fillBase(root: string): void {
  copyFileSync(PROBE, join(root, 'bin/probe'));
  copyFileSync(PROBE, join(root, 'bin/probe-setuid'));
  execFileSync('chmod', ['4755', join(root, 'bin/probe-setuid')]);
  writeFileSync(
    join(root, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n',
  );
  writeFileSync(join(root, 'etc/shared'), 'as all have it\n');
}

export async function openSecurityWorld(
  given: Partial<EdgeOptions> | ((stateRoot: string) => Partial<EdgeOptions>) = {},
): Promise<SecurityWorld> {
  execFileSync('make', ['-C', NATIVE, '-s', 'all', 'build/hostile_probe'], { stdio: 'inherit' });
  const shared = await openSharedStore({ programs: PROGRAMS, fill: fillBase });
  const node = await openBackendWorld(shared);
  await node.backend.close();
  const changes = typeof given === 'function' ? given(node.stateRoot) : given;
  let served = await serve(await openTestEdge(node, changes), node);
  const closeEdge = async () => {
    await served.close();
    await served.edge.close();
  };
  return {
    node,
    get edge() {
      return served.edge;
    },
    get client() {
      return served.client;
    },
    async make(limits = {}, network = [], more = {}) {
      const request = {
        ...{ layers: ['base/small:1.0.0'], limits: { ...LIMITS, ...limits } },
        network: [...network],
        ...more,
      };
      const entry = await served.edge.lifecycle.create(request, context());
      return boxOf(() => served, node, entry);
    },
    async reopen(between) {
      await closeEdge();
      await between?.();
      served = await serve(await openTestEdge(node, changes), node);
    },
    async close() {
      for (const entry of [...served.edge.sandboxes.list()]) {
        await served.edge.lifecycle.stop(entry, context()).catch(() => undefined);
      }
      const left = await node.leftovers();
      await closeEdge();
      await node.close();
      shared.remove();
      return left;
    },
  };
}

async function openTestEdge(node: BackendWorld, changes: Partial<EdgeOptions>): Promise<Edge> {
  const { stateRoot, edgeId } = node;
  const layerStore = await createLayerStore(join(stateRoot, 'store'));
  const probe = createHostProbe([stateRoot]);
  const launcherSocket = join(stateRoot, 'run/launcher.sock');
  return openEdge(
    {
      ...{ stateRoot, edgeId, shardId: parseShardId('test'), version: 'tests' },
      ...{ clock: systemClock, random: systemRandom, probe, policy: defaultNodePolicy(probe()) },
      openBackend: (epoch) =>
        openContainerBackend({ ...{ stateRoot, edgeId, epoch, launcherSocket, layerStore } }),
      environments: {
        layersOf: async (name) => {
          throw new DsecError('not-found', `there is no environment ${name}`);
        },
        resolve: (refs) => resolveEnvironment(layerStore, refs),
      },
      log: { info: () => undefined, warn: () => undefined },
      doctor: async () => {
        throw new DsecError('unsupported', 'these tests ask no doctor');
      },
      // Other tests load the machine as well; what is admitted has tests of its own.
      admission: { memoryFreePctMin: 1, diskFreePctMin: 1, memoryPressurePctMax: 100 },
      ...changes,
    },
    new AbortController().signal,
  );
}

interface Served {
  readonly edge: Edge;
  readonly client: TicketedClient;
  /** Of the server alone. */
  close(): Promise<void>;
}

const keys = newTicketKeys();

async function serve(edge: Edge, { edgeId }: BackendWorld): Promise<Served> {
  const log = { debug() {}, info() {}, warn() {}, error() {} } as never;
  const server = await startEdgeServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, edgeId, clock: systemClock, log },
    ...{ sandboxes: edge.sandboxes, handlers: edge.handlers, metrics: edge.metrics },
    publicKeys: new Map([[KEY_ID, keys.publicKey]]),
  });
  const port = 'port' in server.address ? server.address.port : 0;
  const holder = { edge: edgeId, ...CALLER };
  const client = createTicketedClient(`http://127.0.0.1:${port}`, holder, keys.privateKey);
  return {
    ...{ edge, client },
    async close() {
      await client.close();
      await server.close(100);
    },
  };
}

const WAIT = { waitMs: 60_000 };

function specOf(what: string | readonly string[], more: ExecSpec): ExecSpec {
  return { ...(typeof what === 'string' ? { shell: what } : { argv: [...what] }), ...more };
}

export async function bytesOf(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts);
}

function boxOf(served: () => Served, node: BackendWorld, entry: SandboxEntry): Box {
  const params = { sandboxId: entry.id };
  const execs = () => served().edge.exec;
  const output = async ({ id }: Pick<Exec, 'id'>) => {
    const query = { stream: 'stdout', follow: false } as const;
    const reply = await execs().readOutput(entry, id as never, query, context());
    return (await bytesOf(reply.body)).toString('latin1');
  };
  const run: Box['run'] = async (what, more = {}) => {
    const spec = { ...WAIT, ...specOf(what, more) };
    const { exec, stdout, stderr } = await execs().execs.start(entry, spec, context());
    return { exec, stdout: stdout?.text ?? '', stderr: stderr?.text ?? '' };
  };
  return {
    get entry() {
      return served().edge.sandboxes.get(entry.id);
    },
    ...{ output, run },
    host: hostViewOf(node.edgeId, entry.id),
    async start(what, until, more = {}) {
      const spec = { outputBytesMax: MIB, ...specOf(what, more) };
      const { exec } = await execs().execs.start(entry, spec, context());
      const endMs = Date.now() + 30_000;
      while (!(await output(exec)).includes(until)) {
        if (Date.now() > endMs) throw new Error(`never said ${until}: ${await output(exec)}`);
        await systemClock.sleep(20);
      }
      return exec;
    },
    probe: (...words) => run(['/bin/probe', ...words]),
    async readFile(path) {
      const reply = await served().client.call(ROUTES.readFile, { params, query: { path } });
      return bytesOf(reply.body);
    },
    async writeFile(path, body) {
      await served().client.call(ROUTES.writeFile, { params, query: { path }, body });
    },
    stop: () => {
      const { edge } = served();
      return edge.lifecycle.stop(edge.sandboxes.get(entry.id), context());
    },
  };
}
