/** `dsec up`: an edge and an apiserver on this machine, as processes that are kept running. */
import { join } from 'node:path';
import { findServer } from '@dsec/libdsec';
import { createCleanupStack, MINUTE_MS, systemClock } from '@dsec/std';
import { type Settings, settingOf } from '../command-line/settings.ts';
import { makeStateDirectories, makeStateDirectory, type StatePaths } from '../config.ts';
import { ensureTicketKeys } from '../ticket-key-files.ts';
import { edgeNameOf } from './edge-name.ts';
import { waitForHealth } from './first-health.ts';
import { type LogFile, openLogFile } from './log-file.ts';
import { type Part, startPart } from './part.ts';
import { lockState } from './state-lock.ts';

/** Whose requests an edge answers about everything: those of the apiserver itself. */
const PLATFORM = 'platform';
const ROTATE_MS = MINUTE_MS;

export interface UpOptions {
  readonly paths: StatePaths;
  readonly settings: Settings;
  /** The program `dsec` itself: Node and the file of the command line. */
  readonly self: readonly [string, ...string[]];
  notice(text: string): void;
}

export interface Up {
  readonly url: string;
  /** Address and key, as a client takes them. */
  readonly client: { readonly url: string; readonly apiKey: string };
  readonly clientFile: string;
  readonly logs: string;
  readonly pids: { readonly edge: number | undefined; readonly apiserver: number | undefined };
  /** Ends the apiserver, then the edge. Sandboxes run on. */
  stop(): Promise<void>;
}

/** Resolves when everything serves. Rejects with why it cannot, and then nothing of it runs. */
export async function startUp(options: UpOptions): Promise<Up> {
  const { paths, settings, self, notice } = options;
  const cleanup = createCleanupStack();
  try {
    makeStateDirectories(paths);
    const logs = join(paths.root, 'log');
    makeStateDirectory(logs);
    const lock = lockState(paths.root);
    cleanup.push('lock', () => lock.release());
    const keys = ensureTicketKeys(join(paths.root, 'keys'));
    const clientFile = join(paths.root, 'client.json');
    const socket = settings.edgeListen?.value ?? `unix:${join(paths.root, 'run', 'edge.sock')}`;
    const start = (name: string, args: readonly string[]): Part => {
      const log = openLogFile(join(logs, `${name}.log`));
      cleanup.push(`log of ${name}`, () => log.close());
      cleanup.push(`rotation of ${name}`, rotateSometimes(log));
      const argv = [...self, name, '--json', '--state', paths.root, ...args] as const;
      const part = startPart({ name, argv: argv as PartArgv, log, clock: systemClock, notice });
      cleanup.push(name, () => part.stop());
      return part;
    };
    const edgeId = edgeNameOf(paths.root, settings);
    const edge = start('edge', [
      ...['--edge-id', edgeId, '--listen', socket, '--ticket-keys', keys.publicFile],
      ...['--platform-project', PLATFORM],
      ...passed(settings, ['shardId', 'backend', 'keepEndedMs', 'logLevel', 'launcher', 'agent']),
      ...passed(settings, ['services', 'networkPool', 'networkGateway']),
    ]);
    const { address } = await edge.ready;
    const edgeName = `${settingOf(settings, 'shardId')}/${edgeId}=${textOf(address)}`;
    const apiserver = start('apiserver', [
      ...['--listen', settingOf(settings, 'listen'), '--edge', edgeName],
      ...['--ticket-key', keys.privateFile, '--client-file', clientFile],
      ...['--platform-project', PLATFORM],
      ...passed(settings, ['logLevel', 'tlsCert', 'tlsKey', 'rateLimit']),
    ]);
    const url = String((await apiserver.ready).url);
    const client = findServer({}, { DSEC_CLIENT: clientFile });
    await waitForHealth(client, systemClock);
    return {
      ...{ url, clientFile, logs, client },
      pids: { edge: edge.pid, apiserver: apiserver.pid },
      stop: async () => void (await cleanup.run()),
    };
  } catch (thrown) {
    await cleanup.run();
    throw thrown;
  }
}

type PartArgv = readonly [string, ...string[]];

/** Where a part says that it serves, as the command line takes it. */
function textOf(address: unknown): string {
  const { socketPath, host = '', port } = address as Partial<Record<string, string>>;
  if (socketPath !== undefined) return `unix:${socketPath}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Settings as options of a part: what was resolved here is not resolved again there. */
function passed(settings: Settings, keys: readonly (keyof Settings)[]): string[] {
  return keys.flatMap((key) => {
    const value = settings[key]?.value;
    const option = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return value === undefined ? [] : [`--${option}`, value];
  });
}

function rotateSometimes(log: LogFile): () => void {
  const timer = setInterval(() => log.rotate(), ROTATE_MS);
  timer.unref();
  return () => clearInterval(timer);
}
