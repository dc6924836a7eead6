import { describe, expect, it } from 'vitest';
import {
  BARE_FACTS,
  BUILTIN_PROFILES,
  CAPABILITIES,
  comparePolicies,
  compilePolicy,
  DEVICE_NAMES,
  type PolicyDocument,
  parsePolicy,
  resolvePolicy,
  STAGES,
} from '../src/index.ts';

const of = (fields: object) => parsePolicy({ version: 1, ...fields });
const profilesOf = (profiles: Record<string, object>): ReadonlyMap<string, PolicyDocument> =>
  new Map(Object.entries(profiles).map(([name, fields]) => [name, of(fields)]));

describe('a policy with its overlays', () => {
  it('without a word is what the platform gives', () => {
    const policy = resolvePolicy(of({}));
    expect(policy.files).toEqual([]);
    expect(policy.capabilities.items).toEqual(CAPABILITIES);
    expect(policy.devices.items).toEqual(DEVICE_NAMES);
    expect(policy.network.items).toEqual([]);
    expect(policy.sockets.source.origin).toBe('platform');
  });

  it('adds files, calls and requirements; other lists replace', () => {
    const profiles = profilesOf({
      base: {
        files: [
          { path: '/a', access: ['read'] },
          { path: '/b', access: ['read'] },
        ],
        syscalls: [{ call: 'ptrace' }],
        require: ['files'],
        devices: ['null', 'zero'],
        stages: { grade: { files: [{ path: '/g', access: ['hide'] }], devices: [] } },
      },
    });
    const document = of({
      extends: 'base',
      files: [{ path: '/a/**', access: ['read', 'write'] }],
      syscalls: [{ call: 'kill' }],
      require: ['seccomp'],
      devices: ['null'],
      stages: { grade: { files: [{ path: '/b', access: ['hide'] }] } },
    });
    const policy = resolvePolicy(document, { profiles });
    const shown = (p: typeof policy) =>
      p.files.map(({ glob, source }) => `${glob.text} ${source.origin} ${source.field}`);
    expect(shown(policy)).toEqual(['/b profile base files.1', '/a policy files.0']);
    expect(policy.syscalls.map(({ call }) => call)).toEqual(['ptrace', 'kill']);
    expect(policy.require).toEqual(['files', 'seccomp']);
    expect(policy.devices).toEqual({
      items: ['null'],
      source: { origin: 'policy', field: 'devices' },
    });
    const grade = resolvePolicy(document, { profiles, stage: 'grade' });
    expect(shown(grade)).toEqual([
      '/a policy files.0',
      '/g profile base, stage grade stages.grade.files.0',
      '/b policy, stage grade stages.grade.files.0',
    ]);
    expect(grade.devices.items).toEqual([]);
    expect(grade.stage).toBe('grade');
  });

  it.each<[string, object, Record<string, object>]>([
    ['is not there', { extends: 'nobody' }, {}],
    ['extends itself', { extends: 'a' }, { a: { extends: 'b' }, b: { extends: 'a' } }],
    ['has a name of every object', { extends: 'constructor' }, {}],
  ])('a profile that %s is refused', (_, fields, profiles) => {
    expect(() => resolvePolicy(of(fields), { profiles: profilesOf(profiles) })).toThrowError(
      expect.objectContaining({ code: 'invalid-argument', details: { field: 'extends' } }),
    );
  });

  it('no operator replaces a profile of DSec', () => {
    const profiles = profilesOf({ locked: {} });
    expect(resolvePolicy(of({ extends: 'locked' }), { profiles }).files.length).toBeGreaterThan(3);
  });

  it('that reaches out without sockets for it is refused, in the stage where it is so', () => {
    const document = of({
      network: [{ kind: 'service', target: 'pypi' }],
      stages: { solve: { sockets: [{ family: 'unix' }] } },
    });
    expect(() => resolvePolicy(document)).not.toThrow();
    expect(() => resolvePolicy(document, { stage: 'solve' })).toThrowError(
      expect.objectContaining({
        code: 'invalid-argument',
        details: { field: 'network.0', other: 'stages.solve.sockets' },
      }),
    );
  });
});

describe('how much a policy may say', () => {
  const many = (count: number, path: (index: number) => string) =>
    of({ files: Array.from({ length: count }, (_, i) => ({ path: path(i), access: ['read'] })) });

  it.each<[string, PolicyDocument]>([
    ['patterns', many(256, (index) => `/${'a'.repeat(200)}${index}`)],
    ['patterns with wildcards', many(100, (index) => `/*${'a'.repeat(60)}${index}`)],
  ])('in %s, with all overlays, is bounded', (_, document) => {
    expect(() => resolvePolicy(document, { stage: 'solve' })).toThrowError(
      expect.objectContaining({ code: 'invalid-argument', details: { field: 'files' } }),
    );
  });

  it('the most that it may say is compiled in bounded steps', () => {
    const star = (index: number) => `/${`a*${index}`.repeat(10)}/**/${'a?'.repeat(8)}`;
    const literal = (index: number) => `/${'a'.repeat(50)}/${'a'.repeat(40)}${index}`;
    const files = [
      ...Array.from({ length: 60 }, (_, i) => ({ path: star(i + 10), access: ['read'] })),
      ...Array.from({ length: 190 }, (_, i) => ({ path: literal(i), access: ['read', 'write'] })),
    ];
    const policy = resolvePolicy(of({ files }));
    const facts = { ...BARE_FACTS, hasAppArmor: true, landlockAbi: 7 };
    expect(compilePolicy(policy, facts).protections.length).toBeGreaterThan(250);
  });
});

describe('the profiles of DSec', () => {
  it.each(Object.keys(BUILTIN_PROFILES))('%s is a policy, in every stage', (name) => {
    const document = parsePolicy(BUILTIN_PROFILES[name]);
    for (const stage of [undefined, ...STAGES]) {
      expect(() => resolvePolicy(document, { ...(stage && { stage }) })).not.toThrow();
    }
  });

  it('each takes away from the one before', () => {
    const [open, standard, locked] = ['open', 'default', 'locked'].map((name) =>
      resolvePolicy(of({ extends: name })),
    ) as [never, never, never];
    expect(comparePolicies(open, standard).isTightening).toBe(true);
    expect(comparePolicies(standard, open).isTightening).toBe(false);
    expect(comparePolicies(standard, locked).isTightening).toBe(true);
    expect(comparePolicies(locked, standard).isTightening).toBe(false);
  });
});
