import { DsecError } from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { POLICY_LIMITS, parsePolicy, parsePolicyText, resolvePolicy } from '../src/index.ts';
import { RUNS, SEED } from './policy-arbitraries.ts';

const parse = (fields: object) => parsePolicy({ version: 1, ...fields });
const file = (path: string, ...access: string[]) => ({ path, access });

describe('a policy document', () => {
  it('is returned as it is', () => {
    const document = {
      version: 1,
      extends: 'default',
      files: [file('/work/**', 'read', 'write')],
      stages: { grade: { network: [], require: ['files'] } },
    };
    expect(parsePolicy(document)).toBe(document);
  });

  it.each<[string, object, string]>([
    ['another version', { version: 2 }, 'version'],
    ['an unknown field', { flies: [] }, 'flies'],
    ['an unknown stage', { stages: { deploy: {} } }, 'stages.deploy'],
    ['a stage in a stage', { stages: { solve: { stages: {} } } }, 'stages.solve.stages'],
    ['a relative path', { files: [file('work', 'read')] }, 'files.0.path'],
    ['a bad pattern', { files: [file('/a/../b', 'read')] }, 'files.0.path'],
    ['an access twice', { files: [file('/a', 'read', 'read')] }, 'files.0.access'],
    ['hide and more', { files: [file('/a', 'read', 'hide')] }, 'files.0.access'],
    ['all hidden', { files: [file('/**', 'hide')] }, 'files.0'],
    ['exec without read', { files: [file('/a', 'exec')] }, 'files.0.access'],
    ['a capability beyond the platform', { capabilities: ['sys_admin'] }, 'capabilities.0'],
    ['a device beyond the platform', { devices: ['kvm'] }, 'devices.0'],
    ['a family beyond the platform', { sockets: [{ family: 'packet' }] }, 'sockets.0.family'],
    ['a type beyond it', { sockets: [{ family: 'inet', types: ['raw'] }] }, 'sockets.0.types'],
    ['a family twice', { sockets: [{ family: 'unix' }, { family: 'unix' }] }, 'sockets.1'],
    ['a call that is needed', { syscalls: [{ call: 'execve' }] }, 'syscalls.0.call'],
    [
      'a condition that never holds',
      { syscalls: [{ call: 'kill', when: [{ argument: 1, equals: 3, mask: 1 }] }] },
      'syscalls.0.when.0',
    ],
    [
      'an argument of more than 32 bits',
      { syscalls: [{ call: 'kill', when: [{ argument: 1, equals: 2 ** 32 }] }] },
      'syscalls.0.when.0.equals',
    ],
    ['no domain', { network: [{ kind: 'domain', target: 'a.*.org' }] }, 'network.0.target'],
    [
      'an address as a domain',
      { network: [{ kind: 'domain', target: '10.0.0.1' }] },
      'network.0.target',
    ],
    ['no range', { network: [{ kind: 'address', target: '10.0.0.0/33' }] }, 'network.0.target'],
    [
      'bits behind it',
      { network: [{ kind: 'address', target: '10.0.0.1/8' }] },
      'network.0.target',
    ],
    ['no service', { network: [{ kind: 'service', target: 'py/pi' }] }, 'network.0.target'],
    [
      'a fault in a stage',
      { stages: { grade: { files: [file('/a', 'read'), file('/a/**', 'read')] } } },
      'stages.grade.files.1',
    ],
    ['an unknown requirement', { require: ['luck'] }, 'require.0'],
  ])('with %s is refused, and the field named', (_, fields, field) => {
    expect(() => parse(fields)).toThrowError(
      expect.objectContaining({
        code: 'invalid-argument',
        details: expect.objectContaining({ field }),
      }),
    );
  });

  it.each<[string, object, string, string, string]>([
    [
      'files',
      { files: [file('/a', 'read'), file('/b', 'read'), file('/a/**', 'hide')] },
      'files.2',
      'files.0',
      'contradicts',
    ],
    [
      'files',
      { files: [file('/a/b/*', 'read'), file('/a', 'hide')] },
      'files.0',
      'files.1',
      'contradicts',
    ],
    ['files', { files: [file('/a', 'read'), file('/a', 'read')] }, 'files.1', 'files.0', 'repeats'],
    [
      'network',
      {
        network: [
          { kind: 'service', target: 'pypi' },
          { kind: 'service', target: 'pypi' },
        ],
      },
      'network.1',
      'network.0',
      'repeats',
    ],
    [
      'syscalls',
      { syscalls: [{ call: 'kill' }, { call: 'kill', error: 'ENOSYS' }] },
      'syscalls.1',
      'syscalls.0',
      'contradicts',
    ],
  ])('whose %s %# contradict each other is refused, and both are named', (...row) => {
    const [, fields, field, other, word] = row;
    expect(() => parse(fields)).toThrowError(
      expect.objectContaining({
        code: 'invalid-argument',
        details: { field, other },
        message: expect.stringContaining(word),
      }),
    );
  });

  it('is bounded', () => {
    const files = Array.from({ length: POLICY_LIMITS.files + 1 }, (_, i) => file(`/${i}`, 'read'));
    expect(() => parse({ files })).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
    expect(() => parsePolicyText(' '.repeat(POLICY_LIMITS.bytes + 1))).toThrowError(
      expect.objectContaining({ code: 'too-large' }),
    );
  });

  it('of anything is a policy or a typed error', () => {
    const near = fc.letrec((tie) => ({
      key: fc.constantFrom(
        'version',
        'files',
        'path',
        'access',
        'stages',
        'grade',
        'network',
        'when',
      ),
      leaf: fc.oneof(fc.constantFrom(1, '/a', '/**', 'hide', 'read', 'domain'), fc.jsonValue()),
      node: fc.oneof(
        { depthSize: 'small' },
        tie('leaf'),
        fc.array(tie('node'), { maxLength: 3 }),
        fc.dictionary(tie('key') as fc.Arbitrary<string>, tie('node'), { maxKeys: 4 }),
      ),
    })).node;
    const property = fc.property(near, fc.boolean(), (value, isWrapped) => {
      const text = JSON.stringify(isWrapped ? { version: 1, ...(value as object) } : value);
      try {
        resolvePolicy(parsePolicyText(text ?? 'null'));
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(DsecError);
        expect((thrown as DsecError).code).toMatch(/^(invalid-argument|too-large)$/);
      }
    });
    fc.assert(property, { seed: SEED, numRuns: RUNS * 5 });
  });

  it('that is no JSON is refused', () => {
    expect(() => parsePolicyText('{"version": 1,}')).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
  });

  it.each(['__proto__', 'constructor', 'toString'])('a stage named %s is no stage', (stage) => {
    const text = `{"version": 1, "stages": {"${stage}": {}}}`;
    expect(() => parsePolicyText(text)).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
  });
});
