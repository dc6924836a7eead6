import type { Duplex } from 'node:stream';
import { AETHER_FRAMES, type AetherFrame, FRAME_VERSION, NONCE_BYTES } from '@dsec/protocol';
import { asDsecError, type Clock, DsecError, type Random, type SandboxId } from '@dsec/std';
import { abortError, createFramedChannel, type FramedChannel } from '@dsec/transport';
import { AGENT_LIMITS, type AgentLimits, type AgentLink } from './agent-link.ts';
import { errorOfAgent } from './agent-streams.ts';
import { createLink } from './create-link.ts';

export interface AgentOptions {
  /** Makes a byte stream to the agent. */
  readonly dial: (signal?: AbortSignal) => Promise<Duplex>;
  readonly sandboxId: SandboxId;
  /** The edge's: an agent that has seen a newer one refuses with `conflict` (I2). */
  readonly epoch: number;
  readonly random: Random;
  readonly clock: Clock;
  readonly limits?: Partial<AgentLimits>;
}

/**
 * Connects to an agent and says hello; an earlier link to the same agent is ended by it. Rejects with what
 * `dial` says, the agent's refusal, `agent-lost` when no welcome comes in time, or `protocol`.
 */
export async function connectAgent(
  options: AgentOptions,
  signal?: AbortSignal,
): Promise<AgentLink> {
  const { dial, clock, epoch, sandboxId } = options;
  const limits = { ...AGENT_LIMITS, ...options.limits };
  const hello = startHelloTimer(clock, limits.helloMs, signal);
  try {
    const duplex = await dial(hello.signal);
    const channel = createFramedChannel(duplex, {
      protocol: AETHER_FRAMES,
      side: 'client',
      clock,
      limits: {
        sendersMax: 2 * limits.streamsMax,
        receiveFramesPerSecondMax: limits.framesPerSecondMax,
      },
    });
    try {
      const nonce = options.random.bytes(NONCE_BYTES);
      const fields = { nonce, versionMax: FRAME_VERSION, sandboxId };
      await channel.send({ type: 'hello', stream: 0, epoch, offset: 0, fields }, hello.signal);
      const welcome = await receiveWelcome(channel, nonce, hello.signal);
      return createLink(channel, { epoch, limits, welcome });
    } catch (thrown) {
      channel.close(asDsecError(thrown));
      throw thrown;
    }
  } finally {
    hello.stop();
  }
}

type Welcome = (AetherFrame & { type: 'welcome' })['fields'];

/** Drops everything before the welcome with our nonce: it may be left from a life before a restore. */
async function receiveWelcome(
  channel: FramedChannel<AetherFrame>,
  nonce: Uint8Array,
  signal: AbortSignal,
): Promise<Welcome> {
  for (;;) {
    const frame = await channel.receive(signal);
    if (frame === undefined) {
      throw new DsecError('unavailable', 'the agent ended the connection before its welcome');
    }
    if (frame.type === 'error' && frame.stream === 0) throw errorOfAgent(frame.fields);
    if (frame.type !== 'welcome' || !Buffer.from(nonce).equals(frame.fields.nonce)) continue;
    if (frame.fields.version === FRAME_VERSION) return frame.fields;
    throw new DsecError('protocol', `the agent speaks version ${frame.fields.version}`);
  }
}

/** One for all: each of its own would cost a stack trace. */
const GREETED = new DsecError('cancelled', 'the agent has said hello');

function startHelloTimer(clock: Clock, ms: number, caller: AbortSignal | undefined) {
  const hello = new AbortController();
  const onAbort = () => hello.abort(abortError(caller));
  if (caller?.aborted) onAbort();
  caller?.addEventListener('abort', onAbort, { once: true });
  clock.sleep(ms, hello.signal).then(
    () => hello.abort(new DsecError('agent-lost', `the agent did not say hello in ${ms} ms`)),
    () => {},
  );
  return {
    signal: hello.signal,
    stop() {
      caller?.removeEventListener('abort', onAbort);
      hello.abort(GREETED);
    },
  };
}
