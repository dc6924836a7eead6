import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { DsecError, KIB, SECOND_MS } from '@dsec/std';
import { type Dispatcher, errors, Pool } from 'undici';
import { onAborted } from './abort-listeners.ts';
import { abortError } from './deadline.ts';
import type { ListenAddress } from './http-listener.ts';

export interface ForwarderOptions {
  readonly address: ListenAddress;
  readonly connectionsMax?: number;
  readonly connectMs?: number;
}

export interface ForwardRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is sent as fast as the server takes it. */
  readonly body?: Buffer | Readable | undefined;
  readonly signal: AbortSignal;
}

export interface ForwardReply {
  readonly status: number;
  /** Those that concern the message; those of the connection are left out. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** The body as it comes. Destroying it ends the answer; one that breaks off is destroyed with why. */
  open(): Readable;
  /** The body as a whole; `too-large` beyond `bytesMax`. */
  read(bytesMax: number): Promise<Buffer>;
  /**
   * Head and body into a response, as fast as its reader takes them. Resolves at the end; when either side
   * breaks off, both do, and it rejects.
   */
  pipe(response: ServerResponse): Promise<void>;
}

/** Passes requests on to one server, a byte at a time as far as anybody can see: nothing is kept. */
export interface HttpForwarder {
  /**
   * One attempt; resolves with the head of the answer. Rejects with `unavailable`, with `details.sent` false
   * where nothing can have arrived, with `protocol`, or with the signal's error.
   */
  send(request: ForwardRequest): Promise<ForwardReply>;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** What concerns a connection, and is never passed on. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export function createHttpForwarder(options: ForwarderOptions): HttpForwarder {
  const { address, connectionsMax = 1024, connectMs = 5 * SECOND_MS } = options;
  const pool = new Pool(baseUrlOf(address), {
    connections: connectionsMax,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 32 * KIB,
    connect: {
      timeout: connectMs,
      ...('socketPath' in address ? { socketPath: address.socketPath } : {}),
    },
  });
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        const { method, target, headers, body, signal } = request;
        if (signal.aborted) return reject(abortError(signal));
        pool.dispatch(
          { method, path: target, headers, body: body ?? null },
          createReplyHandler(signal, resolve, reject),
        );
      }),
    close: () => pool.destroy(new DsecError('unavailable', 'the server is closing')),
  };
}

export function baseUrlOf(address: ListenAddress): string {
  if ('socketPath' in address) return 'http://localhost';
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return `http://${host}:${address.port}`;
}

/** A connection to where a server listens. */
export function connectTo(address: ListenAddress): Socket {
  return 'socketPath' in address
    ? connect(address.socketPath)
    : connect({ ...address, noDelay: true });
}

/** Where the body goes once somebody wants it. */
interface Sink {
  /** False: no more for now. */
  data(chunk: Buffer): boolean;
  end(): void;
  fail(error: DsecError): void;
}

function createReplyHandler(
  signal: AbortSignal,
  resolve: (reply: ForwardReply) => void,
  reject: (error: DsecError) => void,
): Dispatcher.DispatchHandler {
  let sink: Sink | undefined;
  let failure: DsecError | undefined;
  let control: Dispatcher.DispatchController | undefined;
  const abort = () => control?.abort(abortError(signal));
  const release = onAborted(signal, abort);
  const attach = (attached: Sink) => {
    if (failure !== undefined) return attached.fail(failure);
    sink = attached;
    control?.resume();
  };
  return {
    onRequestStart(controller) {
      control = controller;
      if (signal.aborted) abort();
    },
    onResponseStart(controller, status, headers) {
      if (status < 200) return;
      controller.pause();
      resolve(replyOf(status, headers, controller, attach));
    },
    onResponseData(controller, chunk) {
      if (sink?.data(chunk) === false) controller.pause();
    },
    onResponseEnd() {
      release();
      sink?.end();
    },
    onResponseError(_controller, thrown) {
      release();
      failure = translate(thrown, signal);
      reject(failure);
      sink?.fail(failure);
    },
  };
}

function replyOf(
  status: number,
  received: Record<string, string | string[] | undefined>,
  controller: Dispatcher.DispatchController,
  attach: (sink: Sink) => void,
): ForwardReply {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(received)) {
    if (value !== undefined && !OF_THE_CONNECTION.has(name)) headers[name] = value;
  }
  return {
    ...{ status, headers },
    read: (bytesMax) => readBody(controller, attach, bytesMax),
    open: () => openBody(controller, attach),
    pipe: (response) =>
      pipeBody(controller, attach, response, () => {
        response.writeHead(status, headers);
      }),
  };
}

type Attach = (sink: Sink) => void;

function readBody(
  controller: Dispatcher.DispatchController,
  attach: Attach,
  bytesMax: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    attach({
      data(chunk) {
        bytes += chunk.length;
        if (bytes <= bytesMax) chunks.push(chunk);
        else {
          controller.abort(new DsecError('too-large', `an answer has more than ${bytesMax} bytes`));
        }
        return true;
      },
      end: () => resolve(Buffer.concat(chunks, bytes)),
      fail: reject,
    });
  });
}

function openBody(controller: Dispatcher.DispatchController, attach: Attach): Readable {
  let isAttached = false;
  const body: Readable = new Readable({
    read() {
      if (isAttached) return controller.resume();
      isAttached = true;
      attach({
        data: (chunk) => body.push(chunk),
        end: () => body.push(null),
        fail: (error) => body.destroy(error),
      });
    },
    destroy(error, done) {
      if (!body.readableEnded) {
        controller.abort(new DsecError('cancelled', 'the answer is not wanted any more'));
      }
      done(error);
    },
  });
  return body;
}

function pipeBody(
  controller: Dispatcher.DispatchController,
  attach: Attach,
  response: ServerResponse,
  writeHead: () => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onDrain = () => controller.resume();
    const onClose = () => {
      if (response.writableFinished) return;
      controller.abort(new DsecError('cancelled', 'the caller is gone'));
    };
    const done = () => {
      response.off('drain', onDrain);
      response.off('close', onClose);
    };
    response.on('drain', onDrain);
    response.on('close', onClose);
    writeHead();
    attach({
      data: (chunk) => response.write(chunk),
      end() {
        done();
        response.end();
        resolve();
      },
      fail(error) {
        done();
        response.destroy();
        reject(error);
      },
    });
    if (response.destroyed) onClose();
  });
}

function translate(thrown: unknown, signal: AbortSignal): DsecError {
  if (signal.aborted) return abortError(signal);
  if (thrown instanceof DsecError) return thrown;
  if (thrown instanceof errors.HTTPParserError || thrown instanceof errors.HeadersOverflowError) {
    return new DsecError('protocol', 'the server does not speak HTTP', { cause: thrown });
  }
  const { message, code } = thrown as { message?: string; code?: string };
  const sent = !NEVER_SENT.has(String(code));
  return new DsecError('unavailable', `the server cannot be reached: ${message}`, {
    cause: thrown,
    details: { sent },
  });
}

const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
