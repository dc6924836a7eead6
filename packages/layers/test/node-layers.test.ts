import { chmod, mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { MountFd } from '@dsec/linux';
import { type Digest, DsecError, digestOfHex } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import type { LayerMountPlan } from '../src/mount-plan.ts';
import { type NodeEffects, openNodeLayers } from '../src/node-layers.ts';
import { createLayerStore } from '../src/store-directory.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

function planOf(digit: string): LayerMountPlan {
  const layerId = digestOfHex(digit.repeat(64));
  return { layerId, metaPath: '/m', metaBytes: 4096, devices: [], mountPath: `/mounts/${digit}` };
}

/** Counts instead of mounting. */
function createFakeKernel() {
  const log: string[] = [];
  let failing: DsecError | undefined;
  const short = (id: Digest) => id.at(-1) ?? '';
  const effects: NodeEffects = {
    async prepare({ layerId }) {
      log.push(`prepare ${short(layerId)}`);
      if (failing !== undefined) throw failing;
    },
    async mount(plan): Promise<MountFd> {
      log.push(`mount ${short(plan.layerId)}`);
      return { fd: log.length, close: () => {} };
    },
    unmount(plan) {
      log.push(`unmount ${short(plan.layerId)}`);
    },
  };
  return {
    log,
    effects,
    failWith: (error: DsecError | undefined) => {
      failing = error;
    },
  };
}

async function openFake() {
  const directory = join(await temporaryDirectory(), 'node');
  const store = await createLayerStore(await temporaryDirectory());
  const kernel = createFakeKernel();
  const options = { store, directory, form: 'descriptor', directIo: false } as const;
  return { ...kernel, node: await openNodeLayers({ ...options, effects: kernel.effects }) };
}

describe('openNodeLayers', () => {
  it('mounts a layer once for all its users', async () => {
    const { node, log } = await openFake();
    const leases = await Promise.all([1, 2, 3].map(() => node.acquire(planOf('a'))));
    const other = await node.acquire(planOf('b'));
    expect(new Set(leases.map((lease) => lease.value.fd)).size).toBe(1);
    expect([...node.users().values()]).toEqual([3, 1]);
    for (const lease of leases) await lease.release();
    await other.release();
    expect(log.filter((line) => line.endsWith('a'))).toEqual(['prepare a', 'mount a', 'unmount a']);
    expect(node.users().size).toBe(0);
  });

  it('verifies metadata once, however often the layer is mounted', async () => {
    const { node, log } = await openFake();
    for (let round = 0; round < 3; round += 1) await (await node.acquire(planOf('a'))).release();
    expect(log.filter((line) => line.startsWith('prepare'))).toHaveLength(1);
    expect(log.filter((line) => line.startsWith('mount'))).toHaveLength(3);
  });

  it('mounts nothing that did not pass, and asks again the next time', async () => {
    const { node, log, failWith } = await openFake();
    failWith(new DsecError('layer-invalid', 'no'));
    expect(await codeOf(node.acquire(planOf('a')))).toBe('layer-invalid');
    expect(log).toEqual(['prepare a']);
    failWith(undefined);
    await node.acquire(planOf('a'));
    expect(log).toEqual(['prepare a', 'prepare a', 'mount a']);
  });

  it('creates a private directory and sweeps what a dead process left in it', async () => {
    const directory = join(await temporaryDirectory(), 'node');
    const store = await createLayerStore(await temporaryDirectory());
    const options = { store, directory, form: 'path', directIo: false } as const;
    await openNodeLayers(options);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect((await readdir(directory)).sort()).toEqual(['layers', 'mounts', 'tmp']);
    await openNodeLayers(options);
  });

  it.each([
    ['others may read', (path: string) => mkdir(path).then(() => chmod(path, 0o755))],
    ['others may write', (path: string) => mkdir(path).then(() => chmod(path, 0o777))],
    [
      'is a link',
      (path: string) => mkdir(`${path}-real`, 0o700).then(() => symlink(`${path}-real`, path)),
    ],
  ])('refuses a directory that %s', async (_name, make) => {
    const directory = join(await temporaryDirectory(), 'node');
    await make(directory);
    const store = await createLayerStore(await temporaryDirectory());
    const options = { store, directory, form: 'descriptor', directIo: false } as const;
    expect(await codeOf(openNodeLayers(options))).toBe('permission-denied');
  });

  it('refuses a file in its place', async () => {
    const directory = join(await temporaryDirectory(), 'node');
    await writeFile(directory, '');
    const store = await createLayerStore(await temporaryDirectory());
    const options = { store, directory, form: 'descriptor', directIo: false } as const;
    expect(await codeOf(openNodeLayers(options))).not.toBe('no error');
  });
});
