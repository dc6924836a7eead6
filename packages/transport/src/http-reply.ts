/** What a request to another server is answered with: its head, and then its body where somebody wants it. */
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { DsecError, KIB } from '@dsec/std';
import type { Dispatcher } from 'undici';
import { abortError } from './deadline.ts';

export type ReplyHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Only a little of its body comes before one of its methods asks for it, once. */
export interface IncomingReply {
  readonly status: number;
  /** As they came. */
  readonly headers: ReplyHeaders;
  /** The body as a whole; `too-large` beyond `bytesMax`. */
  read(bytesMax: number): Promise<Buffer>;
  /** The body as it comes, a little ahead of its reader. Leaving the loop ends the answer. */
  pieces(): AsyncGenerator<Buffer>;
  /** The same as a stream. Destroying it ends the answer; one that breaks off is destroyed with why. */
  open(): Readable;
  /**
   * Head, as `writeHead` writes it, and body into a response, as fast as its reader takes them. Resolves at
   * the end; when either side breaks off, both do, and it rejects.
   */
  pipe(response: ServerResponse, writeHead: () => void): Promise<void>;
}

export interface ReplyOptions {
  readonly signal: AbortSignal;
  /** What an error of the connection means. */
  readonly translate: (thrown: unknown) => DsecError;
}

/** Received ahead of a reader before the server has to wait. */
const AHEAD_BYTES = 256 * KIB;
/**
 * Received ahead when the server may go on. Each pause makes the HTTP client copy what it has of the
 * connection, so one for each piece would cost more than the rest together.
 */
const RESUME_BYTES = AHEAD_BYTES / 4;

/** Where the body goes once somebody wants it. */
interface Sink {
  /** False: no more for now. */
  data(chunk: Buffer): boolean;
  end(): void;
  fail(error: DsecError): void;
}

type Attach = (sink: Sink) => void;

/** Sends a request once; resolves with the head of the answer. */
export function dispatchOnce(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  options: ReplyOptions,
): Promise<IncomingReply> {
  return new Promise((resolve, reject) => {
    dispatcher.dispatch(request, createReplyHandler(options, resolve, reject));
  });
}

function createReplyHandler(
  { signal, translate }: ReplyOptions,
  resolve: (reply: IncomingReply) => void,
  reject: (error: DsecError) => void,
): Dispatcher.DispatchHandler {
  let sink: Sink | undefined;
  let failure: DsecError | undefined;
  let control: Dispatcher.DispatchController | undefined;
  /** What came before anybody wanted it: most answers are whole by then. */
  const early = createEarly();
  const abort = () => control?.abort(abortError(signal));
  const release = () => signal.removeEventListener('abort', abort);
  signal.addEventListener('abort', abort, { once: true });
  const attach = (attached: Sink) => {
    sink = attached;
    early.moveTo(attached);
    if (failure !== undefined) attached.fail(failure);
    else control?.resume();
  };
  return {
    onRequestStart(controller) {
      control = controller;
      if (signal.aborted) abort();
    },
    onResponseStart(controller, status, headers) {
      if (status >= 200) resolve(replyOf(status, headers, controller, attach));
    },
    onResponseData(controller, chunk) {
      if (!(sink ?? early).data(chunk)) controller.pause();
    },
    onResponseEnd() {
      release();
      (sink ?? early).end();
    },
    onResponseError(_controller, thrown) {
      release();
      failure = translate(thrown);
      reject(failure);
      sink?.fail(failure);
    },
  };
}

function createEarly() {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let hasEnded = false;
  return {
    data(chunk: Buffer) {
      chunks.push(chunk);
      bytes += chunk.length;
      return bytes < AHEAD_BYTES;
    },
    end() {
      hasEnded = true;
    },
    moveTo(sink: Sink) {
      for (const chunk of chunks.splice(0)) sink.data(chunk);
      if (hasEnded) sink.end();
    },
  };
}

function replyOf(
  status: number,
  headers: ReplyHeaders,
  controller: Dispatcher.DispatchController,
  attach: Attach,
): IncomingReply {
  return {
    ...{ status, headers },
    read: (bytesMax) => readBody(controller, attach, bytesMax),
    pieces: () => piecesOf(controller, attach),
    open: () => openBody(controller, attach),
    pipe: (response, writeHead) => pipeBody(controller, attach, response, writeHead),
  };
}

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

/** Each piece as it came: what a stream of Node joins is copied, and garbage once more. */
async function* piecesOf(
  controller: Dispatcher.DispatchController,
  attach: Attach,
): AsyncGenerator<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let isOver = false;
  let failure: DsecError | undefined;
  let wake = () => {};
  const over = (error?: DsecError) => {
    isOver = true;
    failure = error;
    wake();
  };
  attach({
    data(chunk) {
      pieces.push(chunk);
      bytes += chunk.length;
      wake();
      return bytes < AHEAD_BYTES;
    },
    end: over,
    fail: over,
  });
  try {
    for (;;) {
      const piece = pieces.shift();
      if (piece !== undefined) {
        yield piece;
        bytes -= piece.length;
        if (bytes <= RESUME_BYTES) controller.resume();
      } else if (isOver) {
        if (failure !== undefined) throw failure;
        return;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    if (!isOver) controller.abort(notWanted());
  }
}

function openBody(controller: Dispatcher.DispatchController, attach: Attach): Readable {
  let isAttached = false;
  const body: Readable = new Readable({
    highWaterMark: RESUME_BYTES,
    read() {
      if (isAttached) return controller.resume();
      isAttached = true;
      attach({
        data: (chunk) => body.push(chunk) || body.readableLength < AHEAD_BYTES,
        end: () => body.push(null),
        fail: (error) => body.destroy(error),
      });
    },
    destroy(error, done) {
      if (!body.readableEnded) controller.abort(notWanted());
      done(error);
    },
  });
  return body;
}

const notWanted = () => new DsecError('cancelled', 'the answer is not wanted any more');

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
      data: (chunk) => response.write(chunk) || response.writableLength < AHEAD_BYTES,
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
