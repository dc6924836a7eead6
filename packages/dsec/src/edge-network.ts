/** The network of a node, as its operator sets it up. */
import { readFileSync } from 'node:fs';
import type { Backend, BackendReport } from '@dsec/backend';
import { createNodeNetwork, type NodeNetwork, overlappingRoutes } from '@dsec/edge';
import { loadOperatorNetwork } from '@dsec/network';
import { asDsecError, systemClock } from '@dsec/std';
import type { EdgeConfig } from './edge-config.ts';

export type OpenNetwork = (backend: Backend, report: BackendReport) => NodeNetwork;

/**
 * Reads the operator's map, and what it names, once. Throws what is wrong with them. `warn` is told of what
 * an operator should know and that keeps nothing from working.
 */
export async function networkOpener(
  config: EdgeConfig,
  warn: (message: string) => void,
): Promise<OpenNetwork> {
  const { servicesFile, networkPool: pool, networkGateway: gateway, filterObjects } = config;
  const operator = servicesFile === undefined ? {} : await loadOperatorNetwork(servicesFile);
  const { nameServers, authoritiesFile } = operator;
  const authorities = authoritiesFile === undefined ? undefined : textOf(authoritiesFile);
  return (backend, report) => {
    for (const route of overlappingRoutes(pool)) {
      warn(`--network-pool ${pool} overlaps the route ${route}: sandboxes never reach that`);
    }
    return createNodeNetwork({
      ...{ backend, report, operator, pool, gateway, nameServers, authorities },
      filter: { objectsDirectory: filterObjects, stateRoot: config.paths.root },
      clock: systemClock,
    });
  };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (thrown) {
    throw asDsecError(thrown);
  }
}
