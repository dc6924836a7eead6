import { DsecError } from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileRules, mergeRanges, rangesOf } from '../src/bpf/entries.ts';
import { createGrants } from '../src/bpf/grants.ts';
import type { RuleEntry, RuleRange } from '../src/bpf/layout.ts';
import { contains, formatPrefix, parsePrefix } from '../src/rules/address.ts';
import type { AddressRule, NameRule } from '../src/rules/compiled.ts';

const shown = (entries: readonly RuleEntry[]) =>
  entries.map(({ prefix, ranges }) => [
    formatPrefix(prefix),
    ranges.map(({ first, last, protocol }) => `${protocol}:${first}-${last}`).join(' '),
  ]);

const rule = (prefix: string, ...ports: [number, number][]): AddressRule => ({ prefix, ports });

describe('entries', () => {
  test.each<[string, AddressRule[], [string, string][]]>([
    ['one rule', [rule('192.0.2.0/24', [80, 80])], [['192.0.2.0/24', '0:80-80']]],
    ['no ports: all', [rule('192.0.2.0/24')], [['192.0.2.0/24', '0:0-65535']]],
    [
      'a longer prefix holds what the shorter one opens',
      [rule('192.0.2.1/32', [443, 443]), rule('192.0.2.0/24', [80, 80])],
      [
        ['192.0.2.1/32', '0:80-80 0:443-443'],
        ['192.0.2.0/24', '0:80-80'],
      ],
    ],
    [
      'the same prefix twice',
      [rule('192.0.2.0/24', [80, 80]), rule('192.0.2.0/24', [81, 90])],
      [['192.0.2.0/24', '0:80-90']],
    ],
    [
      'IPv4 and IPv6 do not meet',
      [rule('0.0.0.0/0', [80, 80]), rule('::/0', [81, 81]), rule('2001:db8::1/128', [82, 82])],
      [
        ['0.0.0.0/0', '0:80-80'],
        ['::/0', '0:81-81'],
        ['2001:db8::1/128', '0:81-82'],
      ],
    ],
    [
      'what any protocol may is not said again',
      [rule('192.0.2.0/24', [1, 100]), { ...rule('192.0.2.1/32', [80, 80]), protocol: 'tcp' }],
      [
        ['192.0.2.0/24', '0:1-100'],
        ['192.0.2.1/32', '0:1-100'],
      ],
    ],
  ])('%s', (_, rules, entries) => {
    expect(shown(compileRules(rules).entries)).toEqual(entries);
  });

  test('more ranges than fit are refused, also where two rules meet', () => {
    const ports = (from: number, count: number) =>
      Array.from({ length: count }, (_, i): [number, number] => [from + 2 * i, from + 2 * i]);
    expect(() => compileRules([rule('192.0.2.1/32', ...ports(0, 8))])).not.toThrow();
    expect(() => compileRules([rule('192.0.2.1/32', ...ports(0, 9))])).toThrow(DsecError);
    const two = [rule('192.0.2.0/24', ...ports(0, 5)), rule('192.0.2.1/32', ...ports(100, 5))];
    expect(() => compileRules(two)).toThrow(/10 separate port ranges/);
  });

  test('ports that are none', () => {
    for (const ports of [
      [80, 79],
      [-1, 5],
      [0, 65_536],
      [1.5, 2],
    ] as const) {
      expect(() => rangesOf([ports], 'tcp', 0n)).toThrow(/no range of ports/);
    }
  });
});

const range = fc
  .record({
    a: fc.nat(40),
    b: fc.nat(40),
    protocol: fc.constantFrom(0, 6, 17),
    expiresNs: fc.constantFrom(0n, 5n, 9n),
  })
  .map(
    ({ a, b, ...rest }): RuleRange => ({ first: Math.min(a, b), last: Math.max(a, b), ...rest }),
  );

/** Whether one of them lets it through at that time. */
const isOpen = (ranges: readonly RuleRange[], port: number, protocol: number, now: bigint) =>
  ranges.some(
    (r) =>
      r.first <= port &&
      port <= r.last &&
      (r.protocol === 0 || r.protocol === protocol) &&
      (r.expiresNs === 0n || r.expiresNs > now),
  );

test('joined ranges open the same at any time, and are no more than before', () => {
  fc.assert(
    fc.property(fc.array(range, { maxLength: 12 }), (ranges) => {
      const merged = mergeRanges(ranges);
      expect(merged.length).toBeLessThanOrEqual(ranges.length);
      for (let port = 0; port <= 41; port += 1) {
        for (const protocol of [6, 17]) {
          for (const now of [1n, 5n, 9n]) {
            expect(isOpen(merged, port, protocol, now)).toBe(isOpen(ranges, port, protocol, now));
          }
        }
      }
    }),
    { seed: 7, numRuns: 300 },
  );
});

test('the longest match opens what any rule does', () => {
  const prefix = fc
    .record({ value: fc.nat(255), length: fc.integer({ min: 24, max: 32 }) })
    .map(({ value, length }) => `192.0.2.${value & (0xff << (32 - length)) & 0xff}/${length}`);
  const rules = fc.array(
    fc.record({ prefix, port: fc.nat(5) }).map(({ prefix: p, port }) => rule(p, [port, port])),
    { minLength: 1, maxLength: 8 },
  );
  fc.assert(
    fc.property(rules, fc.nat(255), fc.nat(5), (list, last, port) => {
      const address = parsePrefix(`192.0.2.${last}/32`, 'address');
      const matching = compileRules(list)
        .entries.filter((entry) => contains(entry.prefix, address))
        .sort((a, b) => b.prefix.length - a.prefix.length)[0];
      const expected = list.some(
        (r) => contains(parsePrefix(r.prefix, 'p'), address) && r.ports[0]?.[0] === port,
      );
      expect(isOpen(matching?.ranges ?? [], port, 6, 1n)).toBe(expected);
    }),
    { seed: 7, numRuns: 500 },
  );
});

describe('grants', () => {
  const none = compileRules([]);
  const name = (pattern: string, isDedicated = true): NameRule => ({
    pattern,
    ports: [[5432, 5432]],
    isDedicated,
  });
  const answer = (address: string, pattern: string, expiresMs: number) => ({
    address,
    pattern,
    ports: [[443, 443]] as const,
    expiresMs,
  });

  test('two names at one address do not end each other’s time', () => {
    const grants = createGrants();
    grants.add(answer('192.0.2.1', 'a.example', 100), none);
    const entry = grants.add(answer('192.0.2.1', 'b.example', 50), none);
    expect(entry.ranges).toEqual([{ first: 443, last: 443, protocol: 0, expiresNs: 100_000_000n }]);
    // An earlier end of the same name does not shorten what was said before.
    expect(grants.add(answer('192.0.2.1', 'a.example', 10), none).ranges).toEqual(entry.ranges);
    expect(grants.size).toBe(1);
  });

  test('what names no longer open goes; what they open differently changes', () => {
    const grants = createGrants();
    grants.add(answer('192.0.2.1', 'a.example', 100), none);
    grants.add(answer('192.0.2.2', 'b.example', 100), none);
    grants.add(answer('192.0.2.3', 'c.example', 100), none);
    grants.keepNamed({
      version: 2,
      addresses: [],
      names: [name('a.example'), name('b.example', false)],
    });
    expect(shown(grants.entries(none))).toEqual([['192.0.2.1/32', '0:5432-5432']]);
  });

  test('room is made of what ended first, and only of what ended', () => {
    const grants = createGrants();
    grants.add(answer('192.0.2.1', 'a', 20), none);
    grants.add(answer('192.0.2.2', 'a', 10), none);
    grants.add(answer('192.0.2.3', 'a', 1000), none);
    const next = () => {
      const prefix = grants.dropExpired(30_000_000n);
      return prefix && formatPrefix(prefix);
    };
    expect([next(), next(), next()]).toEqual(['192.0.2.2/32', '192.0.2.1/32', undefined]);
  });

  test('what an earlier process granted stays until the rules change', () => {
    const grants = createGrants();
    const ranges: RuleRange[] = [
      { first: 80, last: 80, protocol: 0, expiresNs: 0n },
      { first: 443, last: 443, protocol: 0, expiresNs: 7n },
    ];
    grants.restore({ prefix: parsePrefix('192.0.2.1/32', 'p'), ranges });
    grants.restore({ prefix: parsePrefix('192.0.2.0/24', 'p'), ranges });
    expect(shown(grants.entries(none))).toEqual([['192.0.2.1/32', '0:443-443']]);
    grants.keepNamed({ version: 2, addresses: [], names: [name('a.example')] });
    expect(grants.size).toBe(0);
  });

  test('no time to expire at never means for ever', () => {
    const { ranges } = createGrants().add(answer('192.0.2.1', 'a', 0), none);
    expect(ranges[0]?.expiresNs).toBe(1_000_000n);
    expect(() => createGrants().add(answer('192.0.2.1', 'a', Number.NaN), none)).toThrow(DsecError);
  });

  test('a range is no address', () => {
    expect(() => createGrants().add(answer('192.0.2.0/24', 'a', 1), none)).toThrow(/is a range/);
  });
});
