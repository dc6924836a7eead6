import type { SandboxPlan } from '@dsec/backend';
import { encodeFrame, LAUNCHER_FRAMES, PROC_PARTS, type SpawnFields } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { coverMounts } from '../src/sandbox-mounts.ts';
import { objectId, socketPath, spawnSpecOf, viewsOf } from '../src/spawn-spec.ts';
import { hybrid, layerId, nodeWith, planWith, pure } from './support/plans.ts';

const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();
const tmpfs = { driver: 'tmpfs', fitsMemory: true } as const;

function specOf(changes: Partial<SandboxPlan> = {}, node = nodeWith()): SpawnFields {
  return spawnSpecOf(planWith(changes), node, tmpfs);
}

/** `kind target` in their order. */
const mountsOf = (spec: SpawnFields) =>
  spec.mounts.map(({ kind, target }) => `${kind} ${text(target)}`);

describe('spawnSpecOf', () => {
  it('is a message that the launcher can decode', () => {
    const frame = { type: 'spawn', stream: 1, epoch: 1, offset: 1, fields: specOf() } as const;
    expect(encodeFrame(LAUNCHER_FRAMES, frame).length).toBeLessThan(64 * 1024);
  });

  it('is the same for the same plan and node', () => {
    expect(specOf()).toEqual(specOf());
  });

  it('gives PID 1 the last id of its range, and sessions all others', () => {
    const base = 2 ** 30 + 65_536 * 7;
    const { idMaps, sessionIdMaps, uid, gid, argv } = specOf({ slot: 7 });
    expect(idMaps).toEqual([
      { inside: 0, outside: base + 65_535, count: 1 },
      { inside: 1, outside: base, count: 65_535 },
    ]);
    expect(sessionIdMaps).toEqual([{ inside: 0, outside: 1, count: 65_535 }]);
    expect([uid, gid, ...argv.map(text)]).toEqual([0, 0, 'aether', '--session-ids', '0:1:65535']);
  });

  it('has no id in common with that of any other slot', () => {
    const ranges = [0, 1, 2, 32_767].map((slot) => specOf({ slot }).idMaps);
    const firsts = ranges.map((maps) => Math.min(...maps.map(({ outside }) => outside)));
    const lasts = ranges.map((maps) => Math.max(...maps.map((m) => m.outside + m.count - 1)));
    expect(firsts.slice(1).every((first, i) => first > (lasts[i] ?? 0))).toBe(true);
    expect(Math.max(...lasts)).toBeLessThan(2 ** 32 - 1);
  });

  it('puts the topmost layer first', () => {
    const layers = [
      { kind: 'base', layerId: layerId('a') },
      { kind: 'workspace', layerId: layerId('b') },
      { kind: 'diff', layerId: layerId('c') },
    ] as const;
    expect(specOf({ layers, isolationDomain: 'node' }).root?.layers).toEqual(
      ['c', 'b', 'a'].map((digit) => ({ layerId: layerId(digit) })),
    );
  });

  it('limits the writable layer, and says what a driver cannot limit', () => {
    for (const driver of ['tmpfs', 'image', 'btrfs'] as const) {
      const { root } = spawnSpecOf(planWith(), nodeWith(), { driver, fitsMemory: true });
      expect(root?.upper).toMatchObject({ driver, sizeBytes: 32 * 1024 * 1024, inodesMax: 5000 });
      // It says so where the kernel has no limit on inodes.
      expect(root?.upper.inodesUnlimited).toBe(driver === 'btrfs' ? true : undefined);
    }
  });

  it('covers what the launcher insists on, where the kernel has it', () => {
    const mounts = mountsOf(specOf());
    expect(mounts).toEqual(
      expect.arrayContaining(PROC_PARTS.masked.map((name) => `mask /proc/${name}`)),
    );
    expect(mounts).toEqual(
      expect.arrayContaining(PROC_PARTS.guarded.map((name) => `readonly /proc/${name}`)),
    );
    const present = ['/proc/keys', '/proc/sys'];
    const covers = coverMounts((path) => present.includes(path));
    const few = mountsOf(specOf({}, nodeWith({ covers })));
    expect(few.filter((mount) => /^(mask|readonly) /.test(mount))).toEqual([
      'mask /proc/keys',
      'readonly /proc/sys',
    ]);
  });

  it('has procfs first, and what lies over parts of it after what covers them', () => {
    const mounts = mountsOf(specOf());
    expect(mounts[0]).toBe('proc /proc');
    const bind = mounts.indexOf('bind /proc/sys/kernel/random/boot_id');
    expect(bind).toBeGreaterThan(mounts.indexOf('readonly /proc/sys'));
    expect(mounts.slice(-5).every((mount) => mount.startsWith('bind /proc/'))).toBe(true);
  });

  it('allows devices on no mount but those that are made of them', () => {
    const withDevices = specOf().mounts.filter(({ flags }) => !(flags & 4));
    expect(withDevices.map(({ kind }) => kind)).toEqual(['devpts']);
  });

  it('binds the views that it says must be there', () => {
    const plan = planWith();
    const { shared, own } = viewsOf(plan, nodeWith());
    const binds = spawnSpecOf(plan, nodeWith(), tmpfs).mounts.filter(({ kind }) => kind === 'bind');
    expect(binds.map(({ source }) => text(source))).toEqual(
      [...shared, own].map(({ name }) => `run/views/${name}`),
    );
  });

  it('gives descriptors 0 to 3 and nothing else', () => {
    const plan = planWith();
    const { descriptors, env, program } = specOf();
    expect(descriptors.map(({ number, kind }) => [number, kind])).toEqual([
      [0, 'null'],
      [1, 'null'],
      [2, 'null'],
      [3, 'listener'],
    ]);
    expect(text(descriptors[3]?.name)).toBe(`run/sb/${objectId(plan.key)}.sock`);
    expect(text(descriptors[3]?.name)).toBe(socketPath(plan.key));
    expect([env, program]).toEqual([[], undefined]);
  });

  it('limits what a process can open, with room for the agent', () => {
    const files = (openFilesMax: number, nodeMax: number) => {
      const limits = { ...planWith().limits, openFilesMax };
      const spec = specOf({ limits }, nodeWith({ openFilesMax: nodeMax }));
      const limit = spec.rlimits.find(({ resource }) => resource === 7);
      return [limit?.soft, limit?.hard];
    };
    expect(files(16, 20_000)).toEqual([16, 1024]);
    expect(files(4096, 20_000)).toEqual([4096, 4096]);
    expect(files(1_000_000, 20_000)).toEqual([20_000, 20_000]);
    expect(files(16, 512)).toEqual([16, 512]);
  });

  it('sets every limit that a process would else have from the launcher', () => {
    const resources = specOf().rlimits.map(({ resource }) => resource);
    expect(resources).toEqual(expect.arrayContaining([4, 6, 7, 8, 12]));
  });

  it('has one life directory and pooled ones, or the life directory alone', () => {
    const id = objectId(planWith().key);
    const places = (spec: SpawnFields) =>
      spec.cgroups.map(({ hierarchy, directory }) => [hierarchy, text(directory)]);
    expect(places(specOf({ slot: 7 }, nodeWith({ cgroups: pure })))).toEqual([['unified', id]]);
    expect(places(specOf({ slot: 7 }, nodeWith({ cgroups: hybrid })))).toEqual([
      ['unified', id],
      ['cpu', 'pool-7'],
      ['memory', 'pool-7'],
      ['pids', 'pool-7'],
    ]);
  });

  it('drops every capability but CHOWN, and keeps setuid programs from giving any', () => {
    const { capabilities, noNewPrivileges, root, oomScoreAdj } = specOf();
    expect([capabilities, noNewPrivileges, root?.nosuid]).toEqual([1, true, true]);
    expect(oomScoreAdj).toBeGreaterThan(0);
  });
});
