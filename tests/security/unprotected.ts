/** The same hostile program without protections: what shows that it can do what a sandbox keeps it from. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { PROBE } from './security-world.ts';

/** What a probe says of each attempt: the name of the error, or `ok`. */
export type Outcomes = ReadonlyMap<string, string>;

const NAMES = new Map(Object.entries(constants.errno).map(([name, number]) => [number, name]));

export function outcomesOf(text: string): Outcomes {
  const lines = text.split('\n').map((line) => /^(.*) (-?\d+)$/.exec(line));
  return new Map(
    lines.flatMap((match) => {
      if (match === null) return [];
      const [, item = '', number = ''] = match;
      const name = Number(number) === 0 ? 'ok' : (NAMES.get(Number(number)) ?? number);
      return [[item, name] as const];
    }),
  );
}

/** A number that a probe says. */
export function countOf(text: string, item: string): number {
  const found = new RegExp(`^${item} (\\d+)$`, 'm').exec(text)?.[1];
  if (found === undefined) throw new Error(`the probe said no ${item}: ${text.slice(0, 500)}`);
  return Number(found);
}

const SPACES = ['-mpuinC', '--fork', '--kill-child', '--mount-proc'];

/**
 * As root in namespaces of its own, so that the host stays whole, and without user namespace, system call
 * filter, limits and masks. Its PID 1 is the probe, in the place of an agent.
 */
export function runPlain(...words: readonly string[]): string {
  return runHost('unshare', ...SPACES, PROBE, 'plain', ...words);
}

/** As a child of this process, with nothing between. */
export function runHost(...command: readonly string[]): string {
  const [program = '', ...args] = command;
  const options = { encoding: 'utf8', timeout: 60_000, input: '' } as const;
  const { stdout, error } = spawnSync(program, args, { ...options, killSignal: 'SIGKILL' });
  if (error !== undefined) throw error;
  return stdout;
}

export interface Held {
  readonly output: string;
  release(): Promise<void>;
}

/** Holds what it has taken until it is released. */
export async function holdPlain(...words: readonly string[]): Promise<Held> {
  const child: ChildProcess = spawn('unshare', [...SPACES, PROBE, ...words], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  for await (const chunk of child.stdout ?? []) {
    output += String(chunk);
    if (output.includes('held 0')) break;
  }
  return {
    output,
    async release() {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}
