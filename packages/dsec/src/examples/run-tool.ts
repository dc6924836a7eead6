import { spawn } from 'node:child_process';
import { DsecError } from '@dsec/std';

const STDERR_BYTES_MAX = 16_384;

export interface ToolOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** What to install when the program is missing. */
  readonly debianPackage: string;
}

/**
 * Runs a program of the host to its end. Throws `unsupported` when it is missing and `internal`
 * when it fails.
 */
export function runTool(
  file: string,
  args: readonly string[],
  options: ToolOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-STDERR_BYTES_MAX);
    });
    child.on('error', (cause) => reject(startFailure(file, options.debianPackage, cause)));
    child.on('close', (code, signal) => {
      if (code === 0) return resolve();
      const end = signal === null ? `exit code ${code}` : `signal ${signal}`;
      reject(new DsecError('internal', `${file} failed with ${end}: ${stderr.trim()}`));
    });
  });
}

function startFailure(file: string, debianPackage: string, cause: Error): DsecError {
  if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') {
    return new DsecError('internal', `${file} could not be started`, { cause });
  }
  return new DsecError(
    'unsupported',
    `${file} is not installed: apt-get install ${debianPackage}`,
    {
      cause,
    },
  );
}
