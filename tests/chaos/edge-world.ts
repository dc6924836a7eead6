/** `dsec edge` as a process of its own on containers, and what the host says of its sandboxes. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { JOURNAL_TABLES, openJournal } from '@dsec/edge';
import { type EdgeState, ROUTES, type Sandbox } from '@dsec/protocol';
import { type SandboxId, systemClock, systemRandom } from '@dsec/std';
import {
  createTicketedClient,
  KEY_ID,
  newTicketKeys,
  type TicketedClient,
} from '../../packages/edge/test/support/ticketed-client.ts';
import type { BackendWorld } from '../integration/backend-container-world.ts';
import { cgroupDirectories } from '../integration/launcher-world.ts';

const CLI = new URL('../../packages/dsec/dist/cli.js', import.meta.url).pathname;

export interface EdgeProcess {
  readonly pid: number;
  /** Where it listens on the loopback. */
  readonly port: number;
  readonly client: TicketedClient;
  /** The signal or exit code that ended it. */
  readonly ended: Promise<string | number | null>;
  readonly isAlive: () => boolean;
  end(signal: NodeJS.Signals): Promise<void>;
}

export interface EdgeHost {
  readonly world: BackendWorld;
  /** Starts a daemon; with a crash point armed it may die at any time, even before it serves. */
  start(options?: {
    readonly crashPoint?: string;
    readonly keepEndedMs?: number;
  }): Promise<EdgeProcess>;
  /** Of this edge, as the kernel has it. */
  lives(): string[];
  /** Rows of a table of the journal, which no daemon has open. */
  rows(table: string): number;
  killAgent(id: SandboxId): void;
  /** Kills the launcher, whoever started it. The next daemon starts another. */
  killLauncher(): void;
  /** Ends what still runs, and removes everything. */
  close(): Promise<void>;
}

export function createEdgeHost(world: BackendWorld): EdgeHost {
  const { stateRoot, edgeId } = world;
  const keys = newTicketKeys();
  const keyFile = join(stateRoot, 'ticket-keys.json');
  const pem = keys.publicKey.export({ type: 'spki', format: 'pem' });
  writeFileSync(keyFile, JSON.stringify({ [KEY_ID]: pem }));
  const groups = () =>
    cgroupDirectories(edgeId).flatMap((directory) =>
      readdirSync(directory)
        .filter((name) => name.startsWith('sb-'))
        .map((name) => join(directory, name)),
    );
  const killLauncher = () => {
    for (const pid of launchersOf(stateRoot)) unlessGone(() => process.kill(pid, 'SIGKILL'));
  };
  return {
    world,
    start: async ({ crashPoint, keepEndedMs = 600_000 } = {}) => {
      const child = spawn(
        process.execPath,
        [
          ...[CLI, '--state', stateRoot, '--json', 'edge', '--edge-id', edgeId],
          ...['--shard-id', 'test', '--listen', '127.0.0.1:0', '--ticket-keys', keyFile],
          ...['--keep-ended-ms', `${keepEndedMs}`, '--log-level', 'error'],
        ],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
          env: { ...process.env, ...(crashPoint && { DSEC_CRASH_POINT: crashPoint }) },
        },
      );
      return processOf(child, edgeId, keys.privateKey);
    },
    lives: () => [...new Set(groups().map((path) => path.replace(/^.*\/(sb-.*)-\d+$/, '$1')))],
    rows(table) {
      const options = { clock: systemClock, random: systemRandom, tables: JOURNAL_TABLES };
      const journal = openJournal(stateRoot, options);
      try {
        return journal.db.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number;
      } finally {
        journal.close();
      }
    },
    killAgent(id) {
      const [group = ''] = groups().filter((path) => path.includes(id));
      const pids = unlessGone(() => readFileSync(join(group, 'cgroup.procs'), 'utf8')) ?? '';
      const [agent] = pids
        .split('\n')
        .map(Number)
        .filter((pid) => pid > 1)
        .sort((a, b) => a - b);
      if (agent !== undefined) unlessGone(() => process.kill(agent, 'SIGKILL'));
    },
    killLauncher,
    async close() {
      killLauncher();
      await world.close();
    },
  };
}

/** What may end at any time is looked at as it is, or not at all. */
function unlessGone<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

/** Processes of a launcher with this state root. */
function launchersOf(stateRoot: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      const words = unlessGone(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))?.split('\0');
      return words?.[0]?.endsWith('dsec-launcher') && words.includes(stateRoot);
    })
    .map(Number);
}

async function processOf(
  child: ChildProcess,
  edgeId: string,
  privateKey: KeyObject,
): Promise<EdgeProcess> {
  const ended = once(child, 'exit').then(([code, signal]) => (signal ?? code) as string | number);
  const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> });
  const ready = once(lines, 'line').then(([line]) => JSON.parse(line as string));
  const first = (await Promise.race([ready, ended])) as { address?: { port: number } } | string;
  const port = typeof first === 'object' ? (first.address?.port ?? 0) : 0;
  const holder = { edge: edgeId, project: 'chaos', principal: 'tester' };
  const client = createTicketedClient(`http://127.0.0.1:${port}`, holder, privateKey);
  return {
    ...{ client, ended, port, pid: child.pid ?? 0 },
    isAlive: () => child.exitCode === null && child.signalCode === null,
    async end(signal) {
      child.kill(signal);
      await ended;
      await client.close();
    },
  };
}

export async function stateOf({ client }: EdgeProcess): Promise<EdgeState['sandboxes']> {
  return (await client.call(ROUTES.getEdgeState, {})).sandboxes;
}

/** All sandboxes once none is on the way from one state to another. */
export async function settledStateOf(edge: EdgeProcess): Promise<EdgeState['sandboxes']> {
  const lasting = ['running', 'paused', 'stopped', 'failed'];
  for (;;) {
    const sandboxes = await stateOf(edge);
    if (sandboxes.every(({ state }) => lasting.includes(state))) return sandboxes;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export const paramsOf = ({ id }: Pick<Sandbox, 'id'>) => ({ sandboxId: id as SandboxId });
