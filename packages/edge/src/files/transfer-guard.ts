import { DsecError, MINUTE_MS, SECOND_MS } from '@dsec/std';
import { abortError } from '@dsec/transport';

/** How long an agent may do nothing at all while it is waited for. */
export const STALL_MS = MINUTE_MS;
const USE_EVERY_MS = SECOND_MS;

/** Watches over a transfer of any length: it has no deadline, but each of its steps has one. */
export interface TransferGuard {
  /** Aborts when the caller gives up, and with `deadline-exceeded` when a step takes too long. */
  readonly signal: AbortSignal;
  /** Waits for a step of the agent, no longer than for the signal. One at a time. */
  step<T>(work: Promise<T>): Promise<T>;
  /** Ends the transfer for another reason. */
  fail(error: DsecError): void;
  /** Releases the timer and the caller's signal. */
  stop(): void;
}

/** `onUse` is told of progress, at most once a second: a sandbox that moves bytes is not idle. */
export function createTransferGuard(
  caller: AbortSignal | undefined,
  onUse: () => void,
  stallMs: number = STALL_MS,
): TransferGuard {
  const controller = new AbortController();
  let giveUp: ((reason: unknown) => void) | undefined;
  const abort = (reason: DsecError) => {
    controller.abort(reason);
    giveUp?.(reason);
  };
  const onAbort = () => abort(abortError(caller));
  if (caller?.aborted) onAbort();
  else caller?.addEventListener('abort', onAbort, { once: true });
  let usedMs = performance.now();
  const timer = setTimeout(() => {
    if (giveUp === undefined) return;
    abort(new DsecError('deadline-exceeded', `nothing came from the sandbox for ${stallMs} ms`));
  }, stallMs);
  timer.unref();

  return {
    signal: controller.signal,
    step: (work) =>
      new Promise((resolve, reject) => {
        const settle = () => {
          giveUp = undefined;
          const nowMs = performance.now();
          if (nowMs - usedMs < USE_EVERY_MS) return;
          usedMs = nowMs;
          onUse();
        };
        work.then(settle, settle);
        work.then(resolve, reject);
        if (controller.signal.aborted) return reject(controller.signal.reason);
        giveUp = reject;
        timer.refresh();
      }),
    fail: abort,
    stop() {
      clearTimeout(timer);
      caller?.removeEventListener('abort', onAbort);
    },
  };
}
