import { formatTarget, parseParams, parseQuery, ROUTES, routerPath } from '@dsec/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const sandboxId = 'sb-a-b-0123456789abcdef';
const queryOf = (target: string) => new URLSearchParams(target.split('?')[1] ?? '');
const invalid = (field: string) =>
  expect.objectContaining({ code: 'invalid-argument', details: { field } });

test('a target is the path with its parameters, then the query', () => {
  const target = formatTarget(ROUTES.readFile, { sandboxId }, { path: '/a b/ü&=?#%', offset: 5 });
  expect(target).toBe(
    `/v1/sandboxes/${sandboxId}/files/content?path=%2Fa+b%2F%C3%BC%26%3D%3F%23%25&offset=5`,
  );
  expect(parseQuery(ROUTES.readFile, queryOf(target))).toEqual({ path: '/a b/ü&=?#%', offset: 5 });
});

test('a route without parameters is its path', () => {
  expect(formatTarget(ROUTES.getHealth, {}, {})).toBe('/v1/health');
  expect(routerPath(ROUTES.getExec)).toBe('/v1/sandboxes/:sandboxId/execs/:execId');
});

test('path parameters are encoded, checked and typed', () => {
  const layerId = `sha256:${'a'.repeat(64)}`;
  expect(formatTarget(ROUTES.getLayer, { layerId }, {})).toBe(
    `/v1/layers/sha256%3A${'a'.repeat(64)}`,
  );
  expect(parseParams(ROUTES.getLayer, { layerId })).toEqual({ layerId });
  expect(parseParams(ROUTES.connectPort, { sandboxId, port: '80' })).toEqual({
    sandboxId,
    port: 80,
  });
  expect(() => parseParams(ROUTES.connectPort, { sandboxId, port: '0' })).toThrow(invalid('port'));
  expect(() => parseParams(ROUTES.getSandbox, { sandboxId: '../etc' })).toThrow(
    expect.objectContaining({ code: 'not-found', message: 'there is no such sandbox' }),
  );
});

test('lists are repetitions; absent values are left out', () => {
  const query = { state: ['running', 'paused'], label: ['a=b'], limit: 3 } as const;
  const asked = { ...query, state: [...query.state], label: [...query.label] };
  const target = formatTarget(ROUTES.listSandboxes, {}, {
    ...asked,
    job: undefined,
  } as typeof asked);
  expect(target).toBe('/v1/sandboxes?state=running&state=paused&label=a%3Db&limit=3');
  expect(parseQuery(ROUTES.listSandboxes, queryOf(target))).toEqual(query);
});

test.each([
  ['unknown=1', 'unknown'],
  ['__proto__=1', '__proto__'],
  ['constructor=1', 'constructor'],
  ['limit=1&limit=2', 'limit'],
  ['limit=1.5', 'limit'],
  ['limit=0x10', 'limit'],
  ['limit=', 'limit'],
  ['limit=1001', 'limit'],
  ['limit=-1', 'limit'],
  ['state=flying', 'state.0'],
  ['job=..', 'job'],
])('the query %s is refused by name', (query, field) => {
  expect(() => parseQuery(ROUTES.listSandboxes, new URLSearchParams(query))).toThrow(
    invalid(field),
  );
});

test('booleans are words', () => {
  const parse = (query: string) => parseQuery(ROUTES.removeFile, new URLSearchParams(query));
  expect(parse('path=a&recursive=true')).toEqual({ path: 'a', recursive: true });
  expect(parse('path=a&recursive=false')).toEqual({ path: 'a', recursive: false });
  expect(() => parse('path=a&recursive=1')).toThrow(invalid('recursive'));
});

test('any query text is parsed or refused, never anything else', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        parseQuery(ROUTES.readExecOutput, new URLSearchParams(text));
      } catch (error) {
        expect(error).toMatchObject({ code: 'invalid-argument' });
      }
    }),
    { seed: 3, numRuns: 500 },
  );
});
