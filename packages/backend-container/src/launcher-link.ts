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

interface LinkState {
  readonly closing: AbortController;
  current: LauncherClient | undefined;
  /** Why there will be no connection any more. */
  fatal: DsecError | undefined;
  lastFailure: DsecError | undefined;
  /** Called once when `current` or `fatal` is set. */
  readonly waiters: Set<() => void>;
}

export function openLauncherLink(options: LauncherLinkOptions): LauncherLink {
  const state: LinkState = {
    closing: new AbortController(),
    current: undefined,
    fatal: undefined,
    lastFailure: undefined,
    waiters: new Set(),
  };
  void keepConnected(state, options);
  return {
    async client(signal) {
      return state.current ?? (await nextClient(state, signal));
    },
    close() {
      state.closing.abort();
      state.current?.close();
    },
  };
}

async function keepConnected(state: LinkState, options: LauncherLinkOptions): Promise<void> {
  const { closing } = state;
  let delayMs = BACKOFF_MS.first;
  while (!closing.signal.aborted && state.fatal === undefined) {
    try {
      const client = await connectOnce(options, closing.signal);
      state.current = client;
      delayMs = BACKOFF_MS.first;
      wake(state);
      state.lastFailure = await client.closed;
      state.current = undefined;
    } catch (thrown) {
      state.lastFailure = asDsecError(thrown);
    }
    if (state.lastFailure.code === 'conflict') state.fatal = state.lastFailure;
    else await options.clock.sleep(delayMs, closing.signal).catch(() => {});
    delayMs = Math.min(delayMs * 2, BACKOFF_MS.max);
  }
  state.fatal ??= new DsecError('unavailable', 'the backend is closed');
  wake(state);
}

async function connectOnce(
  options: LauncherLinkOptions,
  signal: AbortSignal,
): Promise<LauncherClient> {
  const client = await options.connect(signal);
  try {
    await options.onConnected(client);
    return client;
  } catch (thrown) {
    client.close();
    throw thrown;
  }
}

function wake({ waiters }: LinkState): void {
  for (const resume of waiters) resume();
  waiters.clear();
}

async function nextClient(
  state: LinkState,
  signal: AbortSignal | undefined,
): Promise<LauncherClient> {
  const timeout = AbortSignal.timeout(RECONNECT_WAIT_MS);
  const limit = signal === undefined ? timeout : AbortSignal.any([timeout, signal]);
  while (state.current === undefined) {
    if (state.fatal !== undefined) throw state.fatal;
    if (signal?.aborted) throw asDsecError(signal.reason);
    if (limit.aborted) {
      throw new DsecError('unavailable', 'the launcher cannot be reached', {
        cause: state.lastFailure,
      });
    }
    await changed(state, limit);
  }
  return state.current;
}

function changed({ waiters }: LinkState, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const give = () => {
      waiters.delete(resolve);
      resolve();
    };
    signal.addEventListener('abort', give, { once: true });
    waiters.add(resolve);
  });
}
