import { DsecError, KIB, MIB, SECOND_MS } from '@dsec/std';
import type { WebSocket } from 'ws';
import { createInbox, type Inbox, takeAll } from './inbox.ts';
import { createOutbox } from './outbox.ts';
import { CLOSE_NORMAL, closeCodeOf, closeReasonOf, errorOfClose } from './websocket-codes.ts';

export interface WebSocketLimits {
  /** Longest message of the peer; a longer one closes the channel as `too-large`. */
  readonly messageBytesMax: number;
  /** Bytes handed to the connection that it has not written; further sends wait. */
  readonly sendBytesMax: number;
  readonly sendersMax: number;
  /** Messages, and their bytes, received and not taken: then the connection is paused. */
  readonly receiveMessagesMax: number;
  readonly receiveBytesMax: number;
  /** A peer that gives no sign of life for one to two times this long is `unavailable`. */
  readonly pingMs: number;
  /** How long the peer may take to answer a close. */
  readonly closeMs: number;
}

export const WEBSOCKET_LIMITS: WebSocketLimits = {
  messageBytesMax: 256 * KIB,
  sendBytesMax: MIB,
  sendersMax: 1024,
  receiveMessagesMax: 1024,
  receiveBytesMax: MIB,
  pingMs: 20 * SECOND_MS,
  closeMs: 5 * SECOND_MS,
};

/** Bytes are a binary message, a string is a text message. */
export type WebSocketMessage = Uint8Array | string;

/** Messages over a WebSocket, with backpressure and bounded memory in both directions. */
export interface WebSocketChannel {
  /**
   * Sends a message after those before it; waits while the connection takes no more. Rejects with
   * `overloaded`, the signal's error, or what ended the channel.
   */
  send(message: WebSocketMessage, signal?: AbortSignal): Promise<void>;
  /** The next message; `undefined` after a normal close. Rejects with what else ended the channel. */
  receive(signal?: AbortSignal): Promise<WebSocketMessage | undefined>;
  /** Everything that `receive` gives. Leaving the loop does not close the channel. */
  messages(): AsyncIterable<WebSocketMessage>;
  /** Says goodbye, with the error if there is one, and resolves when the connection is gone. */
  close(error?: DsecError): Promise<void>;
  /** Resolves once the connection is gone: with what ended it, `undefined` after a normal close. */
  readonly closed: Promise<DsecError | undefined>;
  /** Handed to the connection and not written yet. */
  readonly sendBytes: number;
}

/** Takes over an open WebSocket. */
export function createWebSocketChannel(
  socket: WebSocket,
  limits: WebSocketLimits,
): WebSocketChannel {
  const inbox = createInbox<WebSocketMessage>({
    itemsMax: limits.receiveMessagesMax,
    bytesMax: limits.receiveBytesMax,
    pause: () => socket.pause(),
    resume: () => socket.resume(),
  });
  const life = watchLife(socket, limits.pingMs, inbox, (error) => {
    failure ??= error;
    socket.terminate();
  });
  const outbox = createOutbox<WebSocketMessage>({
    bytesMax: limits.sendBytesMax,
    sendersMax: limits.sendersMax,
    write(message, done) {
      const isBinary = typeof message !== 'string';
      socket.send(message, { binary: isBinary }, (error) => {
        life.seen();
        done(error);
      });
      return isBinary ? message.byteLength : Buffer.byteLength(message);
    },
  });
  let failure: DsecError | undefined;
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    life.seen();
    inbox.push(isBinary ? data : data.toString('utf8'), data.byteLength);
  });
  socket.on('error', (cause) => {
    failure ??= errorOfFault(cause);
  });
  const closed = new Promise<DsecError | undefined>((resolve) => {
    socket.once('close', (code: number, reason: Buffer) => {
      life.stop();
      const error = failure ?? errorOfClose(code, reason.toString('utf8'));
      inbox.end(error);
      outbox.fail(error ?? new DsecError('unavailable', 'the WebSocket was closed'));
      resolve(error);
    });
  });
  const receive = (signal?: AbortSignal) => inbox.take(signal);

  return {
    send: (message, signal) => outbox.send(message, signal),
    receive,
    messages: () => takeAll(receive),
    async close(error) {
      if (error === undefined) socket.close(CLOSE_NORMAL);
      else socket.close(closeCodeOf(error), closeReasonOf(error));
      failure ??= error;
      // A peer that answers is found behind messages that nobody will take any more.
      inbox.end(error ?? new DsecError('cancelled', 'the channel was closed'));
      socket.resume();
      const timer = setTimeout(() => socket.terminate(), limits.closeMs);
      await closed;
      clearTimeout(timer);
    },
    closed,
    get sendBytes() {
      return outbox.bytes;
    },
  };
}

/**
 * Ends a connection whose peer is gone without a word. Signs of life are a pong, a message, and
 * bytes that it took; while we do not read, silence is our own.
 */
function watchLife(
  socket: WebSocket,
  pingMs: number,
  inbox: Inbox<WebSocketMessage>,
  giveUp: (error: DsecError) => void,
) {
  let alive = true;
  const seen = () => {
    alive = true;
  };
  const timer = setInterval(() => {
    if (!alive && !inbox.paused) {
      giveUp(new DsecError('unavailable', 'the peer of the WebSocket does not answer'));
      return;
    }
    alive = false;
    if (socket.readyState === socket.OPEN) socket.ping();
  }, pingMs);
  timer.unref();
  socket.on('pong', seen);
  return { seen, stop: () => clearInterval(timer) };
}

/** What went wrong by the word of the `ws` library: its own codes name breaches of the protocol. */
function errorOfFault(cause: Error & { code?: unknown }): DsecError {
  const code = String(cause.code ?? '');
  if (code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') {
    return new DsecError('too-large', 'a WebSocket message is too long', { cause });
  }
  if (code.startsWith('WS_ERR_')) {
    return new DsecError('protocol', 'the peer broke the WebSocket protocol', { cause });
  }
  return new DsecError('unavailable', 'the WebSocket was lost', { cause });
}
