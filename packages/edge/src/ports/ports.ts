import type { AgentStream, StreamFrame } from '@dsec/backend';
import { DsecError, orAborted, type SandboxId } from '@dsec/std';
import type { WebSocketChannel } from '@dsec/transport';
import type { Agents } from '../exec/agents.ts';
import { agentError, broken } from '../files/file-agent.ts';
import { type OperationContext, traceBytes } from '../operation.ts';
import type { Sandboxes } from '../sandboxes.ts';

export interface PortsOptions {
  readonly sandboxes: Sandboxes;
  readonly agents: Pick<Agents, 'link'>;
}

/**
 * Connections to ports inside sandboxes. The agent connects, to the sandbox's own loopback and nothing else;
 * no name and no address ever comes from a caller (THREATS D6).
 */
export interface Ports {
  /**
   * Joins a WebSocket with a connection to a port. Binary messages are its bytes; an empty one ends its
   * sender's direction, and the other goes on. Returns when both directions have ended, or when the caller
   * has closed the WebSocket, which closes the connection. Each side is read only as fast as the other takes
   * it. `unavailable` when nothing listens.
   */
  connect(
    id: SandboxId,
    port: number,
    channel: WebSocketChannel,
    context: OperationContext,
  ): Promise<void>;
}

const END = new Uint8Array(0);

export function createPorts({ sandboxes, agents }: PortsOptions): Ports {
  return {
    async connect(id, port, channel, { signal, traceparent }) {
      const entry = await sandboxes.requireRunning(id, { signal });
      const link = await agents.link(entry.key, signal);
      const stream = link.open();
      const release = sandboxes.hold(entry);
      const stop = new AbortController();
      const onAbort = () => stop.abort(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
      try {
        const fields = { port, trace: traceBytes(traceparent) };
        await orAborted(stream.send('port-open', fields), stop.signal);
        const inward = carryIn(channel, stream, stop.signal);
        const outward = carryOut(stream, channel, stop.signal).then((end) => {
          if (end !== 'done') throw broken(link, `${end} on the stream of a port`);
        });
        // The one that is stopped rejects, and nobody waits for it any more.
        inward.catch(() => {});
        outward.catch(() => {});
        await Promise.race([outward, inward]);
      } catch (thrown) {
        throw agentError(thrown);
      } finally {
        signal.removeEventListener('abort', onAbort);
        stop.abort(new DsecError('cancelled', 'the connection has ended'));
        stream.leave({ cancel: true });
        release();
      }
    },
  };
}

/** Returns when the caller has closed the WebSocket. */
async function carryIn(
  channel: WebSocketChannel,
  stream: AgentStream,
  signal: AbortSignal,
): Promise<void> {
  let hasEnded = false;
  for (;;) {
    const message = await channel.receive(signal);
    if (message === undefined) return;
    if (typeof message === 'string') {
      throw new DsecError('invalid-argument', 'the bytes of a port are binary messages');
    }
    if (hasEnded) throw new DsecError('invalid-argument', 'bytes after the end of this direction');
    if (message.byteLength > 0) await stream.write(message, signal);
    else {
      hasEnded = true;
      await stream.endInput();
    }
  }
}

/** The frame that ends the connection. */
async function carryOut(
  stream: AgentStream,
  channel: WebSocketChannel,
  signal: AbortSignal,
): Promise<StreamFrame['type']> {
  for (;;) {
    const frame = await stream.receive(signal);
    if (frame.type !== 'stdout') return frame.type;
    if (frame.data.byteLength > 0) await channel.send(frame.data, signal);
    if (frame.end) await channel.send(END, signal);
  }
}
