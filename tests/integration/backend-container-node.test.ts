import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxExit, SandboxPlan } from '@dsec/backend';
import { startLauncher } from '@dsec/backend-container';
import { SANDBOX_ID_COUNT, SANDBOX_ID_FIRST } from '@dsec/protocol';
import { GIB, MIB } from '@dsec/std';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import { openLink, run } from './aether-peer.ts';
import {
  type BackendWorld,
  openBackendWorld,
  openSharedStore,
  type SharedStore,
} from './backend-container-world.ts';
import {
  buildNative,
  cgroupDirectories,
  LAUNCHER,
  NATIVE,
  pinnedPaths,
  until,
} from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

let shared: SharedStore;
let world: BackendWorld;
let exits: SandboxExit[];

async function start(changes: Partial<SandboxPlan> = {}) {
  const plan = world.plan(changes);
  const runtime = await world.backend.create(plan);
  const name = `${plan.key.id}-${plan.key.generation}.sock`;
  const link = await openLink(join(world.stateRoot, 'run/sb', name), 1);
  /** Gives what a shell's script prints. */
  const sh = async (script: string) => {
    const { stdout, stderr } = await run(link, ['/bin/sh', '-c', script]);
    return stdout.toString() + stderr.toString();
  };
  const { pid } = runtime.record as { pid: number };
  return { plan, key: plan.key, runtime, link, sh, pid };
}

const statusOf = (pid: number) => readFileSync(`/proc/${pid}/status`, 'utf8');

/** The sandbox's own directory in a hierarchy, or its pooled one. */
function cgroupFile({ key, slot }: SandboxPlan, controller: string, names: readonly string[]) {
  const directories = cgroupDirectories(world.edgeId).flatMap((path) => [
    join(path, `${key.id}-${key.generation}`),
    ...(path.includes(`/${controller}/`) ? [join(path, `pool-${slot}`)] : []),
  ]);
  const files = directories.flatMap((path) => names.map((name) => join(path, name)));
  const found = files.find((path) => existsSync(path));
  return found === undefined ? undefined : readFileSync(found, 'utf8').trim();
}

describe.runIf(canMount)('containers on a node (needs root)', () => {
  compileFirst();
  beforeAll(async () => {
    buildNative();
    shared = await openSharedStore();
  });
  afterAll(() => shared.remove());
  beforeEach(async () => {
    exits = [];
    world = await openBackendWorld(shared);
    world.backend.onExit((exit) => exits.push(exit));
  });
  afterEach(() => world.close());

  describe('seen from the host', () => {
    it('has ids of its slot alone, and the agent one that sessions lack', async () => {
      const slot = 9;
      const { link, pid } = await start({ slot });
      const base = SANDBOX_ID_FIRST + slot * SANDBOX_ID_COUNT;
      expect(statusOf(pid)).toMatch(new RegExp(`^Uid:\\s+${base + 65_535}\\s`, 'm'));
      const sleeping = run(link, ['/bin/sleep', '600']).catch(() => undefined);
      const child = await until('the command runs', () => sleeperOf(pid));
      const status = statusOf(child);
      expect(status).toMatch(new RegExp(`^Uid:(\\s+${base}){4}$`, 'm'));
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
      expect(status).toMatch(/^Seccomp:\s+2$/m);
      expect(status).toMatch(/^CapEff:\s+00000000800005fb$/m);
      process.kill(child, 'SIGKILL');
      await sleeping;
    });

    it('is limited in its cgroups, and by what update says', async () => {
      const { plan, key } = await start();
      const memory = () =>
        cgroupFile(plan, 'memory', ['memory.max', 'memory.limit_in_bytes']) ?? 'none';
      const pids = () => cgroupFile(plan, 'pids', ['pids.max']) ?? 'none';
      expect([memory(), pids()]).toEqual([`${512 * MIB}`, '128']);
      await world.backend.update(key, { memoryBytes: 256 * MIB, pidsMax: 40 });
      expect([memory(), pids()]).toEqual([`${256 * MIB}`, '40']);
      await expect(world.backend.update(key, { diskBytes: GIB })).rejects.toMatchObject({
        code: 'unsupported',
      });
      await expect(world.backend.update(key, { memoryBytes: 16 * MIB })).rejects.toMatchObject({
        code: 'invalid-argument',
      });
    });

    it('gives the memory of a slot to its next owner without the peak of the last', async () => {
      const first = await start({ slot: 5 });
      await first.sh('head -c 100000000 /dev/zero | tail -c 90000000 | head -c 1');
      const peak = (await world.backend.stats(first.key)).memoryPeakBytes;
      expect(peak).toBeGreaterThan(80_000_000);
      await world.backend.stop(first.key);
      const second = await start({ slot: 5 });
      expect((await world.backend.stats(second.key)).memoryPeakBytes).toBeLessThan(peak / 2);
    });

    it('leaves layers mounted for the next, and unmounts beyond the bound', async () => {
      const mounts = () => pinnedPaths(world.stateRoot).filter((p) => /^\/layers\/[^/]+$/.test(p));
      const { key } = await start();
      await world.backend.stop(key);
      expect(mounts()).toHaveLength(1);
      const backend = await world.open({ unusedLayersMax: 0 });
      const plan = world.plan();
      await backend.create(plan);
      await backend.stop(plan.key);
      await until('no layer is mounted', () => mounts().length === 0 || undefined);
    });

    it('refuses a slot that another has, and those that it does not have', async () => {
      const { plan } = await start();
      const { slot } = plan;
      await expect(world.backend.create(world.plan({ slot }))).rejects.toMatchObject({
        code: 'conflict',
      });
      const { slotsMax } = await world.backend.probe();
      for (const wrong of [-1, 0.5, slotsMax]) {
        const refused = world.backend.create(world.plan({ slot: wrong }));
        await expect(refused).rejects.toMatchObject({ code: 'invalid-argument' });
      }
    });

    it('does not start without what is required and only degraded here', async () => {
      const plan = world.plan({
        ...{ requireProtections: ['layer-isolation'], allowDegraded: true },
        isolationDomain: 'node',
      });
      await expect(world.backend.create(plan)).rejects.toMatchObject({ code: 'unsupported' });
      expect(await world.leftovers()).toEqual([]);
    });
  });

  describe('seen from inside', () => {
    it('tells of its limits and not of the host', async () => {
      const [one, other] = [await start(), await start()];
      expect(await one.sh('cat /proc/meminfo')).toMatch(/^MemTotal: +524288 kB$/m);
      expect(await one.sh('nproc; cat /proc/cpuinfo')).toMatch(/^1\nprocessor\t: 0\n/);
      expect(await one.sh('cat /proc/loadavg')).toBe('0.00 0.00 0.00 1/1 1\n');
      expect(await one.sh('cat /proc/diskstats /proc/vmstat /proc/interrupts')).toBe('');
      const bootId = '/proc/sys/kernel/random/boot_id';
      const ids = [await one.sh(`cat ${bootId}`), await other.sh(`cat ${bootId}`)];
      expect(new Set([...ids, readFileSync(bootId, 'utf8')]).size).toBe(3);
      expect(await one.sh(`echo x > ${bootId}`)).toMatch(/Permission denied|Read-only/);
      expect(await one.sh('cat /proc/self/mountinfo')).not.toContain(world.stateRoot);
    });

    it.each([
      ['tmpfs', { diskBytes: 16 * MIB }, 500],
      // Each of the block groups of ext4 has a whole number of blocks of inodes.
      ['image', { diskBytes: GIB }, 640],
    ])('a full disk in %s is an error of whoever writes', async (driver, limits, inodesMax) => {
      const plan = world.plan();
      const { sh, runtime, key } = await start({
        limits: { ...plan.limits, ...limits, inodesMax: 500 },
      });
      expect(runtime.upperDriver).toBe(driver);
      const before = await world.backend.stats(key);
      expect(before).toMatchObject({ inodes: 0 });
      expect(await sh('i=0; while : > /tmp/$i; do i=$((i + 1)); done')).toMatch(/No space left/);
      const { inodes } = await world.backend.stats(key);
      expect(inodes).toBeGreaterThan(480);
      expect(inodes).toBeLessThanOrEqual(inodesMax);
      await sh('rm -f /tmp/* || for f in /tmp/*; do : > $f; done');
      const bytes = limits.diskBytes + MIB;
      expect(await sh(`head -c ${bytes} /dev/zero > /tmp/0`)).toMatch(/No space left/);
      expect((await world.backend.stats(key)).diskBytes).toBeGreaterThan(limits.diskBytes * 0.9);
      expect(await sh('echo alive')).toBe('alive\n');
    });
  });

  describe('a launcher that dies', () => {
    it('is found when it is there, in cgroups of its own, and started when it is not', async () => {
      const launcher = { program: LAUNCHER, agentProgram: join(NATIVE, 'build/aether') };
      const { stateRoot, edgeId } = world;
      const again = await startLauncher({ ...launcher, stateRoot, edgeId, edgeUid: 0 });
      expect(again.pid).toBeUndefined();
      await world.killLauncher();
      const { pid } = await world.startLauncher();
      expect(readFileSync(`/proc/${pid}/cgroup`, 'utf8')).toContain(
        `0::/dsec-${edgeId}-launcher\n`,
      );
    });

    it('gives its edge a place for files, and nobody else', async () => {
      const launcher = { program: LAUNCHER, agentProgram: join(NATIVE, 'build/aether') };
      const { stateRoot, edgeId } = world;
      await world.killLauncher();
      const { pid = 0 } = await startLauncher({ ...launcher, stateRoot, edgeId, edgeUid: 1234 });
      const views = statSync(join(stateRoot, 'run/views'));
      expect([views.uid, views.mode & 0o777]).toEqual([1234, 0o700]);
      process.kill(pid, 'SIGTERM');
      await until('it has ended', () => !existsSync(`/proc/${pid}`) || undefined);
    });

    it('takes no sandbox with it; its successor watches them', async () => {
      const { sh, pid, key } = await start();
      await world.killLauncher();
      expect(await sh('echo on')).toBe('on\n');
      await world.startLauncher();
      await until('it is reached', async () => (await reachable()) || undefined);
      expect(exits).toEqual([]);
      process.kill(pid, 'SIGKILL');
      await until('the end is told', () => exits.length > 0 || undefined);
      expect(exits).toMatchObject([{ key, reason: 'killed' }]);
    });

    it('misses no end: what died meanwhile is told once', async () => {
      const [dies, lives] = [await start(), await start()];
      await world.killLauncher();
      process.kill(dies.pid, 'SIGKILL');
      await world.startLauncher();
      await until('the end is told', () => exits.length > 0 || undefined);
      expect(exits).toMatchObject([{ key: dies.key }]);
      expect(await lives.sh('echo on')).toBe('on\n');
      await world.backend.stop(dies.key);
      await world.backend.stop(lives.key);
      expect(await world.leftovers()).toEqual([]);
    });

    it('in peace leaves no cgroup and no mount, unless a sandbox needs it', async () => {
      const mounts = () => readFileSync('/proc/self/mounts', 'utf8').includes(world.stateRoot);
      const [one, two] = [await start(), await start()];
      await world.backend.stop(one.key);
      await world.killLauncher('SIGTERM');
      const left = cgroupDirectories(world.edgeId).flatMap((path) => readdirSync(path));
      expect(left).not.toContain(`pool-${one.plan.slot}`);
      expect(await two.sh('echo on')).toBe('on\n');
      expect(mounts()).toBe(true);
      await world.startLauncher();
      await world.backend.stop(two.key);
      await world.killLauncher('SIGTERM');
      expect(mounts()).toBe(false);
      expect(cgroupDirectories(world.edgeId)).toEqual([]);
      expect(await world.leftovers()).toEqual([]);
    });

    it('makes calls unavailable, and a stop late', async () => {
      const { key } = await start();
      await world.killLauncher();
      const refused = world.backend.create(world.plan());
      await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
      expect((await world.backend.probe()).unavailable?.code).toBe('unavailable');
      const stopping = world.backend.stop(key);
      await world.startLauncher();
      await stopping;
      expect(await world.leftovers()).toEqual([]);
    });

    it('over a create: it is given up in seconds, and says that something may be left', async () => {
      const { key } = await start();
      const plan = world.plan();
      // In one turn, so that the create still has the connection that is about to end.
      const dying = world.killLauncher();
      const making = world.backend.create(plan);
      making.catch(() => undefined);
      await dying;
      await expect(making).rejects.toMatchObject({
        ...{ code: 'unavailable', details: { leftover: true } },
      });
      await world.startLauncher();
      await Promise.all([world.backend.stop(plan.key), world.backend.stop(key)]);
      expect(await world.leftovers()).toEqual([]);
    });

    it('obeys the newest edge alone', async () => {
      const { plan } = await start();
      const older = world.backend;
      const newer = await world.open();
      await newer.probe();
      await until('the older one knows', async () =>
        (await older.probe()).unavailable?.code === 'conflict' ? true : undefined,
      );
      await expect(older.create(world.plan())).rejects.toMatchObject({ code: 'conflict' });
      await newer.recover([{ plan }]);
      expect(await world.leftovers()).toEqual([]);
    });
  });
});

async function reachable(): Promise<boolean> {
  return (await world.backend.probe()).unavailable === undefined;
}

/** The one process with that name in the sandbox of an agent. */
function sleeperOf(agent: number): number | undefined {
  const group = readFileSync(`/proc/${agent}/cgroup`, 'utf8').match(/^0::(.*)$/m)?.[1];
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const found = pids.find((pid) => {
    try {
      const isOurs = readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(`0::${group}\n`);
      return isOurs && readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n';
    } catch {
      return false;
    }
  });
  return found === undefined ? undefined : Number(found);
}
