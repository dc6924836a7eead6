/** The network of a node, as its operator sets it up. */
import { readFileSync, statSync } from 'node:fs';
import type { Backend, BackendReport } from '@dsec/backend';
import { createNodeNetwork, type NodeNetwork, overlappingRoutes } from '@dsec/edge';
import { loadOperatorNetwork } from '@dsec/network';
import { asDsecError, DsecError, systemClock } from '@dsec/std';
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
  const { nameServers, authoritiesFile, secretsFile } = operator;
  const authorities = authoritiesFile === undefined ? undefined : textOf(authoritiesFile);
  const secrets = secretsFile === undefined ? undefined : readSecrets(secretsFile);
  return (backend, report) => {
    for (const route of overlappingRoutes(pool)) {
      warn(`--network-pool ${pool} overlaps the route ${route}: sandboxes never reach that`);
    }
    return createNodeNetwork({
      ...{ backend, report, operator, pool, gateway, nameServers, authorities },
      secretOf: (name) => secrets?.[name],
      filter: { objectsDirectory: filterObjects, stateRoot: config.paths.root },
      clock: systemClock,
    });
  };
}

/** Secrets that others can read are none. */
function readSecrets(file: string): Readonly<Record<string, string>> {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o077) !== 0) {
    throw new DsecError('permission-denied', `${file} is readable by others: chmod 600 ${file}`);
  }
  try {
    const found: unknown = JSON.parse(textOf(file));
    const isMap = typeof found === 'object' && found !== null && !Array.isArray(found);
    if (isMap && Object.values(found).every((value) => typeof value === 'string')) {
      return found as Record<string, string>;
    }
  } catch (thrown) {
    if (thrown instanceof DsecError) throw thrown;
  }
  throw new DsecError('invalid-argument', `${file} is no JSON object of texts by name`);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (thrown) {
    throw asDsecError(thrown);
  }
}
