/** The patterns of the wire are those of the parsers in std, no wider and no narrower. */
import { isValid, names } from '@dsec/protocol';
import {
  newExecId,
  newSandboxId,
  parseDigest,
  parseEdgeId,
  parseExecId,
  parseName,
  parseSandboxId,
  parseShardId,
} from '@dsec/std';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const accepts = (parse: () => unknown) => {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
};

const part = fc.string({ unit: fc.constantFrom(...'abz09._-A/: \n'), maxLength: 12 });
const near = fc.oneof(
  fc.string(),
  part,
  fc.array(part, { minLength: 3, maxLength: 5 }).map((parts) => ['sb', ...parts].join('-')),
  fc
    .tuple(
      fc.stringMatching(/^[a-z0-9]{1,9}$/),
      fc.stringMatching(/^[a-z0-9]{1,12}$/),
      fc.stringMatching(/^[a-z0-9]{16}$/),
    )
    .map((parts) => `sb-${parts.join('-')}`),
  fc.stringMatching(/^ex-[a-z2-7]{15,17}$/),
  fc.stringMatching(/^sha256:[0-9a-f]{63,65}$/),
  fc.constantFrom('a'.repeat(128), 'a'.repeat(129), 'a.', 'a..', '.a', 'a..b', ''),
);

test.each([
  ['name', names.name, (value: string) => parseName(value, 'name')],
  ['sandboxId', names.sandboxId, parseSandboxId],
  ['edgeId', names.edgeId, parseEdgeId],
  ['execId', names.execId, parseExecId],
  ['digest', names.digest, parseDigest],
])('%s accepts what the parser accepts', (_, schema, parse) => {
  fc.assert(
    fc.property(near, (value) => {
      expect(isValid(schema, value)).toBe(accepts(() => parse(value)));
    }),
    { seed: 5, numRuns: 3000 },
  );
});

test('fresh ids are valid', () => {
  const sandbox = newSandboxId(parseShardId('s'), parseEdgeId('e'));
  expect(isValid(names.sandboxId, sandbox)).toBe(true);
  expect(isValid(names.execId, newExecId())).toBe(true);
});

test('a long hostile name is refused in no time', () => {
  expect(isValid(names.name, `${'a.'.repeat(50_000)}!`)).toBe(false);
});
