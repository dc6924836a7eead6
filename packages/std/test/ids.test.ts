import {
  createSeededRandom,
  DsecError,
  digestOfHex,
  hexOfDigest,
  ID_LENGTH_MAX,
  newExecId,
  newSandboxId,
  parseDigest,
  parseEdgeId,
  parseExecId,
  parseJobId,
  parseName,
  parsePrincipalId,
  parseProjectId,
  parseSandboxId,
  parseShardId,
} from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

const label = (maxLength: number) => fc.stringMatching(new RegExp(`^[a-z0-9]{1,${maxLength}}$`));
const refusal = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(DsecError);
    return (error as DsecError).code;
  }
  return 'accepted';
};

describe('sandbox ids', () => {
  it('are made, parsed and routed by their parts, within the length of an id', () => {
    fc.assert(
      fc.property(label(8), label(11), fc.nat(), (shard, edge, seed) => {
        const id = newSandboxId(parseShardId(shard), parseEdgeId(edge), createSeededRandom(seed));
        expect(id.length).toBeLessThanOrEqual(ID_LENGTH_MAX);
        expect(id).toMatch(/^[a-z0-9]+(-[a-z0-9]+){3}$/);
        expect(parseSandboxId(id)).toMatchObject({ id, shard, edge });
      }),
      { seed: 1 },
    );
  });

  it('do not repeat', () => {
    const [shard, edge] = [parseShardId('s1'), parseEdgeId('e1')];
    const ids = new Set(Array.from({ length: 10_000 }, () => newSandboxId(shard, edge)));
    expect(ids.size).toBe(10_000);
  });

  it('that are changed anywhere parse to themselves or not at all', () => {
    const valid = newSandboxId(parseShardId('s1'), parseEdgeId('edge7'), createSeededRandom(7));
    const nth = fc.nat(valid.length);
    fc.assert(
      fc.property(nth, fc.nat(2), fc.string({ unit: 'binary' }), (at, removed, inserted) => {
        const changed = valid.slice(0, at) + inserted + valid.slice(at + removed);
        const code = refusal(() => {
          const { shard, edge, random } = parseSandboxId(changed);
          expect(`sb-${shard}-${edge}-${random}`).toBe(changed);
          expect(changed).toMatch(/^[a-z0-9-]+$/);
        });
        expect(['accepted', 'invalid-argument']).toContain(code);
      }),
      { seed: 1, numRuns: 1000 },
    );
  });

  it.each([
    '',
    'sb',
    'sb---',
    'sb-s1-e1-',
    'sb-s1-e1-aaaaaaaaaaaaaaaa\n',
    'sb-s1-e1-aaaaaaaaaaaaaaa',
    'sb-s1-e1-aaaaaaaaaaaaaaaaa',
    'sb-S1-e1-aaaaaaaaaaaaaaaa',
    'sb-s1-e1-aaaaaaaa-aaaaaaa',
    'xx-s1-e1-aaaaaaaaaaaaaaaa',
    'sb-..-e1-aaaaaaaaaaaaaaaa',
    'sb-x-evil.example-aaaaaaaaaaaaaaaa',
    'sb-123456789-e1-aaaaaaaaaaaaaaaa',
    'sb-s1-123456789012-aaaaaaaaaaaaaaaa',
    `sb-${'a'.repeat(10_000)}`,
  ])('%j is refused', (value) => {
    expect(refusal(() => parseSandboxId(value))).toBe('invalid-argument');
  });
});

describe('exec ids', () => {
  it('are made and parsed', () => {
    const id = newExecId(createSeededRandom(1));
    expect(id).toMatch(/^ex-[a-z2-7]{16}$/);
    expect(parseExecId(id)).toBe(id);
    for (const bad of ['', 'ex-', `${id}a`, `${id}\n`, id.toUpperCase(), id.replace(/.$/, '1')]) {
      expect(refusal(() => parseExecId(bad))).toBe('invalid-argument');
    }
  });
});

describe('names', () => {
  it('are safe as a component of a path', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 130 }), (value) => {
        if (refusal(() => parseName(value, 'name')) !== 'accepted') return;
        expect(value).toMatch(/^[a-z0-9][a-z0-9._-]*$/);
        expect(value.includes('..')).toBe(false);
        expect(value.length).toBeLessThanOrEqual(128);
      }),
      { seed: 1, numRuns: 1000 },
    );
  });

  it.each([
    '',
    '.',
    '..',
    '.x',
    '-x',
    'a..b',
    'a/b',
    'a\0',
    'A',
    'a%2e',
    'é',
    '__proto__',
    'a'.repeat(129),
  ])('%j is refused', (value) => {
    const parsers = [parseProjectId, parsePrincipalId, parseJobId];
    for (const parse of parsers) expect(refusal(() => parse(value))).toBe('invalid-argument');
  });

  it.each(['a', '7', 'swe-bench', 'v1.2.3', 'a_b', 'constructor', 'a'.repeat(128)])(
    '%j is taken',
    (value) => {
      expect(parseName(value, 'name')).toBe(value);
      expect(parseProjectId(value)).toBe(value);
    },
  );
});

describe('digests', () => {
  it('go to hex and back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const hex = Buffer.from(bytes).toString('hex');
        expect(hexOfDigest(digestOfHex(hex))).toBe(hex);
      }),
      { seed: 1 },
    );
  });

  it.each([
    '',
    'sha256:',
    `sha256:${'a'.repeat(63)}`,
    `sha256:${'A'.repeat(64)}`,
    `md5:${'a'.repeat(64)}`,
  ])('%j is refused', (value) => {
    expect(refusal(() => parseDigest(value, 'layerId'))).toBe('invalid-argument');
  });
});
