/**
 * What a sandbox sends to the proxies of its node: any bytes give a result or a typed error, the same one in
 * whatever pieces they come, in bounded time and memory.
 */
import {
  compileNetwork,
  DNS_QUERY_BYTES_MAX,
  encodeDnsReply,
  isHelloRetry,
  normalizeName,
  normalizePattern,
  normalizeWireName,
  parseClientHello,
  parseDnsQuery,
  parseSecondHello,
  requestTarget,
} from '@dsec/network';
import { DsecError } from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { helloOf, recordsOf } from '../../packages/network/test/client-hello-fixtures.ts';
import { queryOf } from '../../packages/network/test/dns-fixtures.ts';

const long = process.env.DSEC_TEST_LONG === '1';
const runs = { seed: 20_261_130, numRuns: long ? 200_000 : 3_000 };

/** The result, or the code of the typed error. */
function outcomeOf(run: () => unknown): unknown {
  try {
    return run();
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(DsecError);
    const { code } = thrown as DsecError;
    expect(['protocol', 'permission-denied', 'invalid-argument', 'not-found']).toContain(code);
    return code;
  }
}

/** Bytes with some of them changed, removed or repeated. */
function mutated(seeds: readonly Buffer[]): fc.Arbitrary<Buffer> {
  const change = fc.record({
    at: fc.nat(),
    value: fc.nat(255),
    kind: fc.nat(3),
    length: fc.nat(8),
  });
  return fc
    .tuple(fc.constantFrom(...seeds), fc.array(change, { maxLength: 6 }))
    .map(([seed, changes]) => {
      let bytes = Buffer.from(seed);
      for (const { at, value, kind, length } of changes) {
        const place = at % (bytes.length + 1);
        const [before, after] = [bytes.subarray(0, place), bytes.subarray(place)];
        if (kind === 0) bytes = Buffer.concat([before, Buffer.from([value]), after.subarray(1)]);
        else if (kind === 1) bytes = Buffer.concat([before, after.subarray(length)]);
        else if (kind === 2) bytes = Buffer.concat([before, after.subarray(0, length), after]);
        else bytes = Buffer.from(before);
      }
      return bytes;
    });
}

const anyBytes = (lengthMax: number) =>
  fc.uint8Array({ maxLength: lengthMax }).map((bytes) => Buffer.from(bytes));

describe('DNS', () => {
  const seeds = [
    queryOf('open.example.com'),
    queryOf('a.b.c.d.example.com', 28, { edns: true }),
    queryOf(`${'x'.repeat(63)}.${'y'.repeat(63)}.example.com`, 16),
  ];

  test('any bytes are a query, refused or ignored; a query is answered with its own question', () => {
    fc.assert(
      fc.property(fc.oneof(mutated(seeds), anyBytes(700)), (bytes) => {
        const parsed = parseDnsQuery(bytes);
        if (parsed.kind !== 'query') return;
        const { query } = parsed;
        expect(bytes.length).toBeLessThanOrEqual(DNS_QUERY_BYTES_MAX);
        const reply = encodeDnsReply(query, { code: 0, addresses: ['1.2.3.4'], ttlS: 1 });
        const end = 12 + query.question.length;
        expect(reply.subarray(12, end)).toEqual(bytes.subarray(12, end));
        expect(reply.length).toBe(end + 16);
        const name = normalizeWireName(query.name);
        // A name that rules are compared with says the same as the bytes of its labels.
        if (name !== undefined) {
          expect(queryOf(name).subarray(12, end - 4)).toEqual(
            Buffer.from(
              Buffer.from(query.question.subarray(0, -4)).toString('latin1').toLowerCase(),
              'latin1',
            ),
          );
        }
      }),
      runs,
    );
  });
});

describe('TLS', () => {
  const seeds = [
    helloOf({ serverName: 'open.example.com', protocols: ['h2', 'http/1.1'] }),
    helloOf({ serverName: 'a.example.com', recordBytes: 20 }),
    helloOf({
      extensions: [
        [0xfe0d, Buffer.alloc(100)],
        [0x0a0a, Buffer.alloc(0)],
      ],
    }),
    Buffer.concat([Buffer.from([20, 3, 3, 0, 1, 1]), helloOf({ serverName: 'open.example.com' })]),
  ];

  test('any bytes are a ClientHello, the begin of one, or a violation, in any pieces', () => {
    fc.assert(
      fc.property(fc.oneof(mutated(seeds), anyBytes(400)), fc.nat(), (bytes, cut) => {
        const whole = outcomeOf(() => parseClientHello(bytes));
        const part = outcomeOf(() => parseClientHello(bytes.subarray(0, cut % (bytes.length + 1))));
        // More bytes never change what was decided from fewer.
        if (part !== undefined) expect(whole).toEqual(part);
        outcomeOf(() => parseSecondHello(bytes));
        isHelloRetry(bytes);
      }),
      runs,
    );
  });

  test('any name comes back as it was written, or is none', () => {
    const label = fc.stringMatching(/^[A-Za-z0-9-]{1,20}$/);
    const anyName = fc.oneof(
      fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join('.')),
      fc.string({ maxLength: 60 }),
    );
    fc.assert(
      fc.property(anyName, fc.integer({ min: 4, max: 300 }), (serverName, recordBytes) => {
        const message = helloOf({ serverName }).subarray(5);
        const bytes = recordsOf(message, Math.max(recordBytes, Math.ceil(message.length / 60)));
        const outcome = outcomeOf(() => parseClientHello(bytes));
        const name = serverName.endsWith('.') ? undefined : normalizeWireName(serverName);
        if (name === undefined) expect(outcome).toBe('protocol');
        else expect(outcome).toMatchObject({ serverName: name });
      }),
      runs,
    );
  });

  test('the worst that fits is read in bounded time', () => {
    const extensions = Array.from(
      { length: 3500 },
      (_, i) => [0x1000 + i, Buffer.alloc(0)] as const,
    );
    const message = helloOf({ serverName: 'open.example.com', extensions }).subarray(5);
    const bytes = recordsOf(message, Math.ceil(message.length / 63));
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 256; i += 1) {
      outcomeOf(() => parseClientHello(bytes.subarray(0, Math.ceil((bytes.length * i) / 255))));
    }
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 << 20);
  });
});

describe('HTTP', () => {
  const text = fc.oneof(
    fc.string({ maxLength: 40 }),
    fc.constantFrom('open.example.com', 'open.example.com:80', 'chunked', '1', '/', '*', 'Host'),
    fc.constantFrom('http://open.example.com/x', 'open.example.com:443', 'GET', 'CONNECT', 'close'),
    fc.constantFrom('Content-Length', 'Transfer-Encoding', 'Connection'),
  );

  test('any head goes to a name that it states itself, or is refused', () => {
    const head = fc.record({
      ...{ method: text, target: text, httpVersion: fc.constantFrom('1.1', '1.0', '2.0') },
      rawHeaders: fc
        .tuple(fc.boolean(), fc.array(fc.tuple(text, text), { maxLength: 5 }))
        .map(([hasHost, pairs]) => [
          ...(hasHost ? ['Host', 'open.example.com'] : []),
          ...pairs.flat(),
        ]),
    });
    const boundName = fc.constantFrom(undefined, 'open.example.com', 'other.example.com');
    fc.assert(
      fc.property(head, boundName, (request, bound) => {
        const outcome = outcomeOf(() => requestTarget(request, { port: 80, boundName: bound }));
        if (typeof outcome === 'string') return;
        const { name, port, path, isTunnel } = outcome as ReturnType<typeof requestTarget>;
        const hosts = request.rawHeaders.filter(
          (_, i) => request.rawHeaders[i - 1]?.toLowerCase() === 'host' && i % 2 === 1,
        );
        // A tunnel may be without a Host, and then says in its target where it goes.
        const stated = hosts.length === 0 && isTunnel ? [request.target] : hosts;
        expect(stated).toHaveLength(1);
        expect(stated[0]?.toLowerCase().startsWith(name)).toBe(true);
        if (bound !== undefined) expect([name, port, isTunnel]).toEqual([bound, 80, false]);
        expect(path).toMatch(isTunnel ? /^$/ : /^(\/[!-~]*|\*)$/);
      }),
      runs,
    );
  });
});

describe('names and rules', () => {
  const anyText = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 40 }),
    fc.stringMatching(/^[a-zA-Z0-9*._-]{1,40}$/),
    fc.stringMatching(/^(\*\.)?[a-zа-яα-ω0-9-]{1,12}\.[a-zß-ÿ]{2,6}\.?$/),
  );

  test('any text is a name in normal form, or refused; the normal form is its own', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        for (const normalize of [normalizeName, normalizePattern]) {
          const outcome = outcomeOf(() => normalize(text, 'x')) as string;
          if (outcome === 'invalid-argument') continue;
          expect(outcome).toMatch(/^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)+$/);
          expect(normalize(outcome, 'x')).toBe(outcome);
          expect(normalizeWireName(outcome.replace(/^\*\./, ''))).toBe(
            outcome.replace(/^\*\./, ''),
          );
        }
      }),
      runs,
    );
  });

  test('any rules compile within bounds, or are refused', () => {
    const prefix = fc
      .tuple(fc.ipV4(), fc.nat(32))
      .map(([address, length]) => `${address}/${length}`);
    const rule = fc.record({
      kind: fc.constantFrom('address' as const, 'domain' as const, 'service' as const),
      target: fc.oneof(prefix, fc.ipV6(), anyText, fc.constantFrom('pypi', '0.0.0.0/0', '::/0')),
    });
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 8 }), (rules) => {
        const outcome = outcomeOf(() =>
          compileNetwork(rules, { version: 1, operator: {}, nodeRanges: ['9.9.9.9'] }),
        );
        if (typeof outcome === 'string') return;
        const { addresses } = outcome as ReturnType<typeof compileNetwork>;
        expect(addresses.length).toBeLessThanOrEqual(1024);
      }),
      { ...runs, numRuns: runs.numRuns / 10 },
    );
  });
});
