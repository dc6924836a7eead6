/**
 * The launcher's own tests, on cgroups of version 2 alone and, where the distribution has it, on a kernel
 * that takes overlays by paths only: the other half of the hosts that it runs on.
 */
import { readlinkSync } from 'node:fs';
import { inGuest, onlyInGuest } from './guest.ts';

onlyInGuest();

if (inGuest) {
  // The guest is thrown away, so the tests may mount in the namespace that they find.
  process.env.DSEC_TEST_PRIVATE_MOUNTS = readlinkSync('/proc/self/ns/mnt');
  await import('../integration/launcher-spawn.test.ts');
  await import('../integration/launcher-refusals.test.ts');
  await import('../integration/launcher-lifecycle.test.ts');
  await import('../integration/launcher-aether.test.ts');
}
