import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { type EdgeAddress, LOG_LEVELS, type LogLevel } from '@dsec/apiserver';
import {
  DsecError,
  type ProjectId,
  parseEdgeId,
  parsePrincipalId,
  parseProjectId,
  parseShardId,
} from '@dsec/std';
import type { ListenAddress } from '@dsec/transport';
import type { KeyOwner } from './client-file.ts';
import type { StatePaths } from './config.ts';
import { listenAddressOf } from './edge-config.ts';

/** The options of `dsec apiserver` as the command line gives them. */
export interface ApiserverCommandOptions {
  readonly listen: string;
  readonly edges: string | undefined;
  readonly edge: readonly string[];
  readonly ticketKey: string | undefined;
  readonly store: string | undefined;
  readonly platformProject: string;
  readonly clientFile: string | undefined;
  readonly project: string;
  readonly principal: string;
  readonly watchMs: string;
  readonly allowHost: readonly string[];
  readonly logLevel: string;
  readonly tlsCert: string | undefined;
  readonly tlsKey: string | undefined;
  readonly rateLimit: string;
}

export interface ApiserverConfig {
  readonly listen: ListenAddress;
  readonly edges: readonly EdgeAddress[];
  readonly ticketKeyFile: string;
  readonly storeFile: string;
  /** Of the layers. */
  readonly layerStore: string;
  readonly platformProject: ProjectId;
  /** Written once it serves, with a key of `owner`; absent: none is. */
  readonly clientFile: string | undefined;
  readonly owner: KeyOwner;
  /** How often each edge is asked what has changed. */
  readonly watchMs: number;
  /** Names under which it is asked for, beside those of loopback. */
  readonly allowedHosts: readonly string[];
  readonly logLevel: LogLevel;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
  /** Requests a second that a key may make. */
  readonly ratePerSecond: number;
}

const EDGES_MAX = 4096;

/** Throws `invalid-argument` with what is wrong. */
export function apiserverConfigOf(
  options: ApiserverCommandOptions,
  paths: StatePaths,
): ApiserverConfig {
  const logLevel = LOG_LEVELS.find((level) => level === options.logLevel);
  if (logLevel === undefined) {
    throw new DsecError('invalid-argument', `--log-level is one of ${LOG_LEVELS.join(', ')}`);
  }
  const edges = [
    ...(options.edges === undefined ? [] : readEdges(options.edges)),
    ...options.edge.map(edgeOf),
  ];
  if (options.ticketKey === undefined) {
    throw new DsecError('invalid-argument', 'the option --ticket-key is missing');
  }
  if (!/^[1-9]\d{1,6}$/.test(options.watchMs)) {
    throw new DsecError('invalid-argument', '--watch-ms is a number of milliseconds from 10 on');
  }
  if (edges.length === 0) {
    throw new DsecError('invalid-argument', 'no edge: name them with --edge or --edges');
  }
  if (!/^[1-9]\d{0,6}$/.test(options.rateLimit)) {
    throw new DsecError('invalid-argument', '--rate-limit is a number of requests a second');
  }
  const tls = tlsOf(options);
  return {
    ...{ edges, logLevel, tls, allowedHosts: options.allowHost },
    ratePerSecond: Number(options.rateLimit),
    listen: tls === undefined ? listenAddressOf(options.listen) : anyAddressOf(options.listen),
    ticketKeyFile: options.ticketKey,
    watchMs: Number(options.watchMs),
    clientFile: options.clientFile,
    owner: {
      project: parseProjectId(options.project),
      principal: parsePrincipalId(options.principal),
    },
    storeFile: options.store ?? join(paths.root, 'apiserver.db'),
    layerStore: paths.store,
    platformProject: parseProjectId(options.platformProject),
  };
}

function tlsOf({ tlsCert, tlsKey }: ApiserverCommandOptions): ApiserverConfig['tls'] {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert !== undefined && tlsKey !== undefined) {
    return { certFile: resolve(tlsCert), keyFile: resolve(tlsKey) };
  }
  throw new DsecError('invalid-argument', '--tls-cert and --tls-key go together');
}

/** What is encrypted may come from anywhere: `HOST:PORT` beside the addresses of this machine. */
function anyAddressOf(text: string): ListenAddress {
  const [, v6, v4, port] = /^(?:\[([0-9a-fA-F:]+)\]|([\d.]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = v6 ?? v4;
  if (host !== undefined && isIP(host) !== 0 && Number(port) < 65_536) {
    return { host, port: Number(port) };
  }
  return listenAddressOf(text);
}

/** `[SHARD/]ID=ADDRESS`; the shard is `local` unless it is named. */
export function edgeOf(text: string): EdgeAddress {
  const [, shard = 'local', edge, address] = /^(?:([^/=]*)\/)?([^/=]*)=(.+)$/.exec(text) ?? [];
  if (edge === undefined || address === undefined) {
    throw new DsecError('invalid-argument', '--edge is [SHARD/]ID=ADDRESS');
  }
  return {
    edgeId: parseEdgeId(edge),
    shardId: parseShardId(shard),
    address: listenAddressOf(address),
  };
}

function readEdges(file: string): readonly EdgeAddress[] {
  const text = readFileSync(file, 'utf8');
  try {
    const rows = JSON.parse(text) as { edge: string; shard?: string; address: string }[];
    if (rows.length > EDGES_MAX) throw new RangeError(`at most ${EDGES_MAX} edges`);
    return rows.map(({ edge, shard = 'local', address }) => edgeOf(`${shard}/${edge}=${address}`));
  } catch (cause) {
    const shape = '[{"edge": "<id>", "shard": "<id>", "address": "<address>"}, …]';
    throw new DsecError('invalid-argument', `${file} is not of the form ${shape}`, { cause });
  }
}
