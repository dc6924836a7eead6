import type { Command } from '@dsec/libdsec';
import { DsecError } from '@dsec/std';
import { printWarning } from '../output.ts';

/** What a shell adds to the number of a signal. */
const SIGNAL_BASE = 128;

/**
 * The exit code of a command that has ended, as a shell gives it: its own, or 128 and the number of the
 * signal. One that never ran, or whose end nobody knows, is an error.
 */
export function exitCodeOf({ id, info, error }: Command): number {
  if (info.exit !== undefined) {
    const { exitCode, signal, timedOut, oomKilled } = info.exit;
    if (timedOut) printWarning('the command was ended: its time was up');
    if (oomKilled) printWarning('the command was ended: the sandbox has no more memory');
    return exitCode ?? SIGNAL_BASE + (signal ?? 0);
  }
  throw error ?? new DsecError('agent-lost', `how the command ${id} ended is not known`);
}
