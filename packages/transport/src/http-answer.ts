import { Readable } from 'node:stream';
import { check, type Route } from '@dsec/protocol';
import { assertNever, DsecError, KIB } from '@dsec/std';
import type { FastifyReply } from 'fastify';
import type { TSchema } from 'typebox';
import type { BytesAnswer, EventAnswer } from './http-routes.ts';

const STREAM_BUFFER_BYTES = 64 * KIB;

/**
 * Sends what a handler returned, in the form that its route has. What does not fit the route's
 * schema is not sent.
 */
export async function sendAnswer(reply: FastifyReply, route: Route, answer: unknown) {
  const { kind, status } = route.reply;
  reply.code(status);
  switch (kind) {
    case 'empty':
      return reply.send();
    case 'json':
      return reply
        .type('application/json')
        .send(JSON.stringify(conforming(route.reply.schema, answer)));
    case 'text':
      return reply.type(route.reply.contentType).send(answer as string);
    case 'bytes': {
      const { headers = {}, body } = answer as BytesAnswer;
      return reply.headers(headers).type('application/octet-stream').send(streamOf(body));
    }
    case 'lines':
      return reply
        .type('application/x-ndjson')
        .send(streamOf(linesOf(route.reply.schema, answer as AsyncIterable<unknown>)));
    case 'events':
      return reply
        .type('text/event-stream')
        .send(
          eventStreamOf(
            route.reply.schema,
            answer as AsyncIterable<EventAnswer<unknown> | undefined>,
          ),
        );
    case 'socket':
      throw new DsecError('internal', 'a WebSocket is not answered');
    default:
      return assertNever(kind);
  }
}

function conforming(schema: TSchema, value: unknown): unknown {
  try {
    return check(schema, value, 'answer');
  } catch (cause) {
    throw new DsecError('internal', 'an answer does not fit its route', { cause });
  }
}

function streamOf(body: AsyncIterable<Uint8Array | string>): Readable {
  if (body instanceof Readable) return body;
  return Readable.from(body, { objectMode: false, highWaterMark: STREAM_BUFFER_BYTES });
}

async function* linesOf(schema: TSchema, items: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const item of items) yield `${JSON.stringify(conforming(schema, item))}\n`;
}

/**
 * Begins with a comment once the first item is there (`undefined` where nothing has happened yet): who has
 * read it is told everything from then on. What is wrong from the start is an error response instead.
 */
function eventStreamOf(
  schema: TSchema,
  events: AsyncIterable<EventAnswer<unknown> | undefined>,
): Readable {
  return streamOf(
    (async function* () {
      const iterator = events[Symbol.asyncIterator]();
      try {
        let item = await iterator.next();
        yield ': connected\n\n';
        for (; !item.done; item = await iterator.next()) {
          yield item.value === undefined ? ':\n\n' : eventText(schema, item.value);
        }
      } finally {
        await iterator.return?.();
      }
    })(),
  );
}

function eventText(schema: TSchema, { id, data }: EventAnswer<unknown>): string {
  return `id: ${id}\ndata: ${JSON.stringify(conforming(schema, data))}\n\n`;
}
