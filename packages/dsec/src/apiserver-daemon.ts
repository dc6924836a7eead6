/** The composition root of `dsec apiserver`: the entry of a fleet, with its state in one SQLite file. */
import { dirname } from 'node:path';
import {
  type Apiserver,
  type ApiserverLog,
  createApiserverLog,
  startApiserver,
} from '@dsec/apiserver';
import { createLayerStore } from '@dsec/layers';
import { type DsecError, systemClock, systemRandom } from '@dsec/std';
import { openSqliteStore } from '@dsec/store';
import { loopbackHosts, namesOfCertificate } from '@dsec/transport';
import type { ApiserverConfig } from './apiserver-config.ts';
import { ensureClientFile, placeOf, type ServerPlace } from './client-file.ts';
import { makeStateDirectory } from './config.ts';
import { readTicketKey } from './ticket-key-files.ts';

export interface ApiserverDaemon {
  readonly apiserver: Apiserver;
  /** Where clients of this machine find it. */
  readonly place: ServerPlace;
  /** Answers what was asked, then lets go. */
  close(): Promise<void>;
}

/** Resolves when it serves. Rejects with what keeps it from that, and then nothing is left open. */
export async function startApiserverDaemon(
  config: ApiserverConfig,
  version: string,
): Promise<ApiserverDaemon> {
  const { listen, edges, platformProject, allowedHosts, clientFile, owner } = config;
  const { tls } = config;
  const log = createApiserverLog(config.logLevel);
  const ownNames = tls === undefined ? [] : namesOfCertificate(tls.certFile);
  const ticketKey = readTicketKey(config.ticketKeyFile);
  makeStateDirectory(dirname(config.storeFile));
  makeStateDirectory(config.layerStore);
  const layers = await createLayerStore(config.layerStore);
  const store = await openSqliteStore({ path: config.storeFile });
  try {
    const apiserver = await startApiserver({
      ...{ listen, edges, store, layers, ticketKey, platformProject, version },
      ...{ clock: systemClock, random: systemRandom, log },
      watchEveryMs: config.watchMs,
      rateLimit: { perSecond: config.ratePerSecond, burst: 5 * config.ratePerSecond },
      allowedHosts: [...loopbackHosts(listen), ...ownNames, ...allowedHosts],
      ...(tls === undefined ? {} : { tls: { ...tls, onFault: reportTo(log) } }),
    });
    const close = async () => {
      await apiserver.close();
      await store.close();
    };
    const { address, iam } = apiserver;
    const place = placeOf(address, tls?.certFile, ownNames);
    try {
      if (clientFile !== undefined) await ensureClientFile(clientFile, place, iam, owner);
    } catch (thrown) {
      await apiserver.close();
      throw thrown;
    }
    return { apiserver, place, close };
  } catch (thrown) {
    await store.close();
    throw thrown;
  }
}

/** A certificate that cannot be taken is no reason to stop: the one before it serves on. */
const reportTo = (log: ApiserverLog) => (err: DsecError) =>
  log.warn({ err }, 'the certificate was changed, and cannot be used');
