import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileSeccomp } from '@dsec/backend-container';
import { umount } from '@dsec/linux';
import type { SpawnFields } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import {
  ATTRIBUTES,
  buildNative,
  IN_LAB,
  type LauncherWorld,
  mountLayers,
  openLauncherWorld,
  type RunningLauncher,
  type TestLayer,
  until,
} from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

type Upper = NonNullable<SpawnFields['root']>['upper'];

const LONG = process.env.DSEC_TEST_LONG === '1';
/** Two million names are more than the guest has memory for, and an emulated processor patience. */
const SCALE = (LONG ? 1 : 20) * (IN_LAB ? 20 : 1);
const key = { name: 'box', generation: 1 };
const other = { name: 'other', generation: 1 };
/** Of each size. */
const READY_MAX = 8;
const ENOSPC = 28;
const EDQUOT = 122;
const bytes = (text: string) => Buffer.from(text);
const has = (program: string) => spawnSync(program, ['-V']).error === undefined;

describe.runIf(canMount)('writable layers (needs root)', () => {
  let world: LauncherWorld;
  let launcher: RunningLauncher;
  let base: TestLayer;
  let loopsBefore: number;

  beforeAll(buildNative);
  beforeEach(async () => {
    loopsBefore = usedLoops();
    world = openLauncherWorld({ seccomp: compileSeccomp() });
    launcher = await world.start();
    base = world.buildLayer((builder) => {
      const file = builder.file('hello', ATTRIBUTES, 2);
      file.write(bytes('hi'));
      file.end();
    });
    await mountLayers(launcher.client, [base]);
  });
  afterEach(() => world.close());

  const uppers = () => join(world.stateRoot, 'uppers');
  const images = () => (existsSync(uppers()) ? readdirSync(uppers()) : []);
  const kept = () => images().filter((name) => !/^\.(empty|ready)/.test(name));
  const ready = () => images().filter((name) => name.startsWith('.ready'));
  const spawn = (upper: Upper, which = key, slot = 1) =>
    launcher.client.spawn(
      world.spec(which, {
        layers: [base],
        slot,
        change: (spec) => ({
          ...spec,
          root: { layers: spec.root?.layers ?? [], nosuid: false, upper },
        }),
      }),
    );
  const remove = async (which = key) => {
    await launcher.client.kill(which);
    await launcher.client.release(which);
  };

  const MAKERS: readonly [string, () => Promise<void>][] = [
    ['image', async () => {}],
    ['tmpfs', async () => {}],
    ['btrfs', async () => mountBtrfs(uppers())],
  ];
  // What differs on the guest's kernel is the first; memory is what all other tests use.
  describe.each(IN_LAB && !LONG ? MAKERS.slice(0, 1) : MAKERS)('of driver %s', (name, prepare) => {
    const driver = name as Upper['driver'];
    const possible = driver !== 'btrfs' || has('mkfs.btrfs');

    beforeEach(async (context) => {
      context.skip(!possible, 'mkfs.btrfs is not installed');
      await prepare();
    });
    afterEach(() => {
      if (driver === 'btrfs' && existsSync(uppers())) umount(uppers(), { detach: true });
    });
    const inodesUnlimited = driver === 'btrfs';

    it('are empty, owned by root inside, limited in bytes, and leave nothing', async () => {
      const { pid } = await spawn({
        driver,
        sizeBytes: 16 * MIB,
        inodesMax: 256,
        inodesUnlimited,
      });
      expect(readdirSync(`/proc/${pid}/root`).filter((entry) => entry === 'lost+found')).toEqual(
        [],
      );
      expect(await world.ask(key, 'session write /made')).toBe('0');
      expect(await world.ask(key, 'session read /hello')).toBe('hi');
      // In blocks of 64 KiB: 12 MiB fit, 20 MiB do not.
      expect(await world.ask(key, 'session fill 192')).toBe('0');
      const full = driver === 'btrfs' ? EDQUOT : ENOSPC;
      expect(await world.ask(key, 'session fill 320')).toBe(`${full}`);
      await remove();
      expect(world.leftovers()).toEqual([]);
      expect(kept()).toEqual([]);
      if (driver !== 'image') return;
      launcher.process.kill('SIGTERM');
      await launcher.ended;
      await until('loop devices are free', () => usedLoops() <= loopsBefore || undefined);
    });

    it('are limited in inodes, where the driver can', async () => {
      const limited: Upper = { driver, sizeBytes: 16 * MIB, inodesMax: 256 };
      if (driver === 'btrfs') {
        await expect(spawn(limited)).rejects.toMatchObject({
          code: 'unsupported',
          details: { step: 'upper' },
        });
        expect(world.leftovers()).toEqual([]);
        expect(kept()).toEqual([]);
        return;
      }
      await spawn(limited);
      const made = await world.ask(key, 'session files 1000');
      const [count, error] = made.split(' ').map(Number);
      expect(error).toBe(ENOSPC);
      expect(count).toBeGreaterThanOrEqual(250);
      expect(count).toBeLessThanOrEqual(300);
      await remove();
    });

    it('are apart from each other, and new after a release', async () => {
      const upper: Upper = { driver, sizeBytes: 16 * MIB, inodesMax: 256, inodesUnlimited };
      await Promise.all([spawn(upper), spawn(upper, other, 2)]);
      expect(await world.ask(key, 'session write /mine')).toBe('0');
      expect(await world.ask(other, 'session read /mine')).toBe('error 2');
      await remove();
      await spawn(upper);
      expect(await world.ask(key, 'session read /mine')).toBe('error 2');
      await remove();
      await remove(other);
      expect(world.leftovers()).toEqual([]);
      expect(kept()).toEqual([]);
    });

    const whole = 'go whole however deep or wide they are, while the launcher serves others';
    it(whole, { timeout: LONG ? 900_000 : 120_000 }, async () => {
      const upper: Upper = {
        driver,
        sizeBytes: 16_384 * MIB,
        inodesMax: 2_200_000,
        inodesUnlimited,
      };
      const small: Upper = { driver: 'tmpfs', sizeBytes: MIB, inodesMax: 64 };
      await spawn(upper);
      expect(await world.ask(key, `session deep ${60_000 / SCALE}`)).toBe('0');
      expect(await world.ask(key, `session wide ${2_000_000 / SCALE}`)).toBe('0');
      const descriptors = () => readdirSync(`/proc/${launcher.process.pid}/fd`).length;
      const before = descriptors();
      await launcher.client.kill(key);
      let released = false;
      const releasing = launcher.client.release(key).finally(() => {
        released = true;
      });
      let most = 0;
      let served = 0;
      do {
        await spawn(small, other, 2);
        await launcher.client.kill(other);
        most = Math.max(most, descriptors());
        const releasingOther = launcher.client.release(other);
        served += 1;
        await releasingOther;
      } while (!released);
      await releasing;
      // Small ones do not wait behind it.
      expect(served).toBeGreaterThan(LONG ? 1 : 0);
      expect(most - before).toBeLessThan(16);
      expect(world.leftovers()).toEqual([]);
      expect(kept()).toEqual([]);
    });
  });

  it('in images do not take what they do not hold', async () => {
    await spawn({ driver: 'image', sizeBytes: 8192 * MIB, inodesMax: 1_000_000 });
    const image = join(uppers(), 'box-1.img');
    const { size, blocks } = statSync(image);
    expect(size).toBeGreaterThan(8192 * MIB);
    expect(blocks * 512).toBeLessThan(16 * MIB);
    await remove();
  });

  it('in images are made ahead, for the sizes that were asked for last', async () => {
    const sizes = [16, 24, 32].map((mib) => ({
      ...({ driver: 'image', inodesMax: 256 } as const),
      sizeBytes: mib * MIB,
    }));
    const inodesOf = (names: readonly string[], { sizeBytes }: Upper) =>
      names
        .map((name) => statSync(join(uppers(), name)))
        .filter(({ size }) => size >= sizeBytes && size < sizeBytes + 8 * MIB)
        .map(({ ino }) => ino);
    for (const upper of sizes) {
      await spawn(upper);
      await until('one comes from those that were made ahead', async () => {
        const before = inodesOf(ready(), upper);
        await spawn(upper, other, 2);
        if (before.includes(inodesOf(['other-1.img'], upper)[0] ?? -1)) return true;
        await remove(other);
        return undefined;
      });
      expect(await world.ask(other, 'session write /made')).toBe('0');
      for (const which of [key, other]) await remove(which);
    }
    await until(
      'of a third size, the first go',
      () => ready().length <= 2 * READY_MAX || undefined,
    );
  });

  it('in images that were made ahead go with a launcher that ends, and are swept after another', async () => {
    await spawn({ driver: 'image', sizeBytes: 16 * MIB, inodesMax: 256 });
    await until('one is ready', () => ready().length > 0 || undefined);
    await remove();
    await launcher.kill();
    for (const name of ['.ready-1-1.img', '.new-.ready-1-2']) {
      writeFileSync(join(uppers(), name), '');
    }
    expect(ready().length).toBeGreaterThan(1);
    launcher = await world.start();
    expect([...ready(), ...kept()]).toEqual([]);
    await mountLayers(launcher.client, [base]);
    await spawn({ driver: 'image', sizeBytes: 16 * MIB, inodesMax: 256 });
    await until('one is ready', () => ready().length > 0 || undefined);
    await remove();
    launcher.process.kill('SIGTERM');
    await launcher.ended;
    expect([...ready(), ...kept()]).toEqual([]);
    await until('loop devices are free', () => usedLoops() <= loopsBefore || undefined);
  });

  it('in images outlive their launcher', async () => {
    await spawn({ driver: 'image', sizeBytes: 16 * MIB, inodesMax: 256 });
    await world.ask(key, 'session write /kept');
    await launcher.kill();
    launcher = await world.start();
    expect(await world.ask(key, 'session read /kept')).toBe('x');
    await remove();
    expect(world.leftovers()).toEqual([]);
    expect(kept()).toEqual([]);
    await until('loop devices are free', () => usedLoops() <= loopsBefore || undefined);
  });

  it('are not made in a directory that others could have written to', async () => {
    mkdirSync(uppers(), { mode: 0o700 });
    execFileSync('chown', ['1234', uppers()]);
    const spawning = spawn({ driver: 'image', sizeBytes: 16 * MIB, inodesMax: 256 });
    await expect(spawning).rejects.toMatchObject({
      code: 'permission-denied',
      details: { step: 'upper' },
    });
    expect(world.leftovers()).toEqual([]);
  });
});

/** Devices that hold a file. */
function usedLoops(): number {
  const all = readdirSync('/sys/block').filter((name) => name.startsWith('loop'));
  return all.filter((name) => existsSync(`/sys/block/${name}/loop/backing_file`)).length;
}

function mountBtrfs(at: string): void {
  const image = `${at}.btrfs`;
  execFileSync('truncate', ['--size=0', image]);
  truncateSync(image, 6 * 1024 * MIB);
  execFileSync('mkfs.btrfs', ['--quiet', image]);
  mkdirSync(at, { mode: 0o700 });
  execFileSync('mount', ['-o', 'loop', image, at]);
}
