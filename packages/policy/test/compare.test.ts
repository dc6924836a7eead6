import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { comparePolicies, parsePolicy, resolvePolicy, VERBS } from '../src/index.ts';
import {
  filePolicyArbitrary,
  naiveIsAllowed,
  RUNS,
  SAMPLE_PATHS,
  SEED,
  switchArbitrary,
} from './policy-arbitraries.ts';

const of = (document: object) => resolvePolicy(parsePolicy({ version: 1, ...document }));

describe('a switch of policies', () => {
  it('that hides a tree is a tightening and ends sessions', () => {
    const change = comparePolicies(of({}), of({ files: [{ path: '/answers', access: ['hide'] }] }));
    expect(change).toEqual({
      isTightening: true,
      loosenings: [],
      hides: ['/answers'],
      outlived: ['files'],
      endsSessions: true,
    });
  });

  it('to the same policy changes nothing', () => {
    const policy = of({ extends: 'locked', syscalls: [{ call: 'ptrace' }] });
    expect(comparePolicies(policy, policy)).toEqual({
      isTightening: true,
      loosenings: [],
      hides: [],
      outlived: [],
      endsSessions: false,
    });
  });

  it('that allows an exception is a loosening, with a path as its example', () => {
    const old = of({ files: [{ path: '/a', access: ['read'] }] });
    const next = of({
      files: [
        { path: '/a', access: ['read'] },
        { path: '/a/*.log', access: ['read', 'write'] },
      ],
    });
    const [loosening, ...more] = comparePolicies(old, next).loosenings;
    expect(more).toEqual([]);
    expect(loosening).toMatchObject({ section: 'files', field: 'files.1' });
    expect(loosening?.what).toMatch(/^write \/a\/[^/]*\.log$/);
  });

  it.each([
    [{}, { sockets: [{ family: 'unix' }] }, true],
    [{ sockets: [{ family: 'unix' }] }, { sockets: [{ family: 'unix', types: ['stream'] }] }, true],
    [
      { sockets: [{ family: 'unix', types: ['stream'] }] },
      { sockets: [{ family: 'unix' }] },
      false,
    ],
    [{ capabilities: ['chown'] }, { capabilities: [] }, true],
    [{ capabilities: ['chown'] }, { capabilities: ['kill'] }, false],
    [{ devices: ['null'] }, { devices: ['null', 'tty'] }, false],
    [{ require: ['files'] }, {}, false],
    [{}, { require: ['files'] }, true],
    [{ syscalls: [{ call: 'ptrace' }] }, {}, false],
    [{}, { syscalls: [{ call: 'ptrace' }] }, true],
    [
      { syscalls: [{ call: 'kill', when: [{ argument: 1, equals: 9 }] }] },
      { syscalls: [{ call: 'kill' }] },
      true,
    ],
    [
      { syscalls: [{ call: 'kill' }] },
      { syscalls: [{ call: 'kill', when: [{ argument: 1, equals: 9 }] }] },
      false,
    ],
    [
      { syscalls: [{ call: 'kill', when: [{ argument: 1, equals: 9 }] }] },
      { syscalls: [{ call: 'kill', when: [{ argument: 1, equals: 1, mask: 1 }] }] },
      true,
    ],
    [
      { syscalls: [{ call: 'kill', when: [{ argument: 1, equals: 1, mask: 1 }] }] },
      { syscalls: [{ call: 'kill', when: [{ argument: 1, equals: 9 }] }] },
      false,
    ],
  ])('from %j to %j: %s', (old, next, isTightening) => {
    expect(comparePolicies(of(old), of(next)).isTightening).toBe(isTightening);
  });

  const rule = (kind: string, target: string, rest: object = {}) => ({
    network: [{ kind, target, ...rest }],
  });
  it.each([
    [rule('service', 'pypi'), {}, true],
    [{}, rule('service', 'pypi'), false],
    [rule('domain', '*.example.org'), rule('domain', 'a.example.org'), true],
    [rule('domain', '*.example.org'), rule('domain', '*.a.example.org'), true],
    [rule('domain', '*.example.org'), rule('domain', 'example.org'), false],
    [rule('domain', '*.example.org'), rule('domain', 'badexample.org'), false],
    [rule('domain', 'example.org'), rule('domain', 'example.org', { ports: [22] }), false],
    [rule('address', '10.0.0.0/8'), rule('address', '10.1.0.0/16'), true],
    [rule('address', '10.1.0.0/16'), rule('address', '10.0.0.0/8'), false],
    [rule('address', '10.0.0.0/8'), rule('address', '10.0.0.1', { ports: [22] }), true],
    [rule('address', '10.0.0.0/8', { ports: [22] }), rule('address', '10.0.0.1'), false],
    [rule('address', '10.0.0.1', { protocol: 'tcp' }), rule('address', '10.0.0.1'), false],
    [rule('address', '::/0'), rule('address', '10.0.0.1'), false],
    [rule('address', '2001:db8::/32'), rule('address', '2001:db8:1::1'), true],
    [rule('address', '::ffff:10.0.0.0/104'), rule('address', '::ffff:a00:1'), true],
  ])('of networks, from %j to %j: %s', (old, next, isTightening) => {
    const change = comparePolicies(of(old), of(next));
    expect(change.isTightening).toBe(isTightening);
    // Connections are cut without ending anything.
    expect(change.endsSessions).toBe(false);
  });

  it('is never called a tightening when it allows more, and says which paths', () => {
    const pairs = fc.oneof(switchArbitrary, fc.tuple(filePolicyArbitrary, filePolicyArbitrary));
    let tightenings = 0;
    const property = fc.property(pairs, ([old, next]) => {
      const change = comparePolicies(old, next);
      const gains = SAMPLE_PATHS.filter((path) =>
        VERBS.some((verb) => naiveIsAllowed(next, path, verb) && !naiveIsAllowed(old, path, verb)),
      );
      const hidden = SAMPLE_PATHS.some(
        (path) => naiveIsAllowed(old, path, 'read') && !naiveIsAllowed(next, path, 'read'),
      );
      expect(gains.length > 0 && change.isTightening, gains[0]).toBe(false);
      tightenings += Number(change.isTightening);
      if (hidden) expect(change.hides.length).toBeGreaterThan(0);
      if (hidden) expect(change.endsSessions).toBe(true);
      for (const { what } of change.loosenings) {
        const [, verbs = '', path = ''] = /^([a-z, ]+) (\/.*)$/.exec(what) ?? [];
        for (const verb of VERBS.filter((one) => verbs.includes(one))) {
          expect(naiveIsAllowed(old, path, verb), what).toBe(false);
          expect(naiveIsAllowed(next, path, verb), what).toBe(true);
        }
      }
    });
    fc.assert(property, { seed: SEED, numRuns: RUNS });
    expect(tightenings).toBeGreaterThan(RUNS / 10);
  }, 120_000);

  it('with more rules than it looks at is no tightening', () => {
    const files = Array.from({ length: 200 }, (_, index) => ({
      path: `/**/a${index}*b*c*d*/x?y?`,
      access: ['read'],
    }));
    const old = of({ files });
    const change = comparePolicies(
      old,
      of({ files: [...files, { path: '/z', access: ['hide'] }] }),
    );
    expect(change).toMatchObject({ isTightening: false, endsSessions: true });
  }, 60_000);
});
