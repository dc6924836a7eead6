/**
 * The launcher's own tests, on cgroups of version 2 alone and, where the distribution has it, on a kernel
 * that takes overlays by paths only: the other half of the hosts that it runs on. What does not depend on
 * either is left to the long form, as are the containers that are made with it.
 */
import { readlinkSync } from 'node:fs';
import { inGuest, onlyInGuest, shell } from './guest.ts';

onlyInGuest();

if (inGuest) {
  // The guest is thrown away, so the tests may mount in the namespace that they find.
  process.env.DSEC_TEST_PRIVATE_MOUNTS = readlinkSync('/proc/self/ns/mnt');
  // Nothing in the guest makes the device that would load it.
  shell('modprobe loop');
  await import('../integration/launcher-spawn.test.ts');
  await import('../integration/launcher-lifecycle.test.ts');
  await import('../integration/launcher-ceiling.test.ts');
  await import('../integration/launcher-uppers.test.ts');
  await import('../integration/launcher-aether.test.ts');
  if (process.env.DSEC_TEST_LONG === '1') {
    await import('../integration/launcher-refusals.test.ts');
    await import('../integration/launcher-crash.test.ts');
    await import('../integration/backend-container-node.test.ts');
    await import('../integration/backend-container.test.ts');
  }
}
