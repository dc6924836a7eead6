/** The Python job of `examples/training`, as a trainer would start it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DsecError } from '@dsec/std';

const REPOSITORY = fileURLToPath(new URL('../../../../', import.meta.url));
const PYTHON = join(REPOSITORY, '.venv/bin/python');
const SCRIPT = join(REPOSITORY, 'examples/training/job.py');
const SIGNAL_BASE = 128;

export interface TrainingJobOptions {
  readonly environment: string;
  readonly sandboxes: number;
  /** Where it finds server and key. */
  readonly clientFile: string;
  readonly signal: AbortSignal;
}

/** Runs it on our own terminal. Resolves with its exit code. */
export async function runTrainingJob(options: TrainingJobOptions): Promise<number> {
  const { environment, sandboxes, clientFile, signal } = options;
  if (!existsSync(PYTHON)) {
    throw new DsecError('unsupported', 'the Python environment is missing: npm start makes it');
  }
  const args = [SCRIPT, '--environment', environment, '--sandboxes', String(sandboxes)];
  const { DSEC_URL: _url, DSEC_API_KEY: _key, ...env } = process.env;
  const child = spawn(PYTHON, args, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...env, DSEC_CLIENT: clientFile, PYTHONDONTWRITEBYTECODE: '1' },
  });
  // Ctrl-C on the terminal reaches it as well; a signal to us alone must be passed on.
  const end = () => child.kill('SIGTERM');
  signal.addEventListener('abort', end, { once: true });
  try {
    const [code, name] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    signal.throwIfAborted();
    return code ?? SIGNAL_BASE + (name === 'SIGKILL' ? 9 : 15);
  } finally {
    signal.removeEventListener('abort', end);
  }
}
