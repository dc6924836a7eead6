/** An edge and an apiserver as processes of their own, in a state directory that goes with them. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ensureTicketKeys, type TicketKeyFiles } from '@dsec/dsec';

/** As `npm run build` leaves it. */
export const CLI = fileURLToPath(new URL('../../packages/dsec/dist/cli.js', import.meta.url));

export interface ServerOptions {
  /** `container` needs root, and a mount namespace of one's own. Default: `sim`. */
  readonly backend?: 'sim' | 'container';
  /** How many edges, named `local`, `edge1`, `edge2`, … Default: 1. */
  readonly edges?: number;
  readonly listen?: string;
  readonly logLevel?: string;
  /** Of the apiserver: how often it asks its edges what has changed. */
  readonly watchMs?: number;
  /** For the apiserver alone. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface ServerProcess {
  readonly pid: number;
  /** What it said when it was ready. */
  readonly ready: Readonly<Record<string, unknown>>;
  /** Of its standard error, the end. */
  log(): string;
  /** Resolves with its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** SIGTERM, and SIGKILL when that does not help. */
  stop(): Promise<void>;
  kill(signal: NodeJS.Signals): void;
}

export interface TestServer {
  readonly url: string;
  readonly apiKey: string;
  readonly state: string;
  /** `client.json`, for DSEC_CLIENT. */
  readonly clientFile: string;
  /** A layer of a few files that can be in every sandbox: `base/tiny:1.0.0`. */
  readonly layer: string;
  readonly edges: readonly ServerProcess[];
  readonly apiserver: ServerProcess;
  /** Another apiserver on the same store; ends with the others. */
  startApiserver(options?: Pick<ServerOptions, 'env' | 'listen' | 'watchMs'>): Promise<{
    readonly url: string;
    readonly process: ServerProcess;
  }>;
  /** An edge again, after it has ended. */
  startEdge(index: number): Promise<ServerProcess>;
  /** Ends every process by its id and removes the state. */
  stop(): Promise<void>;
}

export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const { edges: count = 1 } = options;
  const state = mkdtempSync(join(tmpdir(), 'dsec-e2e-'));
  const started: ServerProcess[] = [];
  const stop = async () => {
    for (const one of started.reverse()) await one.stop();
    rmSync(state, { recursive: true, force: true });
  };
  const run = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const one = await startProcess([process.execPath, CLI, '--json', ...args], env);
    started.push(one);
    return one;
  };
  try {
    const layer = await importTinyLayer(state);
    const keys = ensureTicketKeys(join(state, 'keys'));
    const startEdge = (index: number) => run(edgeArgs(state, index, keys, options));
    const edges = await Promise.all(Array.from({ length: count }, (_, index) => startEdge(index)));
    const clientFile = join(state, 'client.json');
    const startApiserver = async (
      own: Pick<ServerOptions, 'env' | 'listen' | 'watchMs'> = options,
    ) => {
      const { env = {}, listen = '127.0.0.1:0', watchMs = 1000 } = own;
      const edgeFlags = edges.flatMap((_, index) => ['--edge', edgeFlag(state, index)]);
      const flags = ['--ticket-key', keys.privateFile, '--client-file', clientFile, ...edgeFlags];
      const common = [
        ...['--listen', listen, '--log-level', options.logLevel ?? 'warn'],
        ...['--watch-ms', String(watchMs)],
      ];
      const one = await run(['--state', state, 'apiserver', ...common, ...flags], env);
      return { url: String(one.ready.url), process: one };
    };
    const first = await startApiserver();
    const { apiKey } = JSON.parse(readFileSync(clientFile, 'utf8')) as { apiKey: string };
    return {
      ...{ url: first.url, apiKey, state, clientFile, layer, edges, apiserver: first.process },
      ...{ startApiserver, startEdge, stop },
    };
  } catch (thrown) {
    await stop();
    throw thrown;
  }
}

const edgeName = (index: number) => (index === 0 ? 'local' : `edge${index}`);
const edgeSocket = (state: string, index: number) => join(state, `${edgeName(index)}.sock`);
const edgeFlag = (state: string, index: number) =>
  `${edgeName(index)}=unix:${edgeSocket(state, index)}`;

/** All but the first have a state of their own, with the same layers. */
function edgeArgs(
  state: string,
  index: number,
  keys: TicketKeyFiles,
  { backend = 'sim', logLevel = 'warn' }: ServerOptions,
): string[] {
  const own = index === 0 ? state : join(state, edgeName(index));
  if (index > 0) linkStore(state, own);
  return [
    ...['--state', own, 'edge', '--log-level', logLevel, '--edge-id', edgeName(index)],
    ...['--backend', backend, '--listen', `unix:${edgeSocket(state, index)}`],
    ...['--ticket-keys', keys.publicFile, '--platform-project', 'platform'],
  ];
}

function linkStore(state: string, own: string): void {
  mkdirSync(own, { recursive: true, mode: 0o700 });
  cpSync(join(state, 'store'), join(own, 'store'), { recursive: true });
}

async function importTinyLayer(state: string): Promise<string> {
  const tree = join(state, 'tree');
  for (const name of ['bin', 'etc', 'proc', 'tmp', 'dev', 'sys', 'work']) {
    mkdirSync(join(tree, name), { recursive: true });
  }
  writeFileSync(join(tree, 'etc/hello'), 'hello from a layer\n');
  const layer = 'base/tiny:1.0.0';
  const args = [CLI, '--json', '--state', state, 'layer', 'import', layer, tree];
  await promisify(execFile)(process.execPath, args);
  rmSync(tree, { recursive: true });
  return layer;
}

const LOG_LENGTH_MAX = 64 * 1024;
const STOP_MS = 20_000;

/** Resolves when the program says on a line of JSON that it is ready. */
async function startProcess(
  [file, ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<ServerProcess> {
  const child = spawn(String(file), args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-LOG_LENGTH_MAX);
  });
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => resolve(signal ?? code ?? -1));
  });
  const ready = await Promise.race([readyLine(child), ended]);
  if (typeof ready !== 'object') throw new Error(`${args.join(' ')}: ended (${ready}): ${log}`);
  return {
    ...{ pid: Number(child.pid), ready, ended, log: () => log },
    kill: (signal) => child.kill(signal),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

function readyLine(child: ChildProcess): Promise<Record<string, unknown>> {
  return new Promise((resolve) => {
    createInterface({ input: child.stdout as Readable }).on('line', (line) => {
      const word = JSON.parse(line) as Record<string, unknown>;
      if (word.ready === true) resolve(word);
    });
  });
}
