/**
 * git on objects that strangers made. No configuration, hook, attribute, replacement or remote of theirs
 * counts: git runs in a repository of our own, which sees theirs as a place of objects alone.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DsecError, MINUTE_MS } from '@dsec/std';

const TIME_MAX_MS = 30 * MINUTE_MS;
const ERROR_LENGTH_MAX = 2000;
const SETTINGS = {
  ...{ 'core.hooksPath': '/dev/null', 'protocol.allow': 'never', 'core.fsmonitor': 'false' },
  ...{ 'core.attributesFile': '/dev/null', 'gc.auto': '0', 'maintenance.auto': 'false' },
  ...{ 'core.commitGraph': 'false', 'core.multiPackIndex': 'false', 'safe.directory': '*' },
};

export interface Git {
  /** Of the repository. */
  readonly directory: string;
  /** Runs to its end. Throws `import-invalid` with what git said. */
  run(args: readonly string[], input?: string): Promise<void>;
  /** What it writes, as it comes. Throws at the end as `run`. */
  read(args: readonly string[], input?: string): AsyncGenerator<Buffer>;
  /** The lines of what it writes. */
  lines(args: readonly string[], input?: string): AsyncGenerator<string>;
  remove(): Promise<void>;
}

export interface GitOptions {
  readonly format: 'sha1' | 'sha256';
  /** Another repository's objects, to read. */
  readonly objects?: string;
  /** Commits whose parents are not there. */
  readonly shallow?: string | undefined;
}

/** An empty repository of our own in the temporary directory. `unsupported` without git. */
export async function openGit({ format, objects, shallow }: GitOptions): Promise<Git> {
  const directory = await mkdtemp(join(tmpdir(), 'dsec-git-'));
  const env = environment(objects);
  const read = (args: readonly string[], input = '') =>
    outputOf(start(['--git-dir', directory, ...args], env), input);
  const run = async (args: readonly string[], input?: string) => {
    for await (const _ of read(args, input));
  };
  const init = ['init', '-q', '--bare', '--template=', `--object-format=${format}`, directory];
  try {
    for await (const _ of outputOf(start(init, environment(undefined)), ''));
    if (shallow !== undefined) await writeFile(join(directory, 'shallow'), shallow);
  } catch (thrown) {
    await rm(directory, { recursive: true, force: true });
    throw thrown;
  }
  return {
    ...{ directory, run, read },
    lines: (args, input) => linesOf(read(args, input)),
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

function environment(objects: string | undefined): Record<string, string> {
  const settings = Object.entries(SETTINGS).flatMap(([name, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, name],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return {
    ...{ PATH: process.env.PATH ?? '/usr/bin:/bin', HOME: '/nonexistent', LC_ALL: 'C' },
    ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', GIT_ATTR_NOSYSTEM: '1' },
    ...{ GIT_NO_REPLACE_OBJECTS: '1', GIT_NO_LAZY_FETCH: '1', GIT_TERMINAL_PROMPT: '0' },
    GIT_CONFIG_COUNT: String(Object.keys(SETTINGS).length),
    ...Object.fromEntries(settings),
    ...(objects === undefined ? {} : { GIT_ALTERNATE_OBJECT_DIRECTORIES: objects }),
  };
}

const start = (args: readonly string[], env: Record<string, string>): ChildProcess =>
  spawn('git', args, { env, cwd: '/', stdio: ['pipe', 'pipe', 'pipe'], timeout: TIME_MAX_MS });

async function* outputOf(child: ChildProcess, input: string): AsyncGenerator<Buffer> {
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null) return;
  let said = '';
  stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-ERROR_LENGTH_MAX);
  });
  const ended = once(child, 'close').catch((cause) => {
    throw new DsecError('unsupported', 'this needs git, which cannot be started', { cause });
  });
  ended.catch(() => undefined);
  // It may end before it has read all; then it says why.
  stdin.on('error', () => undefined).end(input);
  try {
    for await (const chunk of stdout) yield chunk as Buffer;
  } finally {
    stdout.destroy();
  }
  const [code, signal] = await ended;
  if (code === 0) return;
  throw new DsecError('import-invalid', `git ended with ${code ?? signal}: ${said.trim()}`);
}

async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + chunk.toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}
