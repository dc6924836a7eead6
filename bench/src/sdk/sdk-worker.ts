/**
 * A client with the TypeScript SDK in a process of its own, before `dsec up`: an apiserver and an edge, each
 * a process of its own as well, on real containers.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client, type CreateOptions, type Sandbox } from '@dsec/libdsec';
import { parseEdgeId } from '@dsec/std';
import { REPOSITORY } from '../base-layer.ts';
import { type EdgeNode, openEdgeNode, until } from '../edge/edge-node.ts';
import { type LifeTimes, type LivesResult, runLives } from '../lives.ts';

export interface SdkWorkerOptions {
  readonly edgeId: string;
  readonly storeRoot: string;
  readonly layers: readonly string[];
  readonly limits: CreateOptions['limits'];
}

/** Processor time so far, in milliseconds. */
export interface SdkCost {
  readonly clientMs: number;
  readonly apiserverMs: number;
  readonly edgeMs: number;
}

export interface StdoutResult {
  readonly wallMs: number;
  /** The most memory that each has ever had. */
  readonly clientRssBytes: number;
  readonly apiserverRssBytes: number;
  readonly edgeRssBytes: number;
}

export type SdkCommands = {
  lives(input: { readonly count: number; readonly inFlight: number }): Promise<LivesResult>;
  /** Times of `true`, one after the other, in one sandbox. */
  trueMs(input: { readonly count: number }): Promise<readonly number[]>;
  /** A program writes so much, and the client reads all of it by `stream` or `output`. */
  stdout(input: {
    readonly bytes: number;
    readonly by: 'stream' | 'output';
  }): Promise<StdoutResult>;
  cost(): SdkCost;
  /** Resolves when nothing is left of any sandbox. */
  settle(): Promise<void>;
};

const CLI = join(REPOSITORY, 'packages/dsec/dist/cli.js');

export async function openSdkWorker(options: SdkWorkerOptions, signal: AbortSignal) {
  const node = await openEdgeNode(parseEdgeId(options.edgeId), options.storeRoot);
  let up: Up | undefined;
  try {
    up = await startUp(node, options.edgeId);
    return commandsOf(options, node, up, signal);
  } catch (thrown) {
    await up?.stop();
    await node.remove();
    throw thrown;
  }
}

interface Up {
  readonly url: string;
  readonly apiKey: string;
  readonly pids: { readonly edge: number; readonly apiserver: number };
  stop(): Promise<void>;
}

async function startUp({ stateRoot }: EdgeNode, edgeId: string): Promise<Up> {
  const listen = `unix:${join(stateRoot, 'api.sock')}`;
  const args = ['up', '--json', '--state', stateRoot, '--edge-id', edgeId, '--listen', listen];
  // It ends with this process, in whatever way that goes.
  const child = spawn(process.execPath, [CLI, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, DSEC_END_WITH_STDIN: '1' },
  });
  const { pids, clientFile } = JSON.parse(await firstLine(child));
  const { url, apiKey } = JSON.parse(readFileSync(clientFile, 'utf8'));
  return {
    ...{ url, apiKey, pids },
    async stop() {
      const ended = once(child, 'exit');
      if (child.exitCode !== null || !child.kill('SIGTERM')) return;
      await ended;
    },
  };
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    if (child.stdout === null) return reject(new Error('dsec up has no output'));
    createInterface({ input: child.stdout })
      .once('line', resolve)
      .once('close', () => reject(new Error('dsec up has ended')));
  });
}

function commandsOf(options: SdkWorkerOptions, node: EdgeNode, up: Up, signal: AbortSignal) {
  const client = new Client({ url: up.url, apiKey: up.apiKey });
  const create = { layers: options.layers, limits: options.limits };
  const settle = () => until('sandboxes leave nothing', () => node.leftovers().length === 0);
  const commands: SdkCommands = {
    lives: (input) => runLives(input, () => live(client, create), signal),
    trueMs: ({ count }) => inSandbox(client, create, (sandbox) => trueMs(sandbox, count, signal)),
    stdout: (input) => inSandbox(client, create, (sandbox) => readMuch(sandbox, input, up.pids)),
    cost: () => costOf(up.pids),
    settle,
  };
  const close = async () => {
    await client.close();
    await up.stop();
    const left = await settle().catch((error: unknown) => error);
    await node.remove();
    if (left !== undefined) throw left;
  };
  return { commands, close };
}

async function live(client: Client, create: CreateOptions): Promise<LifeTimes> {
  const started = performance.now();
  const sandbox = await client.create(create);
  const readyMs = performance.now() - started;
  await sandbox.exec(['/bin/true'], { check: true });
  const firstCommandMs = performance.now() - started;
  await sandbox.stop();
  const stopMs = performance.now() - started - firstCommandMs;
  return { allocatedMs: sandbox.info.timings.allocatedMs, readyMs, firstCommandMs, stopMs };
}

async function inSandbox<T>(
  client: Client,
  create: CreateOptions,
  work: (sandbox: Sandbox) => Promise<T>,
): Promise<T> {
  const sandbox = await client.create(create);
  try {
    return await work(sandbox);
  } finally {
    await sandbox.stop();
  }
}

async function trueMs(sandbox: Sandbox, count: number, signal: AbortSignal): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count && !signal.aborted; index += 1) {
    const started = performance.now();
    await sandbox.exec(['/bin/true'], { check: true });
    times.push(performance.now() - started);
  }
  return times;
}

async function readMuch(
  sandbox: Sandbox,
  { bytes, by }: Parameters<SdkCommands['stdout']>[0],
  pids: Up['pids'],
): Promise<StdoutResult> {
  const argv = ['/bin/dd', 'if=/dev/zero', 'bs=1M', `count=${bytes / 2 ** 20}`, 'status=none'];
  const started = performance.now();
  const command = await sandbox.start(argv, { maxOutputBytes: bytes });
  let received = 0;
  if (by === 'output') {
    for await (const piece of command.output()) received += piece.byteLength;
  } else {
    for await (const { data } of command.stream()) received += data.byteLength;
  }
  const wallMs = performance.now() - started;
  if (received !== bytes) throw new Error(`${received} of ${bytes} bytes came`);
  return {
    ...{ wallMs, clientRssBytes: peakRssBytes('self') },
    ...{ apiserverRssBytes: peakRssBytes(pids.apiserver), edgeRssBytes: peakRssBytes(pids.edge) },
  };
}

function peakRssBytes(pid: number | 'self'): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(text)?.[1]) * 1024;
}

function costOf({ apiserver, edge }: Up['pids']): SdkCost {
  const { user, system } = process.cpuUsage();
  return {
    clientMs: (user + system) / 1000,
    apiserverMs: processCpuMs(apiserver),
    edgeMs: processCpuMs(edge),
  };
}

/** Clock ticks are 10 ms on every kernel that we run on. */
const TICK_MS = 10;

function processCpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
