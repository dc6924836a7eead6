/** A node of its own for tests of the container backend: state root, launcher, layer store, base layer. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Backend, SandboxKey, SandboxPlan } from '@dsec/backend';
import type { BackendHarness } from '@dsec/backend/conformance';
import {
  type ContainerBackendOptions,
  openContainerBackend,
  type StartedLauncher,
  startLauncher,
} from '@dsec/backend-container';
import { createLayerStore, type LayerStore } from '@dsec/layers';
import { umount } from '@dsec/linux';
import {
  type Digest,
  type EdgeId,
  MIB,
  newSandboxId,
  parseEdgeId,
  parseShardId,
  systemRandom,
} from '@dsec/std';
import { type BaseAdditions, importBase, SHELL_COMMANDS } from './backend-container-base.ts';
import {
  buildNative,
  cgroupDirectories,
  LAUNCHER,
  linksOf,
  NATIVE,
  pinnedPaths,
  until,
} from './launcher-world.ts';

/** What costs time and can be shared by the tests of a file: a store with a layer in it. */
export interface SharedStore {
  readonly directory: string;
  readonly baseId: Digest;
  remove(): void;
}

export async function openSharedStore(more?: BaseAdditions): Promise<SharedStore> {
  buildNative();
  const directory = mkdtempSync(join(tmpdir(), 'dsec-backend-'));
  const store = await createLayerStore(join(directory, 'store'));
  const baseId = await importBase(store, directory, more);
  return {
    directory,
    baseId,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export interface BackendWorld extends BackendHarness {
  readonly stateRoot: string;
  readonly edgeId: EdgeId;
  /** Starts a launcher again after its end. */
  startLauncher(env?: Record<string, string>): Promise<StartedLauncher>;
  /** Ends the present launcher: at once, as a crash would, unless told otherwise. */
  killLauncher(signal?: NodeJS.Signals): Promise<void>;
  open(options?: Partial<ContainerBackendOptions>): Promise<Backend>;
}

const SHARD = parseShardId('test');

/** Each world has a state root of its own below the shared one, whose store it uses. */
export async function openBackendWorld(shared: SharedStore): Promise<BackendWorld> {
  const edgeId = parseEdgeId(`t${Buffer.from(systemRandom.bytes(5)).toString('hex')}`);
  const stateRoot = shared.directory;
  const store: LayerStore = { root: join(shared.directory, 'store') };
  let launcher: StartedLauncher | undefined;
  let epoch = 0;
  let slots = 0;
  const opened: Backend[] = [];

  const start = async (env?: Record<string, string>) => {
    launcher = await startLauncher({
      ...{ program: LAUNCHER, agentProgram: join(NATIVE, 'build/aether') },
      ...{ stateRoot, edgeId, edgeUid: 0 },
      ...(env !== undefined && { env }),
    });
    return launcher;
  };
  const open = async (options: Partial<ContainerBackendOptions> = {}) => {
    epoch += 1;
    const launcherSocket = join(stateRoot, 'run/launcher.sock');
    const backend = await openContainerBackend({
      ...{ stateRoot, edgeId, epoch, launcherSocket, layerStore: store },
      ...options,
    });
    opened.push(backend);
    return backend;
  };
  const killLauncher = async (signal: NodeJS.Signals = 'SIGKILL') => {
    const pid = launcher?.pid;
    if (pid === undefined || !existsSync(`/proc/${pid}`)) return;
    process.kill(pid, signal);
    await until('the launcher has ended', () => !isAlive(pid) || undefined);
  };

  const close = async () => {
    await Promise.all(opened.map((each) => each.close()));
    await killLauncher();
    await removeNode(stateRoot, edgeId);
  };
  const backend = await start()
    .then(() => open())
    .catch(async (thrown: unknown) => {
      await close();
      throw thrown;
    });
  return {
    ...{ stateRoot, edgeId, backend, open, killLauncher, startLauncher: start },
    commands: SHELL_COMMANDS,
    plan(changes: Partial<SandboxPlan> = {}) {
      slots += 1;
      return { ...planOf(edgeId, shared.baseId, slots), ...changes };
    },
    leftovers: async () => leftoversOf(stateRoot, edgeId),
    async reopen() {
      await opened.at(-1)?.close();
      return open();
    },
    killAgent: (key) => killAgent(edgeId, key),
    close,
  };
}

function planOf(edgeId: EdgeId, baseId: Digest, slot: number): SandboxPlan {
  return {
    key: { id: newSandboxId(SHARD, edgeId), generation: 1 },
    layers: [{ kind: 'base', layerId: baseId }],
    limits: {
      ...{ cpuMillicores: 1000, memoryBytes: 512 * MIB, pidsMax: 128 },
      ...{ diskBytes: 16 * MIB, inodesMax: 4096, openFilesMax: 1024 },
    },
    ...{ slot, hostname: 'box', isolationDomain: 'tests' },
    ...{ requireProtections: [], allowDegraded: false },
  };
}

async function killAgent(edgeId: EdgeId, { id, generation }: SandboxKey): Promise<void> {
  const [group = ''] = cgroupDirectories(edgeId)
    .map((path) => join(path, `${id}-${generation}`))
    .filter((path) => existsSync(path));
  const pids = readFileSync(join(group, 'cgroup.procs'), 'utf8').trim().split('\n').map(Number);
  process.kill(Math.min(...pids), 'SIGKILL');
  await until('nothing of it runs', () => {
    const events = existsSync(group) ? readFileSync(join(group, 'cgroup.events'), 'utf8') : '';
    return events.includes('populated 1') ? undefined : true;
  });
}

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

const list = (path: string) => (existsSync(path) ? readdirSync(path) : []);

/** Of sandboxes alone: what the node keeps for the next one is not among it. */
function leftoversOf(stateRoot: string, edgeId: string): string[] {
  const groups = cgroupDirectories(edgeId).flatMap((directory) =>
    readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('pool-'))
      .map((entry) => join(directory, entry.name)),
  );
  return [
    ...groups,
    ...list(join(stateRoot, 'run/sb')),
    ...linksOf(stateRoot),
    ...list(join(stateRoot, 'run/views')).filter((name) => name.startsWith('boot-')),
    ...pinnedPaths(stateRoot).filter((path) => /^\/uppers\/|\/users\//.test(path)),
  ];
}

async function removeNode(stateRoot: string, edgeId: string): Promise<void> {
  await removeCgroups(edgeId);
  for (const mount of ['run/router.net', 'run/layers.mnt', 'run']) {
    try {
      umount(join(stateRoot, mount), { detach: true });
    } catch {
      // It was not mounted.
    }
  }
  for (const name of ['run', 'node', 'launcher.lock', 'launcher.log']) {
    rmSync(join(stateRoot, name), { recursive: true, force: true });
  }
  mkdirSync(stateRoot, { recursive: true, mode: 0o700 });
}

/** Ends what still runs in the edge's cgroups, and removes them in every hierarchy. */
async function removeCgroups(edgeId: string): Promise<void> {
  const directories = cgroupDirectories(edgeId);
  const groups = directories.flatMap((path) =>
    readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(path, entry.name)),
  );
  for (const path of groups.map((group) => join(group, 'cgroup.kill'))) {
    if (existsSync(path)) writeFileSync(path, '1');
  }
  for (const path of [...groups, ...directories]) {
    await until(`${path} is empty`, () => {
      try {
        rmdirSync(path);
      } catch {
        return existsSync(path) ? undefined : true;
      }
      return true;
    });
  }
}
