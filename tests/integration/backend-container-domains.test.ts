/** Isolation domains: who shares the mount of a layer, and with it the pages of its files in memory. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import {
  type BackendWorld,
  openBackendWorld,
  openSharedStore,
  type SharedStore,
} from './backend-container-world.ts';
import { buildNative, pinnedPaths } from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

let shared: SharedStore;
let world: BackendWorld;

const SCRIPT = join(import.meta.dirname, 'backend-container-domains.py');
const FILE = 'bin/sh';

const mounts = () =>
  pinnedPaths(world.stateRoot)
    .map((path) => /^\/layers\/([^/]+)$/.exec(path)?.[1] ?? '')
    .filter(Boolean);

/** Pages in memory by each of two mounts, after all was read by the first. */
function pagesAfterRead(first: string, second: string) {
  const pin = join(world.stateRoot, 'run/layers.mnt');
  const text = execFileSync('python3', [SCRIPT, pin, FILE, first, second], { encoding: 'utf8' });
  return text
    .trim()
    .split('\n')
    .map((line) => line.split(' ').map(Number));
}

describe.runIf(canMount)('isolation domains (needs root)', () => {
  compileFirst();
  beforeAll(async () => {
    buildNative();
    shared = await openSharedStore();
  });
  afterAll(() => shared.remove());
  beforeEach(async () => {
    world = await openBackendWorld(shared);
  });
  afterEach(() => world.close());

  it('67 have mounts of their own, and read nothing of what another has in memory', async () => {
    await world.backend.create(world.plan({ isolationDomain: 'project/one' }));
    const [one = ''] = mounts();
    await world.backend.create(world.plan({ isolationDomain: 'project/one' }));
    expect(mounts()).toEqual([one]);
    await world.backend.create(world.plan({ isolationDomain: 'project/two' }));
    const two = mounts().find((name) => name !== one) ?? '';
    expect(mounts()).toHaveLength(2);
    // The control: by the same mount, all of it is seen.
    const [[read = 0, all], [again]] = pagesAfterRead(one, one) as [number[], number[]];
    expect(read).toBe(all);
    expect(again).toBe(all);
    const [[first], [second]] = pagesAfterRead(one, two) as [number[], number[]];
    expect(first).toBe(all);
    expect(second).toBe(0);
  });

  it('share what they are asked to share, and never what grades', async () => {
    const plan = world.plan({ isolationDomain: 'node' });
    const layerId = plan.layers[0]?.layerId;
    await world.backend.create(plan);
    await world.backend.create(world.plan({ isolationDomain: 'node' }));
    expect(mounts()).toHaveLength(1);
    const grading = { kind: 'grading', name: 'tests', layerId } as never;
    await world.backend.create(
      world.plan({ isolationDomain: 'node', tools: { platform: false, layers: [grading] } }),
    );
    expect(mounts()).toHaveLength(2);
  });

  it('are found again by another edge', async () => {
    const plan = world.plan({ isolationDomain: 'project/one' });
    const runtime = await world.backend.create(plan);
    const before = mounts();
    const backend = await world.open();
    const report = await backend.recover([{ plan, runtime }]);
    expect(report.sandboxes).toMatchObject([{ running: true }]);
    await backend.create(world.plan({ isolationDomain: 'project/one' }));
    expect(mounts()).toEqual(before);
  });
});
