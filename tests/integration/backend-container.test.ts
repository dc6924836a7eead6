import { backendConformance } from '@dsec/backend/conformance';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import { openBackendWorld, openSharedStore, type SharedStore } from './backend-container-world.ts';
import { buildNative } from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

describe.runIf(canMount)('the container backend as the seam wants it (needs root)', () => {
  let shared: SharedStore;

  compileFirst();

  beforeAll(async () => {
    buildNative();
    shared = await openSharedStore();
  });
  afterAll(() => shared.remove());

  const isLong = process.env.DSEC_TEST_LONG === '1';
  for (const each of backendConformance(() => openBackendWorld(shared), { isLong })) {
    it(each.name, async (context) => {
      context.skip(each.skip !== undefined, each.skip);
      await each.run();
    });
  }
});
