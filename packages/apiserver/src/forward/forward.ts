/** Requests on existing sandboxes: to the edge that the id names, and its answer back, as they are. */
import { PassThrough, type Readable } from 'node:stream';
import { DsecError, KIB, MINUTE_MS } from '@dsec/std';
import {
  type Call,
  type Exchange,
  errorOfBody,
  type Forward,
  startDeadline,
} from '@dsec/transport';
import { attempts } from '../fleet/attempts.ts';
import { asSeenByCaller, type EdgeLink } from '../fleet/edge-link.ts';
import type { Visitor } from '../http/key-authorizer.ts';
import { type ForwardParts, headersFor } from './edge-headers.ts';
import { forwardSocket } from './forward-socket.ts';

/** Time until an edge begins to answer: longer than any operation may wait. */
const ANSWER_MS = 3 * MINUTE_MS;
const ERROR_BYTES_MAX = 64 * KIB;
const UPLOAD_BUFFER_BYTES = 256 * KIB;

export function createForward(parts: ForwardParts): Forward<Visitor> {
  return (call, exchange) => {
    const link = parts.fleet.linkOf(String(call.params.sandboxId));
    return call.route.reply.kind === 'socket'
      ? forwardSocket(link, call, exchange, parts)
      : forwardRequest(link, call, exchange, parts);
  };
}

async function forwardRequest(
  link: EdgeLink,
  call: Call<Visitor>,
  exchange: Exchange,
  { clock, random }: ForwardParts,
): Promise<void> {
  const { route, idempotencyKey } = call;
  const upload = route.body.kind === 'bytes' ? openUpload(exchange) : undefined;
  const deadline = startDeadline(ANSWER_MS, call.signal);
  const { signal } = deadline;
  // An upload, and what answers to one at the end only, takes the time that its caller takes.
  if (upload !== undefined) deadline.lift();
  const isRepeatable = route.effect !== 'keyed' || idempotencyKey !== undefined;
  try {
    const reply = await attempts(
      async () => {
        const headers = headersFor(link, call);
        const { target } = call;
        const body = upload?.begin() ?? exchange.body;
        const sent = await link.http.send({ method: route.method, target, headers, body, signal });
        if (sent.status !== 503 && sent.status !== 401) return sent;
        throw asSeenByCaller(errorOfBody(sent.status, await sent.read(ERROR_BYTES_MAX)));
      },
      {
        ...{ clock, random, signal },
        mayRepeat: isRepeatable && upload === undefined,
        ...(upload === undefined ? {} : { patienceMs: 0 }),
      },
    );
    deadline.lift();
    await reply.pipe(exchange.begin());
  } finally {
    upload?.end();
    deadline.stop();
  }
}

/**
 * The body of an upload. An edge that refuses it early ends its own half only: the caller's connection stays,
 * so that the refusal can be read.
 */
function openUpload({ request }: Exchange): { begin(): Readable; end(): void } {
  const body = new PassThrough({ highWaterMark: UPLOAD_BUFFER_BYTES });
  body.on('error', () => {});
  const onClose = () => {
    if (!request.complete) body.destroy(new DsecError('cancelled', 'the caller is gone'));
  };
  request.once('close', onClose);
  return {
    begin: () => request.pipe(body),
    end() {
      request.off('close', onClose);
      request.unpipe(body);
      body.destroy();
    },
  };
}
