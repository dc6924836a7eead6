import { createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOG_LEVELS, type LogLevel, NETWORK_DEFAULTS } from '@dsec/edge';
import {
  DsecError,
  type EdgeId,
  type ProjectId,
  parseEdgeId,
  parseProjectId,
  parseShardId,
  type ShardId,
} from '@dsec/std';
import type { ListenAddress } from '@dsec/transport';
import type { StatePaths } from './config.ts';

/** The options of `dsec edge` as texts. */
export interface EdgeCommandOptions {
  readonly edgeId: string;
  readonly shardId: string;
  readonly backend: string;
  readonly listen?: string | undefined;
  readonly ticketKeys: string;
  readonly platformProject?: string | undefined;
  readonly launcher?: string | undefined;
  readonly agent?: string | undefined;
  readonly logLevel: string;
  readonly keepEndedMs: string;
  readonly services?: string | undefined;
  readonly networkPool?: string | undefined;
  readonly networkGateway?: string | undefined;
}

export interface EdgeConfig {
  readonly paths: StatePaths;
  readonly edgeId: EdgeId;
  readonly shardId: ShardId;
  readonly backend: 'container' | 'sim';
  readonly listen: ListenAddress;
  readonly ticketKeysFile: string;
  readonly platformProject: ProjectId | undefined;
  readonly launcherProgram: string;
  readonly agentProgram: string;
  /** The platform's tools for sandboxes that grade. */
  readonly platformTools: string;
  readonly logLevel: LogLevel;
  /** An ended sandbox stays listed for this long. */
  readonly keepEndedMs: number;
  /** The operator's map of services; absent: the well-known ones alone. */
  readonly servicesFile: string | undefined;
  readonly networkPool: string;
  readonly networkGateway: string;
  /** Where the objects of the packet filter are, if they were built. */
  readonly filterObjects: string;
}

/** Where `make -C native` puts the programs, from the sources and from what is compiled of them alike. */
const NATIVE_BUILD = join(import.meta.dirname, '../../../native/build');

/** Throws `invalid-argument` with what is wrong. */
export function edgeConfigOf(options: EdgeCommandOptions, paths: StatePaths): EdgeConfig {
  const { backend, platformProject: platform } = options;
  if (backend !== 'container' && backend !== 'sim') {
    throw new DsecError('invalid-argument', '--backend is one of container, sim');
  }
  const logLevel = LOG_LEVELS.find((level) => level === options.logLevel);
  if (logLevel === undefined) {
    throw new DsecError('invalid-argument', `--log-level is one of ${LOG_LEVELS.join(', ')}`);
  }
  if (!/^\d{1,10}$/.test(options.keepEndedMs)) {
    throw new DsecError('invalid-argument', '--keep-ended-ms is a number of milliseconds');
  }
  return {
    keepEndedMs: Number(options.keepEndedMs),
    ...{ paths, backend, logLevel, ticketKeysFile: options.ticketKeys },
    edgeId: parseEdgeId(options.edgeId),
    shardId: parseShardId(options.shardId),
    listen: listenAddressOf(options.listen ?? `unix:${join(paths.root, 'run', 'edge.sock')}`),
    platformProject: platform === undefined ? undefined : parseProjectId(platform),
    launcherProgram: options.launcher ?? join(NATIVE_BUILD, 'dsec-launcher'),
    agentProgram: options.agent ?? join(NATIVE_BUILD, 'aether'),
    servicesFile: options.services,
    networkPool: options.networkPool ?? NETWORK_DEFAULTS.pool,
    networkGateway: options.networkGateway ?? NETWORK_DEFAULTS.gateway,
    filterObjects: join(NATIVE_BUILD, 'bpf'),
    platformTools: join(NATIVE_BUILD, 'platform'),
  };
}

/**
 * `unix:PATH`, or `127.0.0.1:PORT`, `[::1]:PORT` (0: any free one). No other address: what calls an edge
 * over a network comes through something that encrypts.
 */
export function listenAddressOf(text: string): ListenAddress {
  if (text.startsWith('unix:/')) return { socketPath: text.slice('unix:'.length) };
  const [, v6, v4, port] = /^(?:\[(::1)\]|(127\.0\.0\.1)):(\d{1,5})$/.exec(text) ?? [];
  const host = v6 ?? v4;
  if (host !== undefined && Number(port) < 65_536) return { host, port: Number(port) };
  throw new DsecError('invalid-argument', '--listen is unix:/PATH, 127.0.0.1:PORT or [::1]:PORT');
}

/**
 * The public keys of those who may sign tickets: a JSON file of `{"<key id>": "<PEM>"}`. Throws
 * `invalid-argument` for anything else than Ed25519 keys, and `not-found`.
 */
export function readTicketKeys(file: string): ReadonlyMap<string, KeyObject> {
  const text = readFileSync(file, 'utf8');
  const fail = (why: string, cause?: unknown) =>
    new DsecError('invalid-argument', `${file}: ${why}`, { cause });
  let keys: [string, KeyObject][];
  try {
    const pems = Object.entries(JSON.parse(text) as Record<string, string>);
    keys = pems.map(([id, pem]) => [id, createPublicKey(pem)]);
  } catch (thrown) {
    throw fail('not a JSON object of public keys in PEM, by key id', thrown);
  }
  if (keys.length === 0) throw fail('no key, so nobody could ask for anything');
  for (const [id, key] of keys) {
    if (key.asymmetricKeyType !== 'ed25519') throw fail(`the key ${id} is not Ed25519`);
  }
  return new Map(keys);
}
