/** Requests from the OpenAPI document: some that fit it, and some that only nearly do. */
import fc from 'fast-check';

export type Json = { readonly [key: string]: unknown };

export interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: 'path' | 'query' | 'header';
    readonly required?: boolean;
    readonly schema: Json;
  }[];
  /** Of a JSON body. */
  readonly body: Json | undefined;
  readonly takesBytes: boolean;
}

export interface FuzzRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export function operationsOf(document: Json): Operation[] {
  const paths = document.paths as Record<string, Record<string, Json>>;
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const content = (operation.requestBody as { content?: Json } | undefined)?.content ?? {};
      const json = content['application/json'] as { schema: Json } | undefined;
      return {
        ...{ id: String(operation.operationId), method: method.toUpperCase(), path },
        parameters: operation.parameters as Operation['parameters'],
        body: json?.schema,
        takesBytes: 'application/octet-stream' in content,
      };
    }),
  );
}

/** Values that a live server knows, by the name of a field: fuzz that never gets in finds little. */
export type Dictionary = Readonly<Record<string, readonly string[]>>;

/** So that nothing is waited for, and little is made. */
const SMALL: Readonly<Record<string, number>> = { waitMs: 20, count: 3, lifetimeMs: 60_000 };

export function createRequests(document: Json, known: Dictionary) {
  const schemas = (document.components as { schemas: Record<string, Json> }).schemas;
  const valuesOf = (schema: Json, name: string, depth: number): fc.Arbitrary<unknown> => {
    const ref = schema.$ref as string | undefined;
    if (ref !== undefined) {
      return valuesOf(schemas[ref.split('/').at(-1) ?? ''] as Json, name, depth + 1);
    }
    const found = known[name];
    const fresh = freshOf(schema, name, depth, valuesOf);
    if (found === undefined || found.length === 0) return fresh;
    return fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...found) }, fresh);
  };
  const fuzzed = (schema: Json, name: string) =>
    fc.oneof(
      { weight: 6, arbitrary: valuesOf(schema, name, 0) },
      { weight: 1, arbitrary: ODD },
      { weight: 1, arbitrary: valuesOf(schema, name, 0).chain(mutated) },
    );
  return (operation: Operation): fc.Arbitrary<FuzzRequest> =>
    fc
      .record({
        values: fc.tuple(...operation.parameters.map(({ schema, name }) => fuzzed(schema, name))),
        given: fc.array(fc.boolean(), { minLength: 16, maxLength: 16 }),
        extra: fc.oneof({ weight: 9, arbitrary: fc.constant('') }, fc.constant('unknown=1')),
        body: bodyOf(operation, fuzzed),
        type: fc.oneof(
          { weight: 9, arbitrary: fc.constant(typeOf(operation)) },
          fc.constantFrom('text/plain', 'application/json; charset=utf-16', ''),
        ),
      })
      .map(({ values, given, extra, body, type }) => {
        let path = operation.path;
        const query = new URLSearchParams(extra);
        const headers: Record<string, string> = {};
        for (const [index, parameter] of operation.parameters.entries()) {
          const value = values[index];
          if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, encoded(value));
          else if (!given[index % 16] && parameter.required !== true) continue;
          else if (parameter.in === 'query') {
            for (const item of [value].flat()) query.append(parameter.name, asText(item));
          } else headers[parameter.name] = asText(value).replace(/[^\x21-\x7e]/g, '');
        }
        if (type !== '' && body !== undefined) headers['content-type'] = type;
        const target = query.size === 0 ? path : `${path}?${query}`;
        return { method: operation.method, target: target.slice(0, 12_000), headers, body };
      });
}

const typeOf = ({ takesBytes }: Operation) =>
  takesBytes ? 'application/octet-stream' : 'application/json';

function bodyOf(
  { body, takesBytes, method }: Operation,
  fuzzed: (schema: Json, name: string) => fc.Arbitrary<unknown>,
): fc.Arbitrary<string | undefined> {
  if (takesBytes) return fc.string({ maxLength: 2000 });
  if (body === undefined) {
    const none = { weight: 9, arbitrary: fc.constant(undefined) };
    return method === 'GET' ? fc.constant(undefined) : fc.oneof(none, fc.constant('{}'));
  }
  const whole = fuzzed(body, 'body').map((value) => JSON.stringify(value) ?? '');
  return fc.oneof(
    { weight: 8, arbitrary: whole },
    { weight: 1, arbitrary: whole.map((text) => text.slice(0, -1)) },
    { weight: 1, arbitrary: fc.constantFrom('', '[]', 'null', '{"__proto__": {}}', '\u0000') },
  );
}

/** What breaks parsers of all kinds. */
const ODD: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    '',
    '..',
    '../../etc',
    '\u0000',
    '%00',
    "'; --",
    '\u202e',
    -1,
    1e308,
    null,
  ),
  fc.string({ maxLength: 300, unit: 'binary' }),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.jsonValue({ maxDepth: 2 }),
);

/** One thing of a value is changed, added or taken away. */
function mutated(value: unknown): fc.Arbitrary<unknown> {
  if (typeof value !== 'object' || value === null) return ODD;
  const keys = Object.keys(value);
  return fc
    .tuple(fc.constantFrom(...keys, 'unknown'), ODD, fc.boolean())
    .map(([key, odd, drop]) => {
      const copy: Record<string, unknown> = { ...value };
      if (drop) delete copy[key];
      else copy[key] = odd;
      return copy;
    });
}

type ValuesOf = (schema: Json, name: string, depth: number) => fc.Arbitrary<unknown>;

function freshOf(
  schema: Json,
  name: string,
  depth: number,
  valuesOf: ValuesOf,
): fc.Arbitrary<unknown> {
  if (depth > 6) return fc.constant(undefined);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  if (Array.isArray(schema.anyOf)) {
    return fc.oneof(...schema.anyOf.map((one: Json) => valuesOf(one, name, depth + 1)));
  }
  const { minimum: min = 0, maximum: max = Number.MAX_SAFE_INTEGER } = schema as {
    minimum?: number;
    maximum?: number;
  };
  const least = Math.min(SMALL[name] ?? max, max);
  switch (schema.type) {
    case 'integer':
      return fc.oneof(fc.constantFrom(min, least), fc.integer({ min, max: least }));
    case 'number':
      return fc.double({ min, max: least, noNaN: true });
    case 'boolean':
      return fc.boolean();
    case 'array':
      return fc.array(valuesOf(schema.items as Json, name, depth + 1), {
        ...{ minLength: (schema.minItems as number | undefined) ?? 0, maxLength: 4 },
      });
    case 'object':
      return objectOf(schema, depth, valuesOf);
    default:
      return textOf(schema);
  }
}

function objectOf(schema: Json, depth: number, valuesOf: ValuesOf): fc.Arbitrary<unknown> {
  const properties = (schema.properties ?? {}) as Record<string, Json>;
  const [pattern] = Object.entries((schema.patternProperties ?? {}) as Record<string, Json>);
  if (pattern !== undefined) {
    const name = fc.stringMatching(new RegExp(pattern[0]), { maxLength: 40 });
    return fc.dictionary(name, valuesOf(pattern[1], '', depth + 1), { maxKeys: 3 });
  }
  const fields = Object.entries(properties).map(
    ([name, field]) => [name, valuesOf(field, name, depth + 1)] as const,
  );
  const requiredKeys = (schema.required ?? []) as string[];
  return fc.record(Object.fromEntries(fields), { requiredKeys: requiredKeys as never[] });
}

function textOf({ pattern, maxLength = 200 }: Json): fc.Arbitrary<string> {
  if (typeof pattern !== 'string')
    return fc.string({ maxLength: Math.min(200, Number(maxLength)) });
  const longest = Math.min(400, Number(maxLength));
  return fc
    .stringMatching(new RegExp(pattern), { size: 'small' })
    .map((text) => text.slice(0, longest));
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** A lone surrogate cannot be sent at all. */
function encoded(value: unknown): string {
  return encodeURIComponent(asText(value).replace(/[\ud800-\udfff]/gu, '?')).slice(0, 2000) || '-';
}
