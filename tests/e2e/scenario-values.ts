/** Values of the scenario table, and what matches them. */
import * as library from '@dsec/libdsec';
import { camelCase, memberOf } from './scenario-table.ts';

export type Variables = Map<string, unknown>;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What a path means: a variable and what is inside it, or undefined. */
export function lookUp(variables: Variables, path: string): unknown {
  const [first = '', ...rest] = path.split('.');
  return rest.reduce(memberOf, variables.get(first));
}

/** A value of the table as the library takes it. */
export function valueIn(variables: Variables, value: unknown): unknown {
  if (typeof value === 'string') {
    return value.replace(/\$\{([\w.]+)\}/g, (_, path: string) => String(lookUp(variables, path)));
  }
  if (Array.isArray(value)) return value.map((item) => valueIn(variables, item));
  if (!isRecord(value)) return value;
  if (typeof value.$ === 'string') return lookUp(variables, value.$);
  if (typeof value.$bytes === 'string') return new Uint8Array(Buffer.from(value.$bytes, 'base64'));
  if (Array.isArray(value.$repeat)) {
    const [text, times] = value.$repeat as [string, number];
    return text.repeat(times);
  }
  const { $new: model, ...fields } = value;
  const named = Object.entries(fields).map(([name, field]) => {
    // Names of a model's fields are the library's; those of a mapping are the caller's own.
    return [model === undefined ? name : camelCase(name), valueIn(variables, field)] as const;
  });
  return Object.fromEntries(named);
}

/** Options of a call: their names are the library's. */
export function optionsOf(variables: Variables, options: Readonly<Record<string, unknown>>) {
  const named = Object.entries(options).map(([name, value]) => [
    camelCase(name),
    valueIn(variables, value),
  ]);
  return Object.fromEntries(named) as Record<string, unknown>;
}

/** Why a value does not match; undefined when it does. */
export function mismatch(
  variables: Variables,
  found: unknown,
  wanted: unknown,
): string | undefined {
  if (isRecord(wanted)) {
    const special = specialMismatch(variables, found, wanted);
    if (special !== undefined) return special === '' ? undefined : special;
    for (const [name, part] of Object.entries(wanted)) {
      if (name.startsWith('$')) continue;
      const problem = mismatch(variables, memberOf(found, name), part);
      if (problem !== undefined) return `${name}: ${problem}`;
    }
    return found === undefined ? `nothing instead of ${show(wanted)}` : undefined;
  }
  if (Array.isArray(wanted)) {
    if (!Array.isArray(found) || found.length !== wanted.length) return differ(found, wanted);
    for (const [index, part] of wanted.entries()) {
      const problem = mismatch(variables, found[index], part);
      if (problem !== undefined) return `${index}: ${problem}`;
    }
    return undefined;
  }
  return sameMismatch(found, valueIn(variables, wanted));
}

/** '' when it matches, undefined when `wanted` has no special form that settles it. */
function specialMismatch(
  variables: Variables,
  found: unknown,
  wanted: Record<string, unknown>,
): string | undefined {
  const settle = (matches: boolean) => (matches ? '' : differ(found, wanted));
  if ('$' in wanted || '$bytes' in wanted || '$repeat' in wanted) {
    return sameMismatch(found, valueIn(variables, wanted)) ?? '';
  }
  if ('$matches' in wanted) {
    return settle(typeof found === 'string' && new RegExp(String(wanted.$matches)).test(found));
  }
  if ('$has' in wanted) return settle(has(variables, found, wanted.$has));
  if ('$length' in wanted) return settle(Object(found).length === wanted.$length);
  if ('$least' in wanted)
    return settle(typeof found === 'number' && found >= Number(wanted.$least));
  if ('$not' in wanted) return settle(mismatch(variables, found, wanted.$not) !== undefined);
  if ('$is' in wanted && !isInstance(found, String(wanted.$is))) return differ(found, wanted);
  return undefined;
}

function has(variables: Variables, found: unknown, part: unknown): boolean {
  if (Array.isArray(found))
    return found.some((item) => mismatch(variables, item, part) === undefined);
  const text = found instanceof Uint8Array ? textOf(found) : found;
  return typeof text === 'string' && text.includes(String(valueIn(variables, part)));
}

/** Whether it is an instance of a class of the library. */
export function isInstance(found: unknown, name: string): boolean {
  const type = (library as Record<string, unknown>)[name];
  return typeof type === 'function' && found instanceof type;
}

function sameMismatch(found: unknown, wanted: unknown): string | undefined {
  if (found instanceof Uint8Array) {
    const isSame =
      wanted instanceof Uint8Array
        ? Buffer.from(found).equals(wanted)
        : typeof wanted === 'string' && textOf(found) === wanted;
    return isSame ? undefined : differ(found, wanted);
  }
  return (found ?? null) === (wanted ?? null) ? undefined : differ(found, wanted);
}

const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');

const differ = (found: unknown, wanted: unknown) => `${show(found)} instead of ${show(wanted)}`;

function show(value: unknown): string {
  const plain = value instanceof Uint8Array ? textOf(value) : value;
  return (JSON.stringify(plain) ?? String(plain)).slice(0, 300);
}
