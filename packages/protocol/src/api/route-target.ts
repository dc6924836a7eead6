/** Between the parameters of a route and the target of an HTTP request. */
import { DsecError } from '@dsec/std';
import type { TObject, TSchema } from 'typebox';
import { check } from '../validate.ts';
import type { ParamsOf, QueryOf, Route } from './route.ts';

type Values = Readonly<Record<string, unknown>>;

/**
 * Path and query of a request. Parameters are percent-encoded; absent ones are left out; lists are
 * repeated.
 */
export function formatTarget<R extends Route>(
  route: R,
  params: ParamsOf<R>,
  query: QueryOf<R>,
): string {
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String((params as Values)[name])),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query as Values)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined) search.append(name, String(item));
    }
  }
  return search.size === 0 ? path : `${path}?${search}`;
}

/** The path with `:name` for each parameter, as routers want it. */
export function routerPath(route: Route): string {
  return route.path.replace(/\{(\w+)\}/g, ':$1');
}

/**
 * Checks path parameters, already decoded, and turns them into their types. Throws `invalid-argument`, and
 * `not-found` for an id: one outside the grammar is the id of nothing, as one that is not known (THREATS F3).
 */
export function parseParams<R extends Route>(route: R, raw: Values): ParamsOf<R> {
  const entries = Object.entries(raw).map(([name, text]) => [name, [String(text)]] as const);
  try {
    return parseTexts(route.params, new Map(entries), 'path') as ParamsOf<R>;
  } catch (thrown) {
    const [, what] = /^(\w+)Id$/.exec(String((thrown as DsecError).details?.field)) ?? [];
    if (what === undefined) throw thrown;
    throw new DsecError('not-found', `there is no such ${what}`);
  }
}

/**
 * Checks a query and turns it into its types: integers in decimal, `true` or `false`, lists as
 * repetitions. A name that the route does not know, or a repetition where no list is meant, is
 * `invalid-argument`.
 */
export function parseQuery<R extends Route>(route: R, search: URLSearchParams): QueryOf<R> {
  const texts = new Map<string, string[]>();
  for (const name of new Set(search.keys())) texts.set(name, search.getAll(name));
  return parseTexts(route.query, texts, 'query') as QueryOf<R>;
}

function parseTexts(schema: TObject, texts: ReadonlyMap<string, readonly string[]>, what: string) {
  const value: Record<string, unknown> = {};
  for (const [name, items] of texts) {
    const property = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    if (property === undefined) throw invalid(name, `is not a parameter of this ${what}`);
    value[name] = parseItems(name, property, items);
  }
  return check(schema, value, what);
}

function parseItems(name: string, property: TSchema, items: readonly string[]): unknown {
  const { type, items: item } = property as { type?: string; items?: TSchema };
  if (type === 'array') return items.map((text) => parseText(name, item as TSchema, text));
  const [first, ...others] = items;
  if (first === undefined || others.length > 0) throw invalid(name, 'is given more than once');
  return parseText(name, property, first);
}

function parseText(name: string, schema: TSchema, text: string): unknown {
  const { type } = schema as { type?: string };
  if (type === 'integer') {
    if (!/^-?\d{1,16}$/.test(text)) throw invalid(name, 'must be a whole number');
    return Number(text);
  }
  if (type === 'boolean') {
    if (text !== 'true' && text !== 'false') throw invalid(name, 'must be true or false');
    return text === 'true';
  }
  return text;
}

function invalid(name: string, problem: string): DsecError {
  const shown = name.slice(0, 64);
  return new DsecError('invalid-argument', `${shown} ${problem}`, { details: { field: shown } });
}
