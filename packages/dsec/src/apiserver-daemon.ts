/** The composition root of `dsec apiserver`: the entry of a fleet, with its state in one SQLite file. */
import { dirname } from 'node:path';
import { type Apiserver, createApiserverLog, startApiserver } from '@dsec/apiserver';
import { createLayerStore } from '@dsec/layers';
import { systemClock, systemRandom } from '@dsec/std';
import { openSqliteStore } from '@dsec/store';
import { loopbackHosts } from '@dsec/transport';
import type { ApiserverConfig } from './apiserver-config.ts';
import { ensureClientFile } from './client-file.ts';
import { makeStateDirectory } from './config.ts';
import { readTicketKey } from './ticket-key-files.ts';

export interface ApiserverDaemon {
  readonly apiserver: Apiserver;
  /** Answers what was asked, then lets go. */
  close(): Promise<void>;
}

/** Resolves when it serves. Rejects with what keeps it from that, and then nothing is left open. */
export async function startApiserverDaemon(
  config: ApiserverConfig,
  version: string,
): Promise<ApiserverDaemon> {
  const { listen, edges, platformProject, allowedHosts, clientFile, owner } = config;
  const ticketKey = readTicketKey(config.ticketKeyFile);
  makeStateDirectory(dirname(config.storeFile));
  makeStateDirectory(config.layerStore);
  const layers = await createLayerStore(config.layerStore);
  const store = await openSqliteStore({ path: config.storeFile });
  try {
    const apiserver = await startApiserver({
      ...{ listen, edges, store, layers, ticketKey, platformProject, version },
      ...{ clock: systemClock, random: systemRandom, log: createApiserverLog(config.logLevel) },
      watchEveryMs: config.watchMs,
      allowedHosts: [...loopbackHosts(listen), ...allowedHosts],
    });
    const close = async () => {
      await apiserver.close();
      await store.close();
    };
    try {
      const { address, iam } = apiserver;
      if (clientFile !== undefined) await ensureClientFile(clientFile, address, iam, owner);
    } catch (thrown) {
      await apiserver.close();
      throw thrown;
    }
    return { apiserver, close };
  } catch (thrown) {
    await store.close();
    throw thrown;
  }
}
