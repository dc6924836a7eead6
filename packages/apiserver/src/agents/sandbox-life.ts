/** Keys that hold while a sandbox lives: what the watcher last saw decides. */
import {
  asDsecError,
  type Clock,
  DsecError,
  isEndState,
  parseSandboxId,
  SECOND_MS,
} from '@dsec/std';
import type { Watcher } from '@dsec/watcher';

/** A sandbox that was just made is not seen yet. */
const UNSEEN_MS = 10 * SECOND_MS;

export interface SandboxLife {
  /** Certainly: it was seen so. */
  hasEnded(sandbox: string): boolean;
  /**
   * Throws `unauthenticated` where the sandbox of a key has ended, or is not there any more, and
   * `unavailable` while nobody can say.
   */
  requireLive(sandbox: string, keyCreatedAtMs: number): void;
}

export function createSandboxLife(watcher: () => Pick<Watcher, 'edge'>, clock: Clock): SandboxLife {
  const viewOf = (sandbox: string) => watcher().edge(parseSandboxId(sandbox).edge);
  return {
    hasEnded(sandbox) {
      const view = viewOf(sandbox);
      if (view === undefined || view.error !== undefined) return false;
      const seen = view.sandboxes.get(sandbox);
      return seen !== undefined && isEndState(seen.state);
    },
    requireLive(sandbox, keyCreatedAtMs) {
      const view = viewOf(sandbox);
      if (view === undefined || view.error !== undefined) {
        throw new DsecError(
          'unavailable',
          'whether the sandbox of this key lives is not known now',
          {
            cause: view?.error === undefined ? undefined : asDsecError(view.error),
          },
        );
      }
      const seen = view.sandboxes.get(sandbox);
      if (seen !== undefined && !isEndState(seen.state)) return;
      if (seen === undefined && clock.wallMs() - keyCreatedAtMs < UNSEEN_MS) return;
      throw new DsecError('unauthenticated', 'the request carries no valid API key');
    },
  };
}
