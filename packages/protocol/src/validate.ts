import { assert, DsecError } from '@dsec/std';
import type { Static, TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';

const validators = new WeakMap<TSchema, Validator>();

function validatorOf(schema: TSchema): Validator {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = Compile(schema);
    validators.set(schema, validator);
  }
  return validator;
}

/**
 * Checks a value from outside and returns it typed, unchanged. Throws `invalid-argument` that names the
 * first field at fault, in `details.field` too. The schema is compiled at its first use.
 */
export function check<S extends TSchema>(schema: S, value: unknown, what: string): Static<S> {
  const validator = validatorOf(schema);
  if (validator.Check(value)) return value as Static<S>;
  const [first] = validator.Errors(value);
  assert(first !== undefined, 'a value that fails its schema has a fault');
  const { field, problem } = explain(schema, first);
  throw new DsecError('invalid-argument', `${what}${field === '' ? '' : `: ${field}`} ${problem}`, {
    details: { field },
  });
}

/** Whether a value has the shape of a schema. */
export function isValid<S extends TSchema>(schema: S, value: unknown): value is Static<S> {
  return validatorOf(schema).Check(value);
}

/** The field by its path, `limits.memoryBytes`, and what is wrong with it in words. */
function explain(schema: TSchema, fault: TLocalizedValidationError) {
  const names = fault.instancePath.slice(1).split('/').filter(Boolean);
  const at = (...more: readonly string[]) => [...names, ...more].join('.').slice(0, 200);
  switch (fault.keyword) {
    case 'boolean': {
      // The names of a map have a form, those of a record are known.
      const owner = partOf(schema, fault.schemaPath.replace(/\/additionalProperties$/, ''));
      const isMap = owner?.patternProperties !== undefined;
      return { field: at(), problem: isMap ? malformed(owner) : 'is not a known field' };
    }
    case 'pattern':
      return { field: at(), problem: malformed(partOf(schema, fault.schemaPath)) };
    case 'required':
      return { field: at(fault.params.requiredProperties[0] ?? ''), problem: 'is missing' };
    case 'enum':
      return { field: at(), problem: `must be ${fault.params.allowedValues.join(' or ')}` };
    default:
      return { field: at(), problem: fault.message };
  }
}

type Part = Readonly<Record<string, unknown>> | undefined;

/** What a schema path such as `#/properties/layers/items` leads to. */
function partOf(schema: TSchema, path: string): Part {
  const steps = path.split('/').slice(1);
  return steps.reduce<Part>((part, step) => part?.[step] as Part, schema as Part);
}

/** The form in the words of the schema; an expression tells nobody what to write. */
function malformed(part: Part): string {
  const form = part?.description;
  return typeof form === 'string' ? `is malformed; its form: ${form}` : 'has characters it may not';
}
