/** Requests on existing sandboxes: to the edge that the id names, and its answer back, as they are. */
import { PassThrough, type Readable } from 'node:stream';
import { IDEMPOTENCY_HEADER, isStreamRoute } from '@dsec/protocol';
import { type Clock, DsecError, KIB, MINUTE_MS, type Random } from '@dsec/std';
import {
  type Call,
  type Exchange,
  errorOfBody,
  type Forward,
  REQUEST_ID_HEADER,
  startDeadline,
  TRACEPARENT_HEADER,
} from '@dsec/transport';
import { attempts } from '../fleet/attempts.ts';
import { asSeenByCaller, type EdgeLink } from '../fleet/edge-link.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { identityOf, type Visitor } from '../http/key-authorizer.ts';
import { forwardSocket } from './forward-socket.ts';

export interface ForwardParts {
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly random: Random;
}

/** Time until an edge begins to answer: longer than any operation may wait. */
const ANSWER_MS = 3 * MINUTE_MS;
const ERROR_BYTES_MAX = 64 * KIB;
const UPLOAD_BUFFER_BYTES = 256 * KIB;
/** What an edge needs to know of a request; never the key of the caller. */
const PASSED_ON = ['content-type', 'content-length', IDEMPOTENCY_HEADER] as const;

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

/** With a ticket of its own: each is good for one attempt. */
export function headersFor(
  { sign }: EdgeLink,
  { route, target, bodyDigest, params, principal, headers, requestId, traceparent }: Call<Visitor>,
): Record<string, string> {
  const { operationClass, method } = route;
  if (operationClass === 'none') throw new DsecError('internal', 'an open route is not forwarded');
  const ticket = sign(
    {
      ...{ operationClass, method, target, bodyDigest },
      sandbox: String(params.sandboxId),
      isStream: isStreamRoute(route),
    },
    identityOf(principal),
  );
  const passed: Record<string, string> = {
    ...ticket,
    [REQUEST_ID_HEADER]: requestId,
    [TRACEPARENT_HEADER]: traceparent,
  };
  for (const name of PASSED_ON) {
    const value = headers[name];
    if (typeof value === 'string') passed[name] = value;
  }
  return passed;
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
