/** One server as a user has it: `dsec up` in processes of its own, with a base and an environment. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client } from '@dsec/libdsec';
import type { BaseAdditions } from '../integration/backend-container-base.ts';
import {
  type BackendWorld,
  openBackendWorld,
  openSharedStore,
  type SharedStore,
} from '../integration/backend-container-world.ts';
import type { ScenarioVariables } from './typescript-runner.ts';

/** The command as a person starts it: the built program. */
export const CLI = fileURLToPath(new URL('../../packages/dsec/dist/cli.js', import.meta.url));
const ENVIRONMENT = 'example';
const LAYER = 'base/small:1.0.0';

export interface ServerWorld {
  readonly variables: ScenarioVariables;
  readonly state: string;
  /** Of what runs: see `dsec up --json`. */
  readonly pids: { readonly edge: number; readonly apiserver: number };
  /** Of `dsec up` itself. */
  readonly upPid: number;
  /** What the parts have written. */
  logs(): string;
  stop(): Promise<void>;
}

export interface WorldOptions {
  readonly backend: 'sim' | 'container';
  readonly base?: BaseAdditions;
}

export async function startServerWorld({ backend, base }: WorldOptions): Promise<ServerWorld> {
  const shared = await openSharedStore({
    ...base,
    programs: ['echo', ...(base?.programs ?? [])],
  });
  const node = backend === 'container' ? await openNode(shared) : undefined;
  const remove = async () => {
    await node?.close();
    shared.remove();
  };
  try {
    return await startUp({ backend, state: shared.directory, edgeId: node?.edgeId, remove });
  } catch (thrown) {
    await remove();
    throw thrown;
  }
}

/** A launcher that ends with the tests: those of `dsec up` outlive it. */
async function openNode(shared: SharedStore): Promise<BackendWorld> {
  const world = await openBackendWorld(shared);
  await world.backend.close();
  return world;
}

interface UpSettings {
  readonly backend: WorldOptions['backend'];
  readonly state: string;
  readonly edgeId: string | undefined;
  readonly remove: () => Promise<void>;
}

async function startUp({ backend, state, edgeId, remove }: UpSettings): Promise<ServerWorld> {
  const args = [
    ...['--state', state, '--backend', backend, '--listen', `unix:${join(state, 'api.sock')}`],
    ...(edgeId === undefined ? [] : ['--edge-id', edgeId]),
  ];
  const up = spawn(process.execPath, [CLI, 'up', '--json', ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // It ends with this process, in whatever way that goes.
    env: { ...process.env, DSEC_END_WITH_STDIN: '1' },
  });
  const ready = await firstLine(up);
  if (ready === undefined) throw new Error('dsec up has ended');
  const { pids, logs, clientFile } = JSON.parse(ready);
  const { url, apiKey } = JSON.parse(readFileSync(clientFile, 'utf8'));
  const client = new Client({ url, apiKey });
  await client.environments.put(ENVIRONMENT, [LAYER]);
  await client.close();
  return {
    ...{ state, pids, upPid: up.pid ?? 0 },
    variables: {
      ...{ url, backend, api_key: apiKey, environment: ENVIRONMENT, layer: LAYER },
      tar: makeTar(state),
    },
    logs: () => execFileSync('sh', ['-c', `cat '${logs}'/*.log`], { encoding: 'utf8' }),
    async stop() {
      const ended = once(up, 'exit');
      up.kill('SIGTERM');
      await ended;
      await remove();
    },
  };
}

function firstLine(child: ChildProcess): Promise<string | undefined> {
  return new Promise((resolve) => {
    if (child.stdout === null) return resolve(undefined);
    createInterface({ input: child.stdout })
      .once('line', resolve)
      .once('close', () => resolve(undefined));
  });
}

function makeTar(root: string): string {
  const tree = join(root, 'tree');
  mkdirSync(tree);
  writeFileSync(join(tree, 'file'), 'in a layer\n');
  const tar = join(root, 'small.tar');
  execFileSync('tar', ['-cf', tar, '-C', tree, 'file']);
  return tar;
}
