import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DsecError } from '@dsec/std';
import type { Invocation } from '../command-line/invocation.ts';

/** In the repository, beside the packages. */
const RUNNER = join(import.meta.dirname, '../../../../bench/dist/run.js');
const SIGNAL_BASE = 128;

export async function run({ args, json }: Invocation): Promise<void> {
  if (!existsSync(RUNNER)) {
    throw new DsecError(
      'unsupported',
      'the benchmarks are in the repository, built by npm start; this installation has none',
    );
  }
  const words = args[0] === '--' ? args.slice(1) : args;
  const child = spawn(process.execPath, [RUNNER, ...words, ...(json ? ['--json'] : [])], {
    stdio: 'inherit',
  });
  // Ctrl-C reaches it by the terminal; we wait for what it does with it.
  const ignore = () => undefined;
  process.on('SIGINT', ignore);
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  process.removeListener('SIGINT', ignore);
  process.exitCode = code ?? SIGNAL_BASE + (signal === 'SIGINT' ? 2 : 15);
}
