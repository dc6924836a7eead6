import { readFileSync } from 'node:fs';
import * as protocol from '@dsec/protocol';
import { isValid } from '@dsec/protocol';
import type { TSchema } from 'typebox';
import { describe, expect, it } from 'vitest';

/** The same examples are read by the Python models: python/tests/test_golden.py. */
const GOLDEN = new URL('../../../../spec/golden/models.json', import.meta.url);

interface Example {
  readonly model: string;
  readonly value: unknown;
  readonly why?: string;
}
const golden = JSON.parse(readFileSync(GOLDEN, 'utf8')) as Record<'valid' | 'invalid', Example[]>;

const schemas = new Map<string, TSchema>();
for (const exported of Object.values(protocol)) {
  const { title } = Object(exported) as { title?: unknown };
  if (typeof title === 'string') schemas.set(title, exported as TSchema);
}

function accepts({ model, value }: Example): boolean {
  const schema = schemas.get(model);
  if (schema === undefined) throw new Error(`no schema ${model} is exported`);
  return isValid(schema, value);
}

describe('golden models', () => {
  it.each(golden.valid.map((example) => [example.model, example] as const))(
    'are valid: %s',
    (_model, example) => expect(accepts(example)).toBe(true),
  );

  it.each(golden.invalid.map((example) => [example.model, example.why, example] as const))(
    'are refused: %s with %s',
    (_model, _why, example) => expect(accepts(example)).toBe(false),
  );
});
