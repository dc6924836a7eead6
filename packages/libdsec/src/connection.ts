import { KIB } from '@dsec/std';
import type { WebSocketChannel } from '@dsec/transport/client';
import { bytesOf } from './byte-input.ts';
import { clientErrorOf, ProtocolError } from './errors.ts';

const MESSAGE_BYTES_MAX = 64 * KIB;
const END = new Uint8Array(0);

/**
 * A connection to a port inside a sandbox: bytes in both directions, each of which ends by itself. Both
 * sides go only as fast as the other takes them. Leaving its context closes it.
 */
export class Connection {
  readonly #channel: WebSocketChannel;
  #hasEnded = false;

  constructor(channel: WebSocketChannel) {
    this.#channel = channel;
  }

  /** The next bytes; `undefined` when the other side has ended. */
  async read(signal?: AbortSignal): Promise<Uint8Array | undefined> {
    if (this.#hasEnded) return undefined;
    const message = await this.#translated(() => this.#channel.receive(signal));
    if (typeof message === 'string') {
      throw new ProtocolError('protocol', 'the bytes of a port are binary messages');
    }
    if (message !== undefined && message.byteLength > 0) return message;
    this.#hasEnded = true;
    return undefined;
  }

  async write(data: Uint8Array | string, signal?: AbortSignal): Promise<void> {
    const bytes = bytesOf(data);
    for (let from = 0; from < bytes.byteLength; from += MESSAGE_BYTES_MAX) {
      const piece = bytes.subarray(from, from + MESSAGE_BYTES_MAX);
      await this.#translated(() => this.#channel.send(piece, signal));
    }
  }

  /** No more is written; reading goes on. */
  end(): Promise<void> {
    return this.#translated(() => this.#channel.send(END));
  }

  close(): Promise<void> {
    return this.#channel.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (let bytes = await this.read(); bytes !== undefined; bytes = await this.read()) yield bytes;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #translated<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (thrown) {
      throw clientErrorOf(thrown);
    }
  }
}
