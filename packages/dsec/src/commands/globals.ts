import type { Command } from 'commander';
import { resolveStatePaths, type StatePaths } from '../config.ts';

export interface GlobalOptions {
  readonly paths: StatePaths;
  readonly json: boolean;
}

/** The options that stand before every command. */
export function globalOptions(command: Command): GlobalOptions {
  const options = command.optsWithGlobals<{ state?: string; json?: boolean }>();
  return { paths: resolveStatePaths(options.state), json: options.json === true };
}

/** Runs `work` with a signal that Ctrl-C and SIGTERM abort; a second one ends the process at once. */
export async function withInterrupt<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const abort = () => {
    controller.abort();
    process.removeListener('SIGINT', abort);
    process.removeListener('SIGTERM', abort);
  };
  process.on('SIGINT', abort);
  process.on('SIGTERM', abort);
  try {
    return await work(controller.signal);
  } finally {
    process.removeListener('SIGINT', abort);
    process.removeListener('SIGTERM', abort);
  }
}
