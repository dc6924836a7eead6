import { setMaxListeners } from 'node:events';
import { DsecError } from '@dsec/std';

/** Runs `work` with a signal that Ctrl-C and SIGTERM abort; a second one ends the process at once. */
export async function withInterrupt<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  // As much work as there is at a time listens to it.
  setMaxListeners(0, controller.signal);
  const abort = () => {
    controller.abort(new DsecError('cancelled', 'interrupted by a signal'));
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

/**
 * For a daemon: aborts at the first SIGTERM or SIGINT, and a second one ends the process at once. With
 * `DSEC_END_WITH_STDIN=1`, as `dsec up` starts its parts, also when standard input ends: a supervisor that
 * was killed takes them along.
 */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort();
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, abort);
  if (process.env.DSEC_END_WITH_STDIN === '1') {
    process.stdin.on('end', abort).on('error', abort).resume();
    // It alone keeps nothing running.
    process.stdin.unref?.();
  }
  return controller.signal;
}
