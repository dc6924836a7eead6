/**
 * What tests of the launcher share: a state root, layers in it, a launcher, and how a sandbox looks from
 * the host. Everything has the test's own edge id, and is gone when the test ends.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
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
import { basename, join } from 'node:path';
import {
  connectLauncher,
  type ExitedObject,
  type LauncherClient,
  type ObjectKey,
} from '@dsec/backend-container';
import type { LayerBuilder } from '@dsec/erofs';
import { umount } from '@dsec/linux';
import {
  MOUNT_BITS,
  type MountFields,
  NAMESPACE_BITS,
  PROC_PARTS,
  SANDBOX_ID_COUNT,
  SANDBOX_ID_FIRST,
  type SpawnFields,
} from '@dsec/protocol';
import { type Digest, type DsecError, digestOfHex, MIB } from '@dsec/std';
import { connectUnix } from '@dsec/transport';
import { openWorkshop } from './erofs-world.ts';

const PROGRAMS = ['dsec-launcher', 'aether', 'launcher_pid1', 'launcher_pinned'].map(
  (name) => `build/${name}`,
);
export const NATIVE = new URL('../../native', import.meta.url).pathname;
export const LAUNCHER = join(NATIVE, 'build/dsec-launcher');

/** Of a sandbox's range, the last id is that of PID 1; sessions have all before it. */
export const SESSION_IDS = SANDBOX_ID_COUNT - 1;
export const ATTRIBUTES = {
  mode: 0o755,
  uid: 0,
  gid: 0,
  mtimeSec: 1,
  mtimeNsec: 0,
  xattrs: new Map(),
};

export interface LauncherWorld {
  readonly stateRoot: string;
  readonly edgeId: string;
  /** Starts a launcher and connects; with a crash point it will die there. */
  start(crashPoint?: string): Promise<RunningLauncher>;
  /** Another connection to what listens, as a newer edge. */
  connect(): Promise<LauncherClient>;
  /** Builds a layer below the state root. */
  buildLayer(fill: (builder: LayerBuilder) => void): TestLayer;
  spec(key: ObjectKey, options: SpecOptions): SpawnFields;
  /** Sends one line to the stand-in for aether, and gives its answer. */
  ask(key: ObjectKey, line: string): Promise<string>;
  /** Everything that the launcher could have left: cgroups, sockets, uppers, users of layers. */
  leftovers(): string[];
  /** Ends what runs, and removes everything. */
  close(): Promise<void>;
}

export interface RunningLauncher {
  readonly client: LauncherClient;
  readonly process: ChildProcess;
  readonly exited: ExitedObject[];
  /** Ends the launcher at once, as a crash would. */
  kill(): Promise<void>;
  /** Resolves once it has ended. */
  readonly ended: Promise<void>;
}

export interface TestLayer {
  readonly layerId: Digest;
  /** Its files below the state root. */
  readonly meta: string;
  readonly devices: readonly string[];
}

export interface SpecOptions {
  readonly layers: readonly TestLayer[];
  readonly slot?: number;
  readonly change?: (spec: SpawnFields) => SpawnFields;
  readonly pooled?: boolean;
}

/** In the guest of the lab, whose processor may be an emulated one: counts are small there. */
export const IN_LAB = process.env.DSEC_LAB === '1';

const bytes = (text: string) => Buffer.from(text);

/** Programs are made once for each run of the tests; the guest of the lab has them from its host. */
export function buildNative(): void {
  if (IN_LAB && PROGRAMS.every((path) => existsSync(join(NATIVE, path)))) {
    return;
  }
  execFileSync('make', ['-C', NATIVE, '-s', ...PROGRAMS], {
    stdio: 'inherit',
  });
}

export interface WorldOptions {
  readonly seccomp: Uint8Array;
  /** Name of the program in native/build that is PID 1; default the stand-in for aether. */
  readonly agent?: string;
}

export function openLauncherWorld(options: WorldOptions): LauncherWorld {
  const stateRoot = mkdtempSync(join(tmpdir(), 'dsec-launcher-'));
  const edgeId = `t${randomBytes(5).toString('hex')}`;
  const workshop = openWorkshop();
  const running: RunningLauncher[] = [];
  let epoch = 0;
  mkdirSync(join(stateRoot, 'layers'));
  return {
    stateRoot,
    edgeId,
    async start(crashPoint) {
      epoch += 1;
      const launcher = await startLauncher({ ...options, stateRoot, edgeId, epoch, crashPoint });
      running.push(launcher);
      return launcher;
    },
    connect() {
      epoch += 1;
      return connectLauncher({ socketPath: join(stateRoot, 'run/launcher.sock'), edgeId, epoch });
    },
    leftovers: () => leftoversOf(stateRoot, edgeId),
    buildLayer(fill) {
      const { metaPath, blobPath } = workshop.build(fill);
      const hex = createHash('sha256').update(readFileSync(metaPath)).digest('hex');
      copyFileSync(metaPath, join(stateRoot, `layers/${hex}.meta`));
      copyFileSync(blobPath, join(stateRoot, `layers/${hex}.blob`));
      const devices = readFileSync(blobPath).length > 0 ? [`layers/${hex}.blob`] : [];
      return { layerId: digestOfHex(hex), meta: `layers/${hex}.meta`, devices };
    },
    spec: (key, specOptions) => sandboxSpec(key, { ...options, ...specOptions }),
    ask: (key, line) => ask(join(stateRoot, `run/sb/${key.name}-${key.generation}.sock`), line),
    async close() {
      for (const launcher of running) await launcher.kill();
      await removeCgroups(edgeId);
      for (const mount of ['run/router.net', 'run/layers.mnt', 'run']) {
        try {
          umount(join(stateRoot, mount), { detach: true });
        } catch {
          // It was not mounted.
        }
      }
      rmSync(stateRoot, { recursive: true, force: true });
      workshop.remove();
    },
  };
}

interface StartOptions extends WorldOptions {
  readonly stateRoot: string;
  readonly edgeId: string;
  readonly epoch: number;
  readonly crashPoint: string | undefined;
}

async function startLauncher(options: StartOptions): Promise<RunningLauncher> {
  const { stateRoot, edgeId, epoch, crashPoint, agent } = options;
  const child = spawn(LAUNCHER, argumentsOf(stateRoot, edgeId, agent), {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: crashPoint === undefined ? {} : { DSEC_CRASH_POINT: crashPoint },
  });
  const ended = once(child, 'exit').then(() => {});
  const exited: ExitedObject[] = [];
  const onExited = (message: ExitedObject) => exited.push(message);
  const socketPath = join(stateRoot, 'run/launcher.sock');
  const tryToConnect = () =>
    connectLauncher({ socketPath, edgeId, epoch, onExited }).catch((error: DsecError) => {
      if (error.code === 'conflict') throw error;
      return undefined;
    });
  const client = await until('the launcher listens', () =>
    child.exitCode === null && child.signalCode === null
      ? tryToConnect()
      : Promise.reject(new Error('the launcher has ended')),
  ).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  return {
    client,
    process: child,
    exited,
    ended,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

function leftoversOf(stateRoot: string, edgeId: string): string[] {
  const groups = cgroupDirectories(edgeId).flatMap((directory) => groupsIn(directory));
  return [
    ...groups.filter((path) => !basename(path).startsWith('pool-')),
    ...list(join(stateRoot, 'run/sb')),
    ...linksOf(stateRoot),
    ...pinnedPaths(stateRoot).filter((path) => /^\/uppers\/|\/users\//.test(path)),
  ];
}

const argumentsOf = (stateRoot: string, edgeId: string, agent = 'launcher_pid1') => [
  ...['--state-root', stateRoot, '--edge-id', edgeId, '--edge-uid', '0'],
  ...['--aether', join(NATIVE, 'build', agent)],
];

export async function mountLayers(client: LauncherClient, layers: readonly TestLayer[]) {
  for (const { layerId, meta, devices } of layers) {
    await client.mountLayer({
      layerId,
      meta: bytes(meta),
      devices: devices.map((file) => ({ file: bytes(file) })),
      directIo: false,
    });
  }
}

function sandboxSpec(
  key: ObjectKey,
  { layers, slot = 1, change, pooled, seccomp }: SpecOptions & { readonly seccomp: Uint8Array },
): SpawnFields {
  const base = SANDBOX_ID_FIRST + slot * SANDBOX_ID_COUNT;
  const id = `${key.name}-${key.generation}`;
  const limits = existsSync('/sys/fs/cgroup/pids') ? ['pids', 'memory', 'cpu'] : [];
  const spec: SpawnFields = {
    ...key,
    kind: 'sandbox',
    namespaces: Object.values(NAMESPACE_BITS).reduce((all, bit) => all | bit, 0),
    idMaps: [
      { inside: 0, outside: base + SESSION_IDS, count: 1 },
      { inside: 1, outside: base, count: SESSION_IDS },
    ],
    sessionIdMaps: [{ inside: 0, outside: 1, count: SESSION_IDS }],
    hostname: 'box',
    root: {
      layers: layers.map(({ layerId }) => ({ layerId })),
      upper: { driver: 'tmpfs', sizeBytes: 8 * MIB, inodesMax: 256 },
      nosuid: false,
    },
    mounts: sandboxMounts(base),
    sysctls: [
      { name: 'net.ipv4.ip_unprivileged_port_start', value: '0' },
      { name: 'net.ipv4.ping_group_range', value: `${base} ${base + SESSION_IDS - 1}` },
    ],
    cgroups: [
      { hierarchy: 'unified', directory: bytes(id), settings: [] },
      ...limits.map((hierarchy) => ({
        hierarchy,
        directory: bytes(pooled ? `pool-${slot}` : id),
        settings: hierarchy === 'pids' ? [{ name: 'pids.max', value: '64' }] : [],
      })),
    ],
    rlimits: [
      { resource: 4, soft: 0, hard: 0 },
      { resource: 6, soft: 4096, hard: 4096 },
      { resource: 7, soft: 1024, hard: 4096 },
      { resource: 8, soft: 65_536, hard: 65_536 },
      { resource: 12, soft: 819_200, hard: 819_200 },
    ],
    capabilities: 0,
    noNewPrivileges: true,
    seccomp,
    uid: 0,
    gid: 0,
    argv: [bytes('aether'), bytes('--session-ids'), bytes(`0:1:${SESSION_IDS}`)],
    env: [],
    descriptors: [
      { number: 0, kind: 'null' },
      { number: 1, kind: 'null' },
      { number: 2, kind: 'null' },
      { number: 3, kind: 'listener', name: bytes(`run/sb/${id}.sock`) },
    ],
    oomScoreAdj: 0,
  };
  return change === undefined ? spec : change(spec);
}

function sandboxMounts(base: number): MountFields[] {
  const { nosuid, nodev, noexec } = MOUNT_BITS;
  const at = (kind: MountFields['kind'], target: string, rest: Partial<MountFields> = {}) => ({
    ...{ kind, target: bytes(target), flags: nosuid | nodev | noexec },
    ...rest,
  });
  const parts = (names: readonly string[]) => names.filter((name) => existsSync(`/proc/${name}`));
  return [
    at('proc', '/proc'),
    at('dev', '/dev'),
    at('devpts', '/dev/pts', { options: [bytes('mode=620'), bytes(`gid=${base + 5}`)] }),
    at('tmpfs', '/dev/shm', { sizeBytes: MIB, inodesMax: 64, mode: 0o1777 }),
    at('mqueue', '/dev/mqueue'),
    at('sysfs', '/sys'),
    ...parts([...PROC_PARTS.masked, ...PROC_PARTS.given]).map((n) => at('mask', `/proc/${n}`)),
    ...parts(PROC_PARTS.guarded).map((name) => at('readonly', `/proc/${name}`)),
  ];
}

async function ask(path: string, line: string): Promise<string> {
  const socket = connectUnix(path);
  socket.end(`${line}\n`);
  let answer = '';
  socket.setEncoding('utf8');
  for await (const part of socket) answer += part;
  return answer;
}

export function cgroupDirectories(edgeId: string): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const points = mounts
    .map((line) => line.split(' '))
    .filter(([, , type]) => type?.startsWith('cgroup'));
  const paths = points.flatMap(([, point = '']) => [
    join(point, `dsec-${edgeId}`),
    join(point, `dsec-${edgeId}-launcher`),
  ]);
  return [...new Set(paths)].filter((path) => existsSync(path));
}

async function removeCgroups(edgeId: string): Promise<void> {
  const directories = cgroupDirectories(edgeId);
  const groups = directories.flatMap((directory) => groupsIn(directory));
  for (const kill of groups.map((path) => join(path, 'cgroup.kill')).filter((p) => existsSync(p))) {
    writeFileSync(kill, '1');
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

const groupsIn = (directory: string) =>
  readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(directory, entry.name));

/** Links of sandboxes: devices in the router namespace of a state root, and notes of whose they are. */
export function linksOf(stateRoot: string): string[] {
  const pin = join(stateRoot, 'run/router.net');
  const notes = list(join(stateRoot, 'run/links'));
  if (!isNamespace(pin)) return notes;
  const text = execFileSync('nsenter', [`--net=${pin}`, 'cat', '/proc/net/dev'], {
    encoding: 'utf8',
  });
  return [...notes, ...(text.match(/\bv[\da-f]{8}(?=:)/g) ?? [])];
}

/** Not a plain file, over which none was mounted yet. */
function isNamespace(pin: string): boolean {
  return existsSync(pin) && readFileSync('/proc/self/mounts', 'utf8').includes(` ${pin} nsfs `);
}

/** Paths in the namespace that is pinned below a state root. */
export function pinnedPaths(stateRoot: string): string[] {
  const pin = join(stateRoot, 'run/layers.mnt');
  if (!existsSync(pin)) return [];
  const text = execFileSync(join(NATIVE, 'build/launcher_pinned'), [pin], { encoding: 'utf8' });
  return text.trim().split('\n');
}

function list(path: string): string[] {
  return existsSync(path) ? readdirSync(path) : [];
}

/** Asks again until there is something. */
export async function until<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  const end = Date.now() + 20_000;
  while (Date.now() < end) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`never: ${what}`);
}
