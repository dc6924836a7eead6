import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { compileSeccomp, type LauncherClient } from '@dsec/backend-container';
import { MOUNT_BITS, type SpawnFields } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import {
  ATTRIBUTES,
  buildNative,
  LAUNCHER,
  type LauncherWorld,
  mountLayers,
  openLauncherWorld,
  pinnedPaths,
  type TestLayer,
} from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

const key = { name: 'box', generation: 1 };

describe.runIf(canMount)('a launcher that dies (needs root)', () => {
  let world: LauncherWorld;
  let base: TestLayer;

  beforeAll(buildNative);
  beforeEach(() => {
    world = openLauncherWorld({ seccomp: compileSeccomp() });
    base = world.buildLayer((builder) => builder.directory('home', ATTRIBUTES));
  });
  afterEach(() => world.close());

  const uppers = () => join(world.stateRoot, 'uppers');

  /** One life, and the layer under it. */
  async function live(client: LauncherClient) {
    await mountLayers(client, [base]);
    // With most that can be left: a mount, devices and a file.
    const upper = { driver: 'image', sizeBytes: 16 * MIB, inodesMax: 256 } as const;
    const change = ({ root, ...spec }: SpawnFields): SpawnFields => ({
      ...spec,
      root: { layers: root?.layers ?? [], nosuid: false, upper },
      link: { address: 0x64_60_00_02, gateway: 0xa9_fe_4d_01 },
    });
    await client.spawn(world.spec(key, { layers: [base], change }));
    const mask = { kind: 'mask', target: Buffer.from('/home'), flags: MOUNT_BITS.policy } as const;
    await client.remount({ ...key, mounts: [mask] });
    await client.kill(key);
    await client.release(key);
    await client.unmountLayer(base.layerId);
  }

  it('leaves nothing that the next one cannot remove, wherever it dies', {
    timeout: 300_000,
  }, async () => {
    const points = execFileSync(LAUNCHER, ['--crash-points'], { encoding: 'utf8' })
      .trim()
      .split('\n')
      // The router is made once; launcher-network.test.ts sees to that.
      .filter((point) => !point.startsWith('router-'));
    expect(points.length).toBeGreaterThan(10);
    for (const point of points) {
      const doomed = await world.start(point);
      // What is made in the background may outlast a life.
      const lives = async () => {
        for (;;) await live(doomed.client);
      };
      await expect(lives(), point).rejects.toMatchObject({ code: 'unavailable' });
      await doomed.ended;
      expect(doomed.process.signalCode, point).toBe('SIGKILL');

      const { client, kill } = await world.start();
      await client.kill(key);
      await client.release(key);
      await client.unmountLayer(base.layerId);
      expect(world.leftovers(), point).toEqual([]);
      expect(pinnedPaths(world.stateRoot), point).toEqual(['/layers']);
      const images = existsSync(uppers()) ? readdirSync(uppers()) : [];
      expect(
        images.filter((name) => !name.startsWith('.empty')),
        point,
      ).toEqual([]);
      await live(client);
      await kill();
    }
  });

  it('may die in the middle of many', { timeout: 120_000 }, async () => {
    const doomed = await world.start('spawn-cloned:5');
    await mountLayers(doomed.client, [base]);
    const keys = Array.from({ length: 8 }, (_, index) => ({ name: `box${index}`, generation: 1 }));
    const spawning = keys.map((which, slot) =>
      doomed.client.spawn(world.spec(which, { layers: [base], slot: slot + 1 })),
    );
    const outcomes = await Promise.allSettled(spawning);
    expect(outcomes.some(({ status }) => status === 'rejected')).toBe(true);
    await doomed.ended;
    const { client } = await world.start();
    await Promise.all(
      keys.map(async (which) => {
        await client.kill(which);
        await client.release(which);
      }),
    );
    expect(world.leftovers()).toEqual([]);
    expect(await client.listLayers()).toEqual([{ layerId: base.layerId, users: 0 }]);
  });
});
