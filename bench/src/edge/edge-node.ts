/** A node for one edge: a fresh state root, a launcher, the layer store, and what is left of them. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLauncher } from '@dsec/backend-container';
import { attach, mountFdOf, openTreeAttr, umount } from '@dsec/linux';
import { createCleanupStack, type EdgeId, systemClock } from '@dsec/std';
import { REPOSITORY } from '../base-layer.ts';
import { cgroupsNamed, removeCgroups } from '../cgroups.ts';

const PROGRAMS = [
  join(REPOSITORY, 'native/build/dsec-launcher'),
  join(REPOSITORY, 'native/build/aether'),
] as const;
const PATIENCE_MS = 20_000;

export interface EdgeNode {
  readonly stateRoot: string;
  readonly storeRoot: string;
  readonly launcherPid: number;
  /** Of the edge's cgroups. */
  readonly cgroupName: string;
  /** Whatever bears the name of a sandbox: cgroups, processes, sockets, views, writable layers, mounts. */
  leftovers(): string[];
  /** Version 1 directories that are kept for the next sandbox. */
  pooledCgroups(): number;
  /** Ends the launcher and removes everything. Rejects with what would not go. */
  remove(): Promise<void>;
}

/** In a private mount namespace: the store is bound below the state root, where the launcher may open it. */
export async function openEdgeNode(edgeId: EdgeId, storeRoot: string): Promise<EdgeNode> {
  const [program, agentProgram] = PROGRAMS;
  if (!PROGRAMS.every((path) => existsSync(path))) {
    throw new Error(`${PROGRAMS.join(' or ')} is missing: node tools/bootstrap.mjs`);
  }
  const stateRoot = mkdtempSync(join(tmpdir(), 'dsec-bench-'));
  const cgroupName = `dsec-${edgeId}`;
  const made = createCleanupStack();
  made.push('state root', () => rmSync(stateRoot, { recursive: true, force: true }));
  try {
    const bound = join(stateRoot, 'store');
    mkdirSync(bound);
    const tree = mountFdOf(openTreeAttr(storeRoot, { set: ['readOnly'] }));
    attach(tree, bound);
    tree.close();
    made.push('store', () => umount(bound, { detach: true }));
    made.push('cgroups', () => untilRemoved(cgroupName));
    made.push('mounts of the launcher', () => detachAll(stateRoot));
    const { pid } = await startLauncher({
      ...{ program, agentProgram, stateRoot, edgeId, edgeUid: 0 },
    });
    if (pid === undefined) throw new Error('another launcher has the new state root');
    made.push('launcher', () => endProcess(pid));
    return {
      ...{ stateRoot, storeRoot: bound, launcherPid: pid, cgroupName },
      leftovers: () => leftoversOf(stateRoot, cgroupName, pid),
      pooledCgroups: () => groupsOf(cgroupName).filter((path) => isPooled(path)).length,
      remove: async () => {
        await made.run();
        const groups = [cgroupName, launcherGroup(cgroupName)].flatMap(cgroupsNamed);
        const left = [...groups, ...mountsBelow(stateRoot)];
        if (existsSync(stateRoot)) left.push(stateRoot);
        if (left.length > 0) throw new Error(`left at the end: ${left.join(', ')}`);
      },
    };
  } catch (thrown) {
    await made.run();
    throw thrown;
  }
}

/** Of its launcher, beside that of its sandboxes. */
export const launcherGroup = (cgroupName: string) => `${cgroupName}-launcher`;

const list = (path: string) => (existsSync(path) ? readdirSync(path) : []);
const isPooled = (path: string) => /\/pool-\d+$/.test(path);

function groupsOf(cgroupName: string): string[] {
  return cgroupsNamed(cgroupName).flatMap((directory) =>
    readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(directory, entry.name)),
  );
}

function leftoversOf(stateRoot: string, cgroupName: string, launcherPid: number): string[] {
  const groups = groupsOf(cgroupName);
  const pinned = `/proc/${launcherPid}/root`;
  const users = list(join(pinned, 'layers')).flatMap((layer) => {
    const directory = join(pinned, 'layers', layer, 'users');
    return list(directory).map((name) => join(directory, name));
  });
  const processes = groups.filter(isPooled).flatMap((path) => {
    const pids = readFileSync(join(path, 'cgroup.procs'), 'utf8').trim();
    return pids === '' ? [] : [`processes ${pids.replaceAll('\n', ' ')} in ${path}`];
  });
  return [
    ...groups.filter((path) => !isPooled(path)),
    ...processes,
    ...list(join(stateRoot, 'run/sb')).map((name) => `run/sb/${name}`),
    ...list(join(stateRoot, 'run/views')).filter((name) => name.startsWith('boot-')),
    ...list(join(pinned, 'uppers')).filter((name) => !name.startsWith('.')),
    ...users,
  ];
}

function mountsBelow(directory: string): string[] {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((point) => point.startsWith(`${directory}/`));
}

/** Deepest first; what the launcher mounts for itself is in a namespace that ends with it. */
function detachAll(stateRoot: string): void {
  const kept = join(stateRoot, 'store');
  for (const point of mountsBelow(stateRoot).reverse()) {
    if (point !== kept) umount(point, { detach: true });
  }
}

async function endProcess(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL');
  await until(`process ${pid} has ended`, () => !isAlive(pid));
}

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Ends what still runs in them. Removing waits for the kernel to let go of processes that have ended. */
async function untilRemoved(cgroupName: string): Promise<void> {
  for (const path of groupsOf(cgroupName).map((group) => join(group, 'cgroup.kill'))) {
    if (existsSync(path)) writeFileSync(path, '1');
  }
  await until(`cgroups ${cgroupName} are gone`, () => {
    try {
      removeCgroups(cgroupName);
      removeCgroups(launcherGroup(cgroupName));
      return true;
    } catch {
      return false;
    }
  });
}

/** Looks again and again. Rejects after `PATIENCE_MS` with what did not come true. */
export async function until(what: string, look: () => boolean): Promise<void> {
  const endMs = systemClock.monotonicMs() + PATIENCE_MS;
  while (!look()) {
    if (systemClock.monotonicMs() > endMs) throw new Error(`never: ${what}`);
    await systemClock.sleep(5);
  }
}
