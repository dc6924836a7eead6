/**
 * The links to the agents of an edge's sandboxes: one for each, made again when it is lost.
 */
import type { Duplex } from 'node:stream';
import { type AgentLimits, type AgentLink, connectAgent, type SandboxKey } from '@dsec/backend';
import { asDsecError, type Clock, DsecError, orAborted, type Random, SECOND_MS } from '@dsec/std';
import { abortError } from '@dsec/transport';

export interface AgentsOptions {
  readonly dial: (key: SandboxKey, signal?: AbortSignal) => Promise<Duplex>;
  /** Of the edge's journal. */
  readonly epoch: number;
  readonly random: Random;
  readonly clock: Clock;
  readonly limits?: Partial<AgentLimits>;
  /** How long a lost agent is called before it is given up. Default: 10 s. */
  readonly reconnectMs?: number;
  /**
   * An agent broke the wire (`protocol`), or answers no more (`agent`). For the lifecycle, which ends the
   * sandbox, unless it is paused or ending anyway.
   */
  readonly onFault: (key: SandboxKey, reason: 'protocol' | 'agent', error: DsecError) => void;
}

export interface Agents {
  /**
   * Connects once, without patience: for a sandbox that was just made. The link is kept. Rejects with what
   * the backend's `dial` says, or `agent-lost` when the agent says nothing within five seconds.
   */
  connect(key: SandboxKey, signal?: AbortSignal): Promise<AgentLink>;
  /**
   * The link of a sandbox, made again with growing pauses when it was lost. All callers share one attempt.
   * Rejects with `agent-lost`, `protocol`, or the signal's error.
   */
  link(key: SandboxKey, signal?: AbortSignal): Promise<AgentLink>;
  /** Called with every link that `link` makes, before anybody gets it. */
  onLink(listener: (key: SandboxKey, link: AgentLink) => void): void;
  /** The sandbox is over: its link closes, and none is made again. */
  drop(key: SandboxKey): void;
  /** Closes all links. What runs inside goes on. */
  close(): void;
}

const RECONNECT_MS = 10 * SECOND_MS;
const PAUSE_MS_MIN = 5;
const PAUSE_MS_MAX = SECOND_MS;

/** A link that does not live as long as this counts as a failure of the next. */
const SHORT_LIFE_MS = SECOND_MS;

interface Kept {
  readonly key: SandboxKey;
  /** Links in a row that were lost at once: the next one waits. */
  shortLives: number;
  link?: AgentLink | undefined;
  connecting?: Promise<AgentLink> | undefined;
  readonly stop: AbortController;
}

const closedError = () => new DsecError('cancelled', 'the edge closes');
/** One for all: each of its own would cost a stack trace. */
const SANDBOX_ENDED = new DsecError('agent-lost', 'the sandbox has ended');

export function createAgents(options: AgentsOptions): Agents {
  const kept = new Map<string, Kept>();
  const listeners: ((key: SandboxKey, link: AgentLink) => void)[] = [];
  let isClosed = false;

  const keptOf = (key: SandboxKey): Kept => {
    const name = nameOf(key);
    const known = kept.get(name);
    if (known !== undefined) return known;
    const fresh: Kept = { key, shortLives: 0, stop: new AbortController() };
    if (isClosed) fresh.stop.abort(closedError());
    else kept.set(name, fresh);
    return fresh;
  };
  const close = (sandbox: Kept, why: DsecError) => {
    sandbox.stop.abort(why);
    sandbox.link?.close(why);
    kept.delete(nameOf(sandbox.key));
  };

  return {
    connect(key, signal) {
      const sandbox = keptOf(key);
      const connecting = share(options, sandbox, () => connectOnce(options, sandbox));
      return orAborted(connecting, signal);
    },
    async link(key, signal) {
      const sandbox = keptOf(key);
      if (sandbox.link !== undefined) return sandbox.link;
      const connecting = share(options, sandbox, async () => {
        const link = await reconnect(options, sandbox);
        for (const listener of listeners) listener(key, link);
        return link;
      });
      return orAborted(connecting, signal);
    },
    onLink: (listener) => void listeners.push(listener),
    drop(key) {
      const sandbox = kept.get(nameOf(key));
      if (sandbox !== undefined) close(sandbox, SANDBOX_ENDED);
    },
    close() {
      isClosed = true;
      for (const sandbox of [...kept.values()]) close(sandbox, closedError());
    },
  };
}

/** One attempt for all who wait; it goes on when one of them gives up. */
function share(
  options: AgentsOptions,
  sandbox: Kept,
  attempt: () => Promise<AgentLink>,
): Promise<AgentLink> {
  if (sandbox.connecting !== undefined) return sandbox.connecting;
  const connecting = attempt()
    .then((link) => keep(options, sandbox, link))
    .finally(() => {
      sandbox.connecting = undefined;
    });
  sandbox.connecting = connecting;
  return connecting;
}

/** Keeps the link and hears of its end. */
function keep({ clock, onFault }: AgentsOptions, sandbox: Kept, link: AgentLink): AgentLink {
  if (sandbox.stop.signal.aborted) link.close(abortError(sandbox.stop.signal));
  sandbox.link = link;
  const bornMs = clock.monotonicMs();
  void link.closed.then((error) => {
    if (sandbox.link === link) sandbox.link = undefined;
    const isShort = clock.monotonicMs() - bornMs < SHORT_LIFE_MS;
    sandbox.shortLives = isShort ? sandbox.shortLives + 1 : 0;
    if (error.code === 'protocol') onFault(sandbox.key, 'protocol', error);
  });
  return link;
}

const nameOf = (key: SandboxKey): string => `${key.id}/${key.generation}`;

function connectOnce(options: AgentsOptions, { key, stop }: Kept): Promise<AgentLink> {
  const { epoch, random, clock, limits } = options;
  const dial = (signal?: AbortSignal) => options.dial(key, signal);
  const agent = { dial, sandboxId: key.id, epoch, random, clock };
  return connectAgent(limits === undefined ? agent : { ...agent, limits }, stop.signal);
}

/** Calls until somebody answers. An agent that refuses or breaks the wire is not called again. */
async function reconnect(options: AgentsOptions, sandbox: Kept): Promise<AgentLink> {
  const { clock, reconnectMs = RECONNECT_MS } = options;
  const endMs = clock.monotonicMs() + reconnectMs;
  const { signal } = sandbox.stop;
  let pauseMs = PAUSE_MS_MIN;
  if (sandbox.shortLives > 0) {
    pauseMs = Math.min(PAUSE_MS_MIN * 2 ** sandbox.shortLives, PAUSE_MS_MAX);
    await clock.sleep(pauseMs, signal);
  }
  for (; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    try {
      return await connectOnce(options, sandbox);
    } catch (thrown) {
      const error = asDsecError(thrown);
      if (signal.aborted) throw abortError(signal);
      if (error.code === 'protocol') options.onFault(sandbox.key, 'protocol', error);
      const isHopeless = error.code !== 'unavailable' && error.code !== 'agent-lost';
      if (isHopeless || clock.monotonicMs() + pauseMs > endMs) {
        const lost = new DsecError('agent-lost', 'the agent does not answer', { cause: error });
        if (error.code !== 'protocol') options.onFault(sandbox.key, 'agent', lost);
        throw error.code === 'protocol' ? error : lost;
      }
    }
    await clock.sleep(pauseMs, signal);
  }
}
