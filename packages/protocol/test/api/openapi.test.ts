import { buildOpenApi, ROUTES } from '@dsec/protocol';
import { ERROR_CODES } from '@dsec/std';
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';

type Json = { readonly [key: string]: unknown };
const document = buildOpenApi('1.2.3');

test('a validator of the OpenAPI schema accepts the document', async () => {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(document));
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
  expect(validator.version).toBe('3.1');
});

test('every reference leads somewhere, and every component is used', () => {
  const { schemas } = document.components as { schemas: Json };
  const used = new Set<string>();
  walk(document, (node) => {
    if (typeof node.$ref === 'string') used.add(node.$ref.split('/').at(-1) as string);
  });
  used.delete('Error');
  expect([...used].sort()).toEqual(Object.keys(schemas).sort());
});

test('every operation stands under its method and path, with the errors', () => {
  const paths = document.paths as Record<string, Record<string, Json>>;
  for (const [id, { method, path }] of Object.entries(ROUTES)) {
    expect(paths[path]?.[method.toLowerCase()]).toMatchObject({
      operationId: id,
      responses: { default: { $ref: '#/components/responses/Error' } },
    });
  }
  expect(document['x-errors']).toEqual(ERROR_CODES);
});

/** Whoever reads a request or an answer knows beforehand how large it can get. */
test('every object is closed, every string, list and number has bounds', () => {
  const problems: string[] = [];
  const seen: string[] = [];
  walk(document, (node, at) => {
    if (at.includes('/x-errors') || at.includes('/headers/')) return;
    seen.push(at);
    const problem = unbounded(node);
    if (problem !== undefined) problems.push(`${at}: ${problem}`);
  });
  expect(problems).toEqual([]);
  expect(seen.length).toBeGreaterThan(1000);
});

function unbounded(node: Json): string | undefined {
  if (node.enum !== undefined || node.const !== undefined) return undefined;
  switch (node.type) {
    case 'object':
      if (node.additionalProperties !== false) return 'not closed';
      return node.patternProperties !== undefined && node.maxProperties === undefined
        ? 'no maxProperties'
        : undefined;
    case 'array':
      return node.maxItems === undefined ? 'no maxItems' : undefined;
    case 'string':
      return node.maxLength === undefined ? 'no maxLength' : undefined;
    case 'integer':
    case 'number':
      return node.minimum === undefined || node.maximum === undefined ? 'no range' : undefined;
    default:
      return undefined;
  }
}

function walk(value: unknown, visit: (node: Json, at: string) => void, at = ''): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) visit(value as Json, at);
  for (const [key, part] of Object.entries(value)) walk(part, visit, `${at}/${key}`);
}
