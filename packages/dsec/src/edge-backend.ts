/** The concrete backends of an edge: only here are they named. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Backend } from '@dsec/backend';
import { createSimBackend, createSimWorld } from '@dsec/backend/sim';
import { openContainerBackend, startLauncher } from '@dsec/backend-container';
import { createLayerStore } from '@dsec/layers';
import { DsecError, systemClock, systemRandom } from '@dsec/std';
import type { EdgeConfig } from './edge-config.ts';

/** What `openEdge` calls with the epoch of its journal. */
export function backendOpener(config: EdgeConfig): (epoch: number) => Promise<Backend> {
  return config.backend === 'sim' ? openSimulated : (epoch) => openContainers(config, epoch);
}

/** Its sandboxes end with this process. For trying out and for tests. */
async function openSimulated(): Promise<Backend> {
  return createSimBackend(createSimWorld({ clock: systemClock, random: systemRandom }));
}

/**
 * Finds the launcher that is there, or starts one that outlives this process; and another when that one
 * dies, as nobody else looks after it.
 */
async function openContainers(config: EdgeConfig, epoch: number): Promise<Backend> {
  const { paths, edgeId, launcherProgram, agentProgram, platformTools } = config;
  const edgeUid = process.getuid?.() ?? 0;
  if (edgeUid !== 0) {
    throw new DsecError('permission-denied', 'starting a launcher needs root');
  }
  const ensureLauncher = () =>
    startLauncher({
      ...{ program: launcherProgram, agentProgram },
      ...{ stateRoot: paths.root, edgeId, edgeUid },
    });
  const { socketPath } = await ensureLauncher();
  return openContainerBackend({
    ...{ stateRoot: paths.root, edgeId, epoch, launcherSocket: socketPath, ensureLauncher },
    layerStore: await createLayerStore(join(paths.store)),
    ...(existsSync(platformTools) ? { platformTools } : {}),
  });
}
