import { DsecError } from '@dsec/std';
import type { Static, TSchema } from 'typebox';
import { readBounded } from './durable-file.ts';
import { RECORD_BYTES_MAX } from './record-limits.ts';

type Schemas = typeof import('./record-schemas.ts');

/** The text of a manifest or ref. `import-limit` when nobody would read it back. */
export function encodeRecord(record: object): string {
  const text = `${JSON.stringify(record, null, 2)}\n`;
  if (Buffer.byteLength(text) > RECORD_BYTES_MAX) {
    throw new DsecError('import-limit', `a record of a layer may have ${RECORD_BYTES_MAX} bytes`);
  }
  return text;
}

/**
 * Reads a JSON document of a known shape. Anything else in its place is `data-loss`. The shapes are loaded
 * with the first document that is there.
 */
export async function readJson<Schema extends TSchema>(
  path: string,
  schemaOf: (schemas: Schemas) => Schema,
): Promise<Static<Schema>> {
  const text = (await readBounded(path, RECORD_BYTES_MAX)).toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw new DsecError('data-loss', `${path} is not JSON`, { cause: thrown });
  }
  const { Check, Errors } = await import('typebox/value');
  const schema = schemaOf(await import('./record-schemas.ts'));
  if (!Check(schema, value)) {
    const [first] = Errors(schema, value);
    const where = first === undefined ? '' : `: ${first.instancePath || '/'} ${first.message}`;
    throw new DsecError('data-loss', `${path} has a wrong shape${where}`);
  }
  return value;
}
