/** The composition root of `dsec edge`: one process that owns the sandboxes of a node and serves them. */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import {
  cacheEnvironments,
  createEdgeLog,
  createHostProbe,
  defaultNodePolicy,
  type Edge,
  type EdgeServer,
  openEdge,
  startEdgeServer,
} from '@dsec/edge';
import { probeHost } from '@dsec/linux';
import type { DoctorReport } from '@dsec/protocol';
import { systemClock, systemRandom } from '@dsec/std';
import { makeStateDirectory } from './config.ts';
import { backendOpener } from './edge-backend.ts';
import { type EdgeConfig, readTicketKeys } from './edge-config.ts';
import { openEnvironments } from './edge-environments.ts';
import { networkOpener } from './edge-network.ts';
import { makeProbeLayer } from './probe-layer.ts';

export interface EdgeDaemon {
  readonly edge: Edge;
  readonly server: EdgeServer;
  /** Reads the public keys again. Throws what is wrong with them, and then nothing has changed. */
  reloadKeys(): void;
  /** Answers what was asked, then lets go. Sandboxes run on. */
  close(): Promise<void>;
}

/** Resolves when the edge serves. Rejects with what keeps it from that, and then nothing is left open. */
export async function startEdgeDaemon(
  config: EdgeConfig,
  version: string,
  signal: AbortSignal,
): Promise<EdgeDaemon> {
  const { paths, edgeId, shardId, platformProject, listen } = config;
  const publicKeys = readTicketKeys(config.ticketKeysFile);
  makeStateDirectory(paths.root);
  chmodSync(paths.root, 0o700);
  makeStateDirectory(join(paths.root, 'run'));
  const log = createEdgeLog(edgeId, config.logLevel);
  const probe = createHostProbe([paths.root]);
  const openNetwork = await networkOpener(config, (message) => log.warn(message));
  const edge = await openEdge(
    {
      ...{ stateRoot: paths.root, edgeId, shardId, platformProject, version, probe, log },
      ...{ clock: systemClock, random: systemRandom },
      openBackend: backendOpener(config),
      openNetwork,
      environments: cacheEnvironments(openEnvironments(paths), systemClock),
      policy: defaultNodePolicy(probe()),
      times: { endedKeptMs: config.keepEndedMs },
      doctor: () => examineHost(paths.root),
    },
    signal,
  );
  try {
    const server = await startEdgeServer({
      ...{ listen, edgeId, publicKeys, log, clock: systemClock },
      ...{ sandboxes: edge.sandboxes, handlers: edge.handlers, metrics: edge.metrics },
    });
    return {
      ...{ edge, server },
      reloadKeys: () => server.setPublicKeys(readTicketKeys(config.ticketKeysFile)),
      async close() {
        await server.close();
        await edge.close();
      },
    };
  } catch (thrown) {
    await edge.close();
    throw thrown;
  }
}

async function examineHost(stateDirectory: string): Promise<DoctorReport> {
  const report = await probeHost({ stateDirectory, erofsImage: makeProbeLayer() });
  // Through JSON, as `dsec doctor --json` prints it.
  return JSON.parse(JSON.stringify(report)) as DoctorReport;
}
