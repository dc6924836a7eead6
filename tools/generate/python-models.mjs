/**
 * Pydantic models of every component of the OpenAPI document, made by the pinned datamodel-code-generator.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const HEADER = '# Generated from spec/openapi.json by `npm run generate`. Do not edit.';
/**
 * Bounds are the server's to check: an older client must not refuse what a newer server allows. Without
 * them the models are also what a person would write, since each bounded list item would become a class of
 * its own.
 */
const BOUNDS = new Set([
  'pattern',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'maxProperties',
]);

/** The text of `models_gen.py`, or why it cannot be made here. */
export function renderPythonModels(root, document) {
  const tool = join(root, '.venv/bin/datamodel-codegen');
  const requirements = readFileSync(join(root, 'python/requirements-dev.txt'), 'utf8');
  const pinned = /^datamodel-code-generator==(\S+)$/m.exec(requirements)?.[1];
  if (!existsSync(tool)) return { skipped: `no ${tool}: run node tools/bootstrap.mjs --test` };
  const found = execFileSync(tool, ['--version'], { encoding: 'utf8' }).trim().split(' ').at(-1);
  if (found !== pinned) return { skipped: `datamodel-codegen is ${found}, pinned is ${pinned}` };

  const directory = mkdtempSync(join(tmpdir(), 'dsec-models-'));
  try {
    const input = join(directory, 'openapi.json');
    const output = join(directory, 'models_gen.py');
    writeFileSync(input, JSON.stringify(withoutBounds(document)));
    execFileSync(tool, ['--input', input, '--output', output, ...OPTIONS], { stdio: 'pipe' });
    return { text: withSnakeNames(readFileSync(output, 'utf8')) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const OPTIONS = [
  ['--input-file-type', 'openapi'],
  ['--output-model-type', 'pydantic_v2.BaseModel'],
  ['--target-python-version', '3.10'],
  ['--enum-field-as-literal', 'all'],
  ['--extra-fields', 'ignore'],
  ['--formatters', 'builtin'],
  ['--custom-file-header', HEADER],
  '--collapse-root-models',
  '--snake-case-field',
  '--allow-population-by-field-name',
  '--use-standard-collections',
  '--use-union-operator',
  '--use-schema-description',
  '--use-double-quotes',
  '--disable-timestamp',
].flat();

function withoutBounds(value) {
  if (Array.isArray(value)) return value.map(withoutBounds);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value)
    // The value of a keyword, not a property that bears its name.
    .filter(([key, part]) => !BOUNDS.has(key) || typeof part === 'object')
    .map(([key, part]) => [key, withoutBounds(part)]);
  const { patternProperties, ...rest } = Object.fromEntries(entries);
  if (patternProperties === undefined) return rest;
  return { ...rest, additionalProperties: Object.values(patternProperties)[0] };
}

/**
 * What type checkers understand: they take a field's alias for the only name of its parameter, so that the
 * names on the wire come by a rule instead, and a default only when it is called one.
 */
function withSnakeNames(text) {
  for (const [, snake, camel] of text.matchAll(/^ {4}(\w+): [^:]*?\balias="(\w+)"/gm)) {
    if (toCamel(snake) !== camel) throw new Error(`${camel} is no camel case of ${snake}`);
  }
  return text
    .replace(/alias="\w+",?\s*/g, '')
    .replace(/Field\((\s*)None\b/g, 'Field($1default=None')
    .replace(/Field\((\s*)\.\.\.,?\s*/g, 'Field($1')
    .replace(/,\s*\)$/gm, (end) => (end.includes('\n') ? end : ')'))
    .replace(/Field\(default=None\)/g, 'None')
    .replace(/ = Field\(\s*\)/g, '')
    .replaceAll(
      '        extra="ignore",\n',
      '        alias_generator=to_camel,\n        extra="ignore",\n',
    )
    .replace(/^(from pydantic import .*)$/m, '$1\nfrom pydantic.alias_generators import to_camel');
}

const toCamel = (name) => name.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
