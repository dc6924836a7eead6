import { asDsecError, type Clock, DsecError, SECOND_MS } from '@dsec/std';
import type { LauncherClient } from './launcher-client.ts';

/**
 * A connection to the launcher that comes back by itself. What was under way when it broke is
 * `unavailable` and has to be asked for again, since nobody knows what was done of it.
 */
export interface LauncherLink {
  /**
   * The live connection. While it is away, waits for it up to `RECONNECT_WAIT_MS`, then `unavailable`;
   * `conflict` for ever once a newer edge has taken over.
   */
  client(signal?: AbortSignal): Promise<LauncherClient>;
  close(): void;
}

export interface LauncherLinkOptions {
  connect(signal: AbortSignal): Promise<LauncherClient>;
  /**
   * Takes up what runs, before anybody else uses the connection. A rejection breaks it off.
   */
  onConnected(client: LauncherClient): Promise<void>;
  readonly clock: Clock;
}

export const RECONNECT_WAIT_MS = 2 * SECOND_MS;
const BACKOFF_MS = { first: 10, max: SECOND_MS };

export function openLauncherLink(options: LauncherLinkOptions): LauncherLink {
  const { clock } = options;
  const closing = new AbortController();
  let current: LauncherClient | undefined;
  let fatal: DsecError | undefined;
  let lastFailure: DsecError | undefined;
  const waiters = new Set<() => void>();

  const wake = () => {
    for (const resume of waiters) resume();
    waiters.clear();
  };

  const connectOnce = async (): Promise<LauncherClient> => {
    const client = await options.connect(closing.signal);
    try {
      await options.onConnected(client);
      return client;
    } catch (thrown) {
      client.close();
      throw thrown;
    }
  };

  const run = async () => {
    let delayMs = BACKOFF_MS.first;
    while (!closing.signal.aborted && fatal === undefined) {
      try {
        const client = await connectOnce();
        current = client;
        delayMs = BACKOFF_MS.first;
        wake();
        lastFailure = await client.closed;
        current = undefined;
      } catch (thrown) {
        lastFailure = asDsecError(thrown);
      }
      if (lastFailure.code === 'conflict') fatal = lastFailure;
      else await clock.sleep(delayMs, closing.signal).catch(() => {});
      delayMs = Math.min(delayMs * 2, BACKOFF_MS.max);
    }
    fatal ??= new DsecError('unavailable', 'the backend is closed');
    wake();
  };
  void run();

  const reconnected = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const give = () => {
        waiters.delete(resolve);
        resolve();
      };
      signal.addEventListener('abort', give, { once: true });
      waiters.add(resolve);
    });

  return {
    async client(signal) {
      if (current !== undefined) return current;
      const limits = [AbortSignal.timeout(RECONNECT_WAIT_MS), ...(signal ? [signal] : [])];
      const limit = AbortSignal.any(limits);
      while (current === undefined) {
        if (fatal !== undefined) throw fatal;
        if (signal?.aborted) throw asDsecError(signal.reason);
        if (limit.aborted) {
          throw new DsecError('unavailable', 'the launcher cannot be reached', {
            cause: lastFailure,
          });
        }
        await reconnected(limit);
      }
      return current;
    },
    close() {
      closing.abort();
      current?.close();
    },
  };
}
