import { ERROR_CODES } from '@dsec/std';
import type { TObject, TSchema } from 'typebox';
import { idempotencyKey } from '../names.ts';
import { ErrorBody } from './error-body.ts';
import {
  HEADERS,
  IDEMPOTENCY_HEADER,
  type Route,
  type RouteBody,
  type RouteReply,
} from './route.ts';
import { ROUTES } from './routes.ts';

type Json = { [key: string]: unknown };

/**
 * The OpenAPI 3.1 document of all routes. Schemas with a title become components. What OpenAPI cannot say
 * stands in extensions: `x-operation-class`, `x-effect`, `x-home`, `x-websocket` (schemas of the text
 * messages) and `x-errors`.
 */
export function buildOpenApi(version: string): Json {
  const components = new Map<string, Json>();
  const paths: Record<string, Json> = {};
  for (const [operationId, route] of Object.entries(ROUTES) as [string, Route][]) {
    const method = route.method.toLowerCase();
    const described = operation(components, operationId, route);
    paths[route.path] = { ...paths[route.path], [method]: described };
  }
  const error = {
    description: 'Not done. `code` says why; the table of codes is in `x-errors`.',
    content: { 'application/json': { schema: refer(components, ErrorBody) } },
  };
  const schemas = Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1)));
  return {
    openapi: '3.1.0',
    info: {
      title: 'DSec',
      version,
      description: 'Sandboxes for training and evaluating language-model agents.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key.' } },
      responses: { Error: error },
      schemas,
    },
    'x-errors': ERROR_CODES,
  };
}

function operation(components: Map<string, Json>, operationId: string, route: Route): Json {
  return {
    operationId,
    summary: route.summary,
    ...(route.operationClass === 'none' ? { security: [] } : {}),
    parameters: [
      ...parameters(components, 'path', route.params),
      ...parameters(components, 'query', route.query),
      ...(route.effect === 'keyed' ? [idempotencyParameter] : []),
    ],
    ...requestBody(components, route.body),
    responses: {
      [route.reply.status]: response(components, route.reply),
      default: { $ref: '#/components/responses/Error' },
    },
    'x-operation-class': route.operationClass,
    'x-effect': route.effect,
    'x-home': route.home,
    ...websocket(components, route.reply),
  };
}

const idempotencyParameter = {
  name: IDEMPOTENCY_HEADER,
  in: 'header',
  description:
    'With it a repetition of the request has the outcome of the first one, for 24 hours.',
  schema: plain(idempotencyKey),
};

function parameters(components: Map<string, Json>, place: 'path' | 'query', schema: TObject) {
  const required = new Set<string>(schema.required);
  return Object.entries(schema.properties).map(([name, property]) => {
    const { description, ...rest } = refer(components, property);
    return {
      name,
      in: place,
      required: required.has(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    };
  });
}

function requestBody(components: Map<string, Json>, body: RouteBody): Json {
  switch (body.kind) {
    case 'none':
      return {};
    case 'bytes':
      return { requestBody: { required: true, content: { 'application/octet-stream': {} } } };
    case 'json': {
      const schema = refer(components, body.schema);
      return { requestBody: { required: true, content: { 'application/json': { schema } } } };
    }
  }
}

function response(components: Map<string, Json>, reply: RouteReply): Json {
  const content = (type: string, description: string, schema?: TSchema) => ({
    description,
    content: { [type]: schema === undefined ? {} : { schema: refer(components, schema) } },
  });
  switch (reply.kind) {
    case 'empty':
      return { description: 'Done.' };
    case 'json':
      return content('application/json', 'Done.', reply.schema);
    case 'text':
      return content(reply.contentType, 'Done.');
    case 'lines':
      return content('application/x-ndjson', 'A document of this schema a line.', reply.schema);
    case 'events':
      return content('text/event-stream', 'Events with `data` of this schema.', reply.schema);
    case 'socket':
      return { description: 'The connection is a WebSocket now.' };
    case 'bytes': {
      const headers = reply.headers.map((name) => {
        return [name, { description: HEADERS[name], schema: { type: 'string' } }];
      });
      const body = content('application/octet-stream', 'The bytes.');
      return { ...body, headers: Object.fromEntries(headers) };
    }
  }
}

function websocket(components: Map<string, Json>, reply: RouteReply): Json {
  if (reply.kind !== 'socket') return {};
  const { client, server } = reply;
  const messages = {
    ...(client === undefined ? {} : { client: refer(components, client) }),
    ...(server === undefined ? {} : { server: refer(components, server) }),
  };
  return { 'x-websocket': messages };
}

/** A schema as JSON, with every titled schema within it (itself included) as a reference to a component. */
function refer(components: Map<string, Json>, schema: TSchema): Json {
  return referJson(components, plain(schema)) as Json;
}

function referJson(components: Map<string, Json>, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => referJson(components, item));
  if (typeof value !== 'object' || value === null) return value;
  const { title, ...rest } = value as Json;
  const entries = Object.entries(rest).map(([key, part]) => [key, referJson(components, part)]);
  const converted: Json = Object.fromEntries(entries);
  if (typeof title !== 'string') {
    // A property may be called `title`.
    return title === undefined ? converted : { ...converted, title: referJson(components, title) };
  }
  const known = components.get(title);
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(converted)) {
    throw new TypeError(`two schemas are named ${title}`);
  }
  components.set(title, converted);
  return { $ref: `#/components/schemas/${title}` };
}

/** Drops what TypeBox keeps beside the JSON schema. */
function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema));
}
