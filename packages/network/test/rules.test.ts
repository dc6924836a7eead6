import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  compileNetwork,
  createAddressFilter,
  DEFAULT_SERVICES,
  findNameRule,
  formatPrefix,
  loadOperatorNetwork,
  normalizeName,
  normalizePattern,
  normalizeWireName,
  OperatorNetwork,
  parsePrefix,
  type Service,
  subtract,
} from '@dsec/network';
import { check, NetworkRule } from '@dsec/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

const compile = (rules: NetworkRule[], operator: OperatorNetwork = {}, more: object = {}) =>
  compileNetwork(rules, { version: 1, operator, ...more });
const codeOf = (run: () => unknown) => {
  try {
    run();
  } catch (thrown) {
    return (thrown as { code?: string }).code;
  }
  return 'none';
};

describe('names', () => {
  test.each([
    ['PyPI.org', 'pypi.org'],
    ['pypi.org.', 'pypi.org'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['xn--80ak6aa92e.com', 'xn--80ak6aa92e.com'],
    ['my_bucket.s3.example', 'my_bucket.s3.example'],
    ['例え.jp', 'xn--r8jz45g.jp'],
  ])('%s is %s', (text, name) => {
    expect(normalizeName(text, 'x')).toBe(name);
  });

  test.each([
    ...['ｐypi.org', 'аррӏе.com', 'pаypal.com', 'ex%61mple.com', 'a\u00adb.com', 'ﬁle.com'],
    ...['xn--a.example', 'xn--pypi-.org', '127.1', '0x7f.1', '1.2.3.4', '::1', 'localhost', 'a..b'],
    ...['-a.com', `${'a'.repeat(64)}.com`, `${'a.'.repeat(127)}com`, '', '.', 'a b.com', 'a.0x1'],
  ])('%j is refused', (text) => {
    expect(codeOf(() => normalizeName(text, 'x'))).toBe('invalid-argument');
  });

  test.each([
    ['*.example.com', '*.example.com'],
    ['*.S3.Example.com.', '*.s3.example.com'],
  ])('the pattern %s', (text, pattern) => {
    expect(normalizePattern(text, 'x')).toBe(pattern);
  });

  test.each([
    ...['*', '*.com', '*.co.uk', '*.github.io', '*.s3.amazonaws.com', '*.com.', '*.*.example.com'],
    ...['a*.example.com', 'a.*.com', '**.example.com', '*example.com'],
  ])('the pattern %s is refused', (text) => {
    expect(codeOf(() => normalizePattern(text, 'x'))).toBe('invalid-argument');
  });

  test('the name in a packet is compared without case and without its last dot', () => {
    expect(normalizeWireName('PyPi.ORG.')).toBe('pypi.org');
    for (const text of ['10.0.0.1', 'a..b', 'localhost', 'a\0.com', '', '[::1]', 'a.com..']) {
      expect(normalizeWireName(text)).toBeUndefined();
    }
  });
});

describe('address ranges', () => {
  test.each([
    ['1.2.3.4', '1.2.3.4/32'],
    ['8.0.0.0/8', '8.0.0.0/8'],
    ['2606:4700:0:0::/32', '2606:4700::/32'],
    ['2001:4860::8888', '2001:4860::8888/128'],
    ['::ffff:1.2.3.4', '::ffff:102:304/128'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3/128'],
    ['::', '::/128'],
    ['1::', '1::/128'],
    ['2a00:10:0:0:8::', '2a00:10:0:0:8::/128'],
  ])('%s is written %s', (text, written) => {
    expect(formatPrefix(parsePrefix(text, 'x'))).toBe(written);
  });

  test.each([
    '10.0.0.1/8',
    '1.2.3.4/33',
    '1.2.3',
    '::1%lo',
    '1.2.3.4/',
    '1.2.3.4/08',
    '::/129',
    'a/8',
  ])('%s is refused', (text) => {
    expect(codeOf(() => parsePrefix(text, 'x'))).toBe('invalid-argument');
  });

  test('any address that is written comes back', () => {
    const value = fc.bigInt({ min: 0n, max: 2n ** 128n - 1n });
    const sparse = fc.tuple(value, fc.nat(0xff)).map(([v, mask]) => {
      const groups = Array.from({ length: 8 }, (_, i) => ((mask >> i) & 1 ? 0xffffn : 0n));
      return v & groups.reduce<bigint>((all, group) => (all << 16n) | group, 0n);
    });
    fc.assert(
      fc.property(fc.oneof<fc.Arbitrary<bigint>[]>(value, sparse), (v) => {
        const prefix = { family: 6 as const, value: v, length: 128 };
        expect(parsePrefix(formatPrefix(prefix), 'x')).toEqual(prefix);
      }),
      { seed: 5, numRuns: 500 },
    );
  });

  test('a hole leaves exactly the rest', () => {
    const whole = parsePrefix('8.0.0.0/8', 'x');
    const rest = subtract([whole], [parsePrefix('8.8.8.8/32', 'x')]);
    const size = rest.reduce((sum, prefix) => sum + 2 ** (32 - prefix.length), 0);
    expect(size).toBe(2 ** 24 - 1);
    expect(subtract([parsePrefix('8.8.8.8', 'x')], [whole])).toEqual([]);
  });

  test('nothing private, local, special or of the node passes the filter', () => {
    const filter = createAddressFilter({
      denied: ['8.8.4.4', '10.1.1.1'],
      permitted: ['10.1.0.0/16'],
    });
    const bad = [
      ...['127.0.0.1', '10.0.0.1', '172.16.9.9', '192.168.1.1', '169.254.169.254', '100.64.0.1'],
      ...['100.100.100.200', '168.63.129.16', '0.0.0.0', '224.0.0.1', '255.255.255.255', '8.8.4.4'],
      ...['::1', '::', '::ffff:8.8.8.8', '64:ff9b::808:808', 'fe80::1', 'fd00:ec2::254', 'ff02::1'],
      ...[
        '2002:7f00:1::',
        '2001::1',
        '2001:db8::1',
        '10.1.1.1',
        'x',
        '8.8.8.8/32',
        '8.8',
        '010.1.2.3',
      ],
    ];
    expect(bad.filter((address) => filter.isAllowed(address))).toEqual([]);
    for (const good of ['8.8.8.8', '1.1.1.1', '2606:4700::1111', '10.1.2.3']) {
      expect(filter.isAllowed(good)).toBe(true);
    }
  });
});

describe('compiling', () => {
  test('services, domains and addresses', () => {
    const { names, addresses, version } = compile(
      [
        { kind: 'service', target: 'PyPI' },
        { kind: 'domain', target: '*.Example.com', ports: [443, 443, 8443] },
        { kind: 'address', target: '9.9.9.9', ports: [53], protocol: 'udp' },
      ],
      { dedicated: ['*.example.com'] },
    );
    expect(version).toBe(1);
    expect(names).toEqual([
      { pattern: 'pypi.org', ports: [[443, 443]], isDedicated: false, service: 'pypi' },
      {
        pattern: 'files.pythonhosted.org',
        ports: [[443, 443]],
        isDedicated: false,
        service: 'pypi',
      },
      {
        pattern: '*.example.com',
        ports: [
          [443, 443],
          [8443, 8443],
        ],
        isDedicated: true,
      },
    ]);
    expect(addresses).toEqual([{ prefix: '9.9.9.9/32', ports: [[53, 53]], protocol: 'udp' }]);
  });

  test('every default service compiles, and each rule passes the wire’s own shape', () => {
    for (const target of Object.keys(DEFAULT_SERVICES)) {
      const rule = check(NetworkRule, { kind: 'service', target }, 'rule');
      expect(compile([rule]).names.length).toBeGreaterThan(0);
    }
  });

  test('a mirror takes the place of the public names', () => {
    const mirror = { names: ['mirror.corp.example'], ports: [3141], addresses: ['10.0.0.9'] };
    const { names } = compile([{ kind: 'service', target: 'pypi' }], {
      services: { pypi: { names: ['pypi.org'], mirror } },
    });
    expect(names).toEqual([
      {
        ...{ pattern: 'mirror.corp.example', ports: [[3141, 3141]], isDedicated: false },
        ...{ service: 'pypi', addresses: ['10.0.0.9'] },
      },
    ]);
  });

  test('the whole Internet leaves out what is special and what is denied', () => {
    const { addresses } = compile(
      [{ kind: 'address', target: '0.0.0.0/0' }],
      { deniedAddresses: ['8.8.8.0/24'], permittedAddresses: ['10.1.0.0/16'] },
      { nodeRanges: ['9.9.9.9', '10.1.1.1'] },
    );
    const open = addresses.map(({ prefix }) => parsePrefix(prefix, 'x'));
    const isOpen = (text: string) => {
      const { value } = parsePrefix(text, 'x');
      return open.some((p) => p.value <= value && value < p.value + (1n << BigInt(32 - p.length)));
    };
    for (const text of ['8.8.7.1', '1.1.1.1', '10.1.2.3'])
      expect([text, isOpen(text)]).toEqual([text, true]);
    for (const text of [
      '8.8.8.8',
      '9.9.9.9',
      '10.1.1.1',
      '10.2.0.1',
      '127.0.0.1',
      '169.254.169.254',
    ]) {
      expect([text, isOpen(text)]).toEqual([text, false]);
    }
  });

  test.each<[string, NetworkRule, OperatorNetwork]>([
    ['not-found', { kind: 'service', target: 'nothing' }, {}],
    ['not-found', { kind: 'service', target: 'npm' }, { withoutDefaults: true }],
    ['invalid-argument', { kind: 'domain', target: '10.0.0.1' }, {}],
    ['invalid-argument', { kind: 'domain', target: '*.com' }, {}],
    ['invalid-argument', { kind: 'address', target: 'example.com' }, {}],
    ['permission-denied', { kind: 'address', target: '169.254.169.254' }, {}],
    ['permission-denied', { kind: 'address', target: '10.0.0.0/8' }, {}],
    [
      'permission-denied',
      { kind: 'domain', target: 'a.evil.example' },
      { denied: ['*.evil.example'] },
    ],
    [
      'permission-denied',
      { kind: 'domain', target: '*.evil.example' },
      { denied: ['*.evil.example'] },
    ],
    ['permission-denied', { kind: 'service', target: 'npm' }, { denied: ['registry.npmjs.org'] }],
    ['permission-denied', { kind: 'service', target: 'npm', ports: [22] }, {}],
    ['unsupported', { kind: 'domain', target: 'example.com', protocol: 'udp' }, {}],
  ])('%s for %j with %j', (code, rule, operator) => {
    expect(codeOf(() => compile([rule], operator))).toBe(code);
  });

  test('terms narrow a service, where its index can be read', () => {
    const rules: NetworkRule[] = [{ kind: 'service', target: 'pypi' }];
    const terms = { pypi: { asOf: '2024-05-01', deny: ['Task_Project'] } };
    const [rule] = compile(rules, {}, { terms }).names;
    expect(rule).toMatchObject({
      ...{ asOf: '2024-05-01T00:00:00.000Z', deny: ['task-project'], index: 'pypi' },
    });
    const other = (service: string, asOf: string) =>
      codeOf(() =>
        compile([{ kind: 'service', target: service }], {}, { terms: { [service]: { asOf } } }),
      );
    expect(other('go', '2024-05-01')).toBe('unsupported');
    expect(other('npm', 'yesterday')).toBe('invalid-argument');
  });
});

describe('what an operator maps', () => {
  const compileService = (service: Service, ports?: number[]) =>
    compile([{ kind: 'service', target: 'x', ...(ports ? { ports } : {}) }], {
      services: { x: service },
    });
  const api = { names: ['api.example.com'] };

  test.each<[string, Service]>([
    [
      'invalid-argument',
      { ...api, mirror: { names: ['m.example.com'], addresses: ['m.example.com'] } },
    ],
    ['invalid-argument', { ...api, inject: { header: 'host', secret: 's' } }],
    ['invalid-argument', { ...api, inject: { header: 'transfer-encoding', secret: 's' } }],
    ['invalid-argument', { names: ['*.com'] }],
    ['unsupported', { ...api, dedicated: true, inject: { header: 'x-key', secret: 's' } }],
    ['unsupported', { ...api, dedicated: true, terminate: true }],
  ])('%s for %j', (code, service) => {
    expect(codeOf(() => compileService(service))).toBe(code);
  });

  test('an empty list of ports opens no others', () => {
    expect(compileService(api, []).names[0]?.ports).toEqual([[443, 443]]);
    const [rule] = compile([{ kind: 'domain', target: 'a.example.com', ports: [] }]).names;
    expect(rule?.ports.flat()).toEqual([80, 80, 443, 443]);
  });

  test('TLS of a name ends at the proxy, by whatever rule it is opened', () => {
    const operator = {
      terminated: ['*.cdn.example.com'],
      services: { x: { names: ['b.cdn.example.com'] } },
    };
    const { names } = compile(
      [
        { kind: 'domain', target: 'a.cdn.example.com' },
        { kind: 'domain', target: 'cdn.example.com' },
        { kind: 'service', target: 'x' },
      ],
      operator,
    );
    expect(names.map((rule) => rule.isTerminated)).toEqual([true, undefined, true]);
  });
});

describe('matching', () => {
  test('the most specific rule decides; what is denied stays denied', () => {
    const network = compile(
      [
        { kind: 'domain', target: '*.example.com' },
        { kind: 'domain', target: 'api.example.com', ports: [8443] },
      ],
      { denied: ['secret.example.com', '*.secret.example.com'] },
    );
    const at = (name: string, port?: number) => findNameRule(network, name, port)?.pattern;
    expect(at('www.example.com', 443)).toBe('*.example.com');
    expect(at('api.example.com', 8443)).toBe('api.example.com');
    expect(at('api.example.com', 443)).toBe('*.example.com');
    expect(at('api.example.com')).toBe('api.example.com');
    for (const name of [
      'example.com',
      'badexample.com',
      'secret.example.com',
      'a.secret.example.com',
    ]) {
      expect(at(name)).toBeUndefined();
    }
    expect(at('www.example.com', 22)).toBeUndefined();
  });

  test('another rule does not lift what a service leaves out', () => {
    const network = compile(
      [
        { kind: 'domain', target: 'pypi.org', ports: [80, 443] },
        { kind: 'service', target: 'pypi' },
      ],
      {},
      { terms: { pypi: { asOf: '2024-05-01' } } },
    );
    expect(findNameRule(network, 'pypi.org', 443)?.asOf).toBeDefined();
    expect(findNameRule(network, 'pypi.org', 80)).toBeUndefined();
  });
});

test('the example of the guide is a map, and all of it compiles', () => {
  const guide = readFileSync(new URL('../../../docs/guides/network.md', import.meta.url), 'utf8');
  const [, example = ''] = /```json\n([\s\S]*?)```/.exec(guide) ?? [];
  const operator = check(OperatorNetwork, JSON.parse(example), 'example');
  const rules = Object.keys(operator.services ?? {}).map((target) => ({
    kind: 'service' as const,
    target,
  }));
  expect(compile(rules, operator).names).toHaveLength(3);
});

describe('the operator’s map in a file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-map-'));
  const path = join(directory, 'network.json');
  const load = (text: string) => {
    writeFileSync(path, text);
    return loadOperatorNetwork(path);
  };

  test('is read and checked', async () => {
    const map = { services: { pypi: { names: ['pypi.org'], ports: [443] } } };
    await expect(load(JSON.stringify(map))).resolves.toEqual(map);
    await expect(load('{')).rejects.toMatchObject({ code: 'invalid-argument' });
    const wrong = load('{"services":{"pypi":{"names":"pypi.org"}}}');
    await expect(wrong).rejects.toMatchObject({
      ...{ code: 'invalid-argument', details: { field: 'services.pypi.names' } },
    });
    await expect(load(' '.repeat(2 ** 20 + 1))).rejects.toMatchObject({ code: 'too-large' });
    rmSync(directory, { recursive: true });
    await expect(loadOperatorNetwork(path)).rejects.toMatchObject({ code: 'not-found' });
  });
});
