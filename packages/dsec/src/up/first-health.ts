import { Client, type FoundServer } from '@dsec/libdsec';
import { type Clock, DsecError, SECOND_MS } from '@dsec/std';

const WAIT_MS = 30 * SECOND_MS;
const LOOK_MS = 50;

/**
 * Resolves when the apiserver has heard of its edge, so that a sandbox can be made. An edge that has just
 * started takes no tickets for a moment. `unavailable` when that does not come.
 */
export async function waitForHealth(server: FoundServer, clock: Clock): Promise<void> {
  const client = new Client(server);
  const endMs = clock.monotonicMs() + WAIT_MS;
  try {
    while (!(await client.health()).ok) {
      if (clock.monotonicMs() > endMs) {
        throw new DsecError(
          'unavailable',
          'the edge does not answer the apiserver: see their logs',
        );
      }
      await clock.sleep(LOOK_MS);
    }
  } finally {
    await client.close();
  }
}
