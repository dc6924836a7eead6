/** The command as a person starts it, against a server of its own. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { CLI } from './server-world.ts';

export interface Ended {
  /** Exit code, or the signal that ended it. */
  readonly end: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves when standard output holds the text, behind another one if that is given. */
  said(text: string, behind?: string): Promise<void>;
}

export interface CliOptions {
  readonly input?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
  /** Leaves standard input open. */
  readonly open?: boolean;
  readonly cwd?: string;
}

export interface Cli {
  run(args: readonly string[], options?: CliOptions): Promise<Ended>;
  start(args: readonly string[], options?: CliOptions): Running;
  /** Its one JSON document. */
  json<T = unknown>(...args: readonly string[]): Promise<T>;
}

/** `--state` goes in front of every command. */
export function cliOf(state: string): Cli {
  const start = (args: readonly string[], options: CliOptions = {}) =>
    startProgram([process.execPath, CLI, '--state', state, ...args], options);
  const run = (args: readonly string[], options?: CliOptions) => start(args, options).ended;
  return {
    run,
    start,
    async json<T>(...args: readonly string[]) {
      const { end, stdout, stderr } = await run(['--json', ...args]);
      try {
        return JSON.parse(stdout) as T;
      } catch {
        throw new Error(`dsec ${args.join(' ')} ended with ${end} and no document: ${stderr}`);
      }
    },
  };
}

/** Any program, with its output taken as text. */
export function startProgram(
  [file = '', ...args]: readonly string[],
  options: CliOptions,
): Running {
  const { input, open = false, env = {}, cwd } = options;
  const settings: SpawnOptions = {
    stdio: [input === undefined && !open ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
    ...(cwd === undefined ? {} : { cwd }),
  };
  const child = spawn(file, args, settings);
  const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  child.stdout?.on('data', (bytes: Buffer) => chunks.stdout.push(bytes));
  child.stderr?.on('data', (bytes: Buffer) => chunks.stderr.push(bytes));
  child.stdin?.on('error', () => undefined);
  if (input !== undefined) child.stdin?.end(input);
  const text = (name: 'stdout' | 'stderr') => Buffer.concat(chunks[name]).toString('latin1');
  const ended = once(child, 'close').then(([code, signal]) => ({
    ...{ end: signal ?? code, stdout: utf8(text('stdout')), stderr: utf8(text('stderr')) },
  }));
  return {
    ...{ child, ended },
    async said(wanted, behind = '') {
      const isSaid = (all: string) => {
        const at = all.indexOf(behind);
        return at >= 0 && all.includes(wanted, at + behind.length);
      };
      while (!isSaid(text('stdout'))) {
        if (child.exitCode !== null) throw new Error(`ended without a word: ${text('stderr')}`);
        await Promise.race([once(child.stdout as never, 'data'), ended]);
      }
    },
  };
}

const utf8 = (latin1: string) => Buffer.from(latin1, 'latin1').toString('utf8');
