import { DsecError } from '@dsec/std';
import type { Static, TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';

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
 * Checks a value from outside and returns it typed, unchanged. Throws `invalid-argument` that names the first field
 * at fault. The schema is compiled at its first use.
 */
export function check<S extends TSchema>(schema: S, value: unknown, what: string): Static<S> {
  const validator = validatorOf(schema);
  if (validator.Check(value)) return value as Static<S>;
  const [first] = validator.Errors(value);
  const field = fieldOf(first?.instancePath ?? '');
  const where = field === '' ? what : `${what}: ${field}`;
  throw new DsecError('invalid-argument', `${where} ${first?.message ?? 'is invalid'}`, {
    details: { field },
  });
}

export function isValid<S extends TSchema>(schema: S, value: unknown): value is Static<S> {
  return validatorOf(schema).Check(value);
}

/** `/limits/cpu` → `limits.cpu`. */
function fieldOf(pointer: string): string {
  return pointer.slice(1).replaceAll('/', '.').slice(0, 200);
}
