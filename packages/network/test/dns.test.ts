import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import {
  compileNetwork,
  createAddressFilter,
  createDenialReporter,
  createDnsAnswerer,
  createNameGuard,
  createNameResolver,
  createUpstream,
  type DedicatedAnswer,
  DNS_LIMITS,
  type NetworkDenial,
  type NetworkedSandbox,
  parseDnsQuery,
  type ResolvedAddress,
  startDnsServer,
} from '@dsec/network';
import { createManualClock, DsecError } from '@dsec/std';
import { afterEach, describe, expect, test } from 'vitest';
import { queryOf, readReply } from './dns-fixtures.ts';

const GATEWAY = '169.254.77.1';

function setUp(
  more: { upstream?: Record<string, ResolvedAddress[]>; ipv6?: boolean; sandboxes?: number } = {},
) {
  const clock = createManualClock();
  const network = compileNetwork(
    [
      { kind: 'domain', target: 'open.example.com' },
      { kind: 'domain', target: '*.wild.example.com' },
      { kind: 'domain', target: 'own.example.com' },
      { kind: 'domain', target: 'gone.example.com' },
    ],
    { version: 3, operator: { dedicated: ['own.example.com', 'gone.example.com'] } },
  );
  const sandboxes = new Map<string, NetworkedSandbox>([['100.96.0.2', { id: 'sb-1', network }]]);
  const denied: NetworkDenial[] = [];
  const asked: string[] = [];
  const told: DedicatedAnswer[] = [];
  const findSandbox = (address: string) => sandboxes.get(address);
  const resolver = createNameResolver({
    clock,
    filter: createAddressFilter({ denied: ['8.8.4.4'] }),
    upstream: {
      async lookup(name, family) {
        asked.push(`${name} ${family}`);
        const found = more.upstream?.[name];
        if (found === undefined) throw new DsecError('not-found', name);
        return found.filter(({ address }) => address.includes(':') === (family === 6));
      },
    },
  });
  const answerer = createDnsAnswerer({
    ...{ findSandbox, gatewayAddress: GATEWAY, resolver, clock, isIpv6Enabled: more.ipv6 },
    guard: createNameGuard(undefined, clock),
    denials: createDenialReporter({ onDenied: (d) => denied.push(d), clock }),
    onDedicated: (_, answer) => void told.push(answer),
  });
  const ask = async (message: Buffer, source = '100.96.0.2') => {
    const reply = await answerer.answer(message, source);
    return reply === undefined ? undefined : readReply(reply);
  };
  return { ...{ answerer, ask, asked, told, denied, clock, sandboxes, findSandbox, network } };
}

describe('answers', () => {
  test('an open name is at the gateway and nobody is asked; the question stays as it was', async () => {
    const { ask, asked } = setUp();
    const query = queryOf('oPeN.eXample.COM', 1, { edns: true });
    const reply = await ask(query);
    expect(reply).toMatchObject({ code: 0, id: 0x1234, addresses: [GATEWAY], additional: 0 });
    expect(reply?.question).toEqual(query.subarray(12, query.length - 11));
    expect(await ask(queryOf('a.wild.example.com'))).toMatchObject({ addresses: [GATEWAY] });
    expect(await ask(queryOf('open.example.com', 28))).toMatchObject({ code: 0, addresses: [] });
    expect(asked).toEqual([]);
  });

  test('other names do not exist, and each is told', async () => {
    const { ask, denied } = setUp();
    for (const name of ['evil.example', 'wild.example.com', 'localhost', 'x.open.example.com']) {
      expect(await ask(queryOf(name))).toMatchObject({ code: 3, addresses: [] });
    }
    expect(denied.map(({ reason, name }) => [reason, name])).toEqual([
      ['name', 'evil.example'],
      ['name', 'wild.example.com'],
      ['name', 'localhost'],
      ['name', 'x.open.example.com'],
    ]);
  });

  test.each([
    ...[
      ['TXT', 16],
      ['NULL', 10],
      ['ANY', 255],
      ['HTTPS', 65],
      ['SVCB', 64],
      ['AXFR', 252],
    ],
    ...[
      ['CNAME', 5],
      ['PTR', 12],
      ['MX', 15],
      ['SRV', 33],
    ],
  ] as [string, number][])('%s is refused', async (_, type) => {
    const { ask, denied } = setUp();
    expect(await ask(queryOf('open.example.com', type))).toMatchObject({ code: 5, addresses: [] });
    expect(denied).toMatchObject([{ reason: 'query-type', sandbox: 'sb-1' }]);
  });

  test('whoever is no sandbox gets nothing', async () => {
    const { ask } = setUp();
    expect(await ask(queryOf('open.example.com'), '100.96.0.3')).toBeUndefined();
  });

  test('classes, answers, other operations and what is cut or longer', async () => {
    const { ask } = setUp();
    const changed = (at: number, value: number) => {
      const query = queryOf('open.example.com');
      query[at] = value;
      return ask(query);
    };
    const query = queryOf('open.example.com');
    expect(await changed(query.length - 1, 3)).toMatchObject({ code: 5 });
    expect(await changed(2, 0x81)).toBeUndefined();
    expect(await changed(2, 0x29)).toMatchObject({ code: 4 });
    for (const at of [5, 7, 9]) expect(await changed(at, 2)).toMatchObject({ code: 1 });
    expect(await ask(query.subarray(0, 20))).toMatchObject({ code: 1 });
    expect(await ask(query.subarray(0, 11))).toBeUndefined();
    expect(await ask(Buffer.concat([query, Buffer.from([0])]))).toMatchObject({ code: 1 });
    expect(await ask(Buffer.concat([query, Buffer.alloc(600)]))).toMatchObject({ code: 1 });
  });

  test('a dot, a backslash or a NUL inside a label does not make another name', () => {
    const query = queryOf('open.example.com');
    const raw = Buffer.concat([
      query.subarray(0, 12),
      Buffer.from([16]),
      Buffer.from('open.example.com'),
    ]);
    const whole = Buffer.concat([raw, Buffer.from([0, 0, 1, 0, 1])]);
    const parsed = parseDnsQuery(whole);
    expect(parsed).toMatchObject({ query: { name: 'open\\046example\\046com' } });
  });
});

describe('dedicated names', () => {
  const good = [{ address: '93.184.216.34', ttlS: 60 }];

  test('are resolved, told before the answer, and cached for as long as they say', async () => {
    const { ask, asked, told, clock } = setUp({ upstream: { 'own.example.com': good } });
    expect(await ask(queryOf('own.example.com'))).toMatchObject({
      addresses: ['93.184.216.34'],
      ttls: [60],
    });
    expect(told).toMatchObject([{ name: 'own.example.com', addresses: good }]);
    clock.advance(59_000);
    expect(await ask(queryOf('own.example.com'))).toMatchObject({ ttls: [1] });
    expect(asked).toEqual(['own.example.com 4']);
    clock.advance(2000);
    await ask(queryOf('own.example.com'));
    expect(asked).toHaveLength(2);
  });

  test.each([
    ...[
      '127.0.0.1',
      '169.254.169.254',
      '10.0.0.1',
      '100.100.100.200',
      '224.0.0.1',
      '8.8.4.4',
      '0.0.0.0',
    ],
  ])('%s never passes, alone or beside a good one', async (address) => {
    const alone = setUp({ upstream: { 'own.example.com': [{ address, ttlS: 60 }] } });
    expect(await alone.ask(queryOf('own.example.com'))).toMatchObject({ code: 5, addresses: [] });
    expect(alone.told).toEqual([]);
    expect(alone.denied).toMatchObject([{ reason: 'answer' }]);
    const beside = setUp({ upstream: { 'own.example.com': [{ address, ttlS: 60 }, ...good] } });
    expect(await beside.ask(queryOf('own.example.com'))).toMatchObject({
      addresses: ['93.184.216.34'],
    });
    expect(beside.told).toMatchObject([{ addresses: good }]);
  });

  test('IPv6 only where it is on, and never what carries IPv4', async () => {
    const upstream = {
      'own.example.com': [
        { address: '::ffff:10.0.0.1', ttlS: 60 },
        { address: '64:ff9b::a00:1', ttlS: 60 },
        { address: '2606:4700::1', ttlS: 60 },
      ],
    };
    const off = setUp({ upstream });
    expect(await off.ask(queryOf('own.example.com', 28))).toMatchObject({ code: 0, addresses: [] });
    const on = setUp({ upstream, ipv6: true });
    const reply = await on.ask(queryOf('own.example.com', 28));
    expect(reply?.addresses).toEqual(['26064700000000000000000000000001']);
  });

  test('a rule that goes while the name servers think opens nothing', async () => {
    const { answerer, sandboxes, told } = setUp({ upstream: { 'own.example.com': good } });
    const reply = answerer.answer(queryOf('own.example.com'), '100.96.0.2');
    sandboxes.set('100.96.0.2', { id: 'sb-1', network: { version: 4, addresses: [], names: [] } });
    expect(readReply((await reply) ?? Buffer.alloc(12))).toMatchObject({ code: 3 });
    expect(told).toEqual([]);
  });

  test('a name that does not exist', async () => {
    const { ask, asked } = setUp();
    expect(await ask(queryOf('gone.example.com'))).toMatchObject({ code: 3 });
    expect(await ask(queryOf('gone.example.com'))).toMatchObject({ code: 3 });
    expect(asked).toHaveLength(1);
  });
});

describe('bounds', () => {
  test('names below a wildcard that could carry data out are refused', async () => {
    const { ask, denied } = setUp();
    const below = [
      'a.b.c.d',
      'x'.repeat(41),
      'nbswy3dpeb3w64tmmqqho2lunaqgc3lb.onswg4tforss4',
      '3q2-7w8e9r0t1y2u3i4o5p6a7s8d9f0g.h1j2k3l4',
    ];
    for (const labels of below) {
      expect(await ask(queryOf(`${labels}.wild.example.com`))).toMatchObject({ code: 5 });
    }
    expect(denied.map(({ reason }) => reason)).toEqual(below.map(() => 'name-shape'));
    for (const labels of ['cdn', 'eu-west-1.files', 'd111111abcdef8', '0123456789abcdef']) {
      expect(await ask(queryOf(`${labels}.wild.example.com`))).toMatchObject({ code: 0 });
    }
  });

  test('so many different names a minute, the same ones as often as one likes', async () => {
    const { ask, clock } = setUp();
    const codes: (number | undefined)[] = [];
    for (let i = 0; i < 70; i += 1)
      codes.push((await ask(queryOf(`h${i}.wild.example.com`)))?.code);
    expect(codes.filter((code) => code === 0)).toHaveLength(64);
    expect((await ask(queryOf('h3.wild.example.com')))?.code).toBe(0);
    clock.advance(60_000);
    expect((await ask(queryOf('h69.wild.example.com')))?.code).toBe(0);
  });

  test('a flood of one sandbox is dropped and told a few times; its neighbour is answered', async () => {
    const { ask, denied, sandboxes, network, clock } = setUp();
    sandboxes.set('100.96.0.9', { id: 'sb-9', network });
    let answered = 0;
    for (let i = 0; i < 1000; i += 1) {
      if ((await ask(queryOf('open.example.com'))) !== undefined) answered += 1;
    }
    expect(answered).toBe(DNS_LIMITS.perSandbox.burst);
    expect(denied).toHaveLength(50);
    expect(await ask(queryOf('open.example.com'), '100.96.0.9')).toMatchObject({ code: 0 });
    clock.advance(1000);
    expect(await ask(queryOf('nothing.example'))).toMatchObject({ code: 3 });
    expect(denied.at(-1)).toMatchObject({ reason: 'name', suppressed: 750 });
  });
});

describe('sockets', () => {
  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });

  async function serve() {
    const { answerer, sandboxes, network } = setUp();
    sandboxes.set('127.0.0.1', { id: 'sb-1', network });
    const at = { host: '127.0.0.1', port: 0 };
    const findSandbox = (address: string) => sandboxes.get(address);
    const server = await startDnsServer({ answerer, findSandbox, udp: at, tcp: at });
    ends.push(() => server.close());
    return { server, sandboxes };
  }

  test('UDP', async () => {
    const { server } = await serve();
    const socket = createSocket('udp4');
    ends.push(() => socket.close());
    socket.send(queryOf('open.example.com'), server.udpPort, '127.0.0.1');
    const [reply] = await once(socket, 'message');
    expect(readReply(reply)).toMatchObject({ code: 0, addresses: [GATEWAY] });
  });

  test('TCP: several queries in any pieces; a length over the limit ends it', async () => {
    const { server } = await serve();
    const socket = connect(server.tcpPort, '127.0.0.1');
    ends.push(() => socket.destroy());
    const query = queryOf('open.example.com');
    const framed = Buffer.concat([Buffer.from([0, query.length]), query]);
    const two = Buffer.concat([framed, framed]);
    for (const [i] of two.entries()) socket.write(two.subarray(i, i + 1));
    let received = Buffer.alloc(0);
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk]);
      if (received.length === 2 * (query.length + 18)) socket.write(Buffer.from([0xff, 0xff]));
    }
    expect(readReply(received.subarray(2))).toMatchObject({ addresses: [GATEWAY] });
    expect(received.length).toBe(2 * (query.length + 18));
  });

  test('a stranger’s connection is reset', async () => {
    const { server, sandboxes } = await serve();
    sandboxes.clear();
    const socket = connect(server.tcpPort, '127.0.0.1');
    const [error] = await once(socket, 'error');
    expect(error).toMatchObject({ code: 'ECONNRESET' });
  });
});

describe('name servers', () => {
  const servers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of servers.splice(0)) await end();
  });

  /** A name server that answers as told, for A. */
  async function nameServer(answer: (query: Buffer) => Buffer[]) {
    const socket = createSocket('udp4');
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    const ports = new Set<number>();
    const ids = new Set<number>();
    socket.on('message', (query, peer) => {
      ports.add(peer.port);
      ids.add(query.readUInt16BE(0));
      for (const reply of answer(query)) socket.send(reply, peer.port, peer.address);
    });
    servers.push(() => socket.close());
    return { server: `127.0.0.1:${socket.address().port}`, ports, ids };
  }

  const answerTo = (query: Buffer, address: number[], id = query.readUInt16BE(0)) => {
    const header = Buffer.from([id >> 8, id & 0xff, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    let end = 12;
    while (query[end] !== 0) end += 1 + (query[end] ?? 0);
    const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address];
    return Buffer.concat([header, query.subarray(12, end + 5), Buffer.from(record)]);
  };

  test('an answer with another id or to another question does not count', async () => {
    const { server } = await nameServer((query) => {
      const other = Buffer.from(query);
      other[13] = 'z'.charCodeAt(0);
      return [
        answerTo(query, [6, 6, 6, 6], query.readUInt16BE(0) ^ 1),
        answerTo(other, [6, 6, 6, 7]),
        answerTo(query, [93, 184, 216, 34]),
      ];
    });
    const upstream = createUpstream({ servers: [server] });
    expect(await upstream.lookup('own.example.com', 4)).toEqual([
      { address: '93.184.216.34', ttlS: 60 },
    ]);
  });

  test('a server that does not answer is given up', async () => {
    const { server, ids } = await nameServer(() => []);
    const upstream = createUpstream({ servers: [server], timeoutMs: 50, tries: 2 });
    await expect(upstream.lookup('own.example.com', 4)).rejects.toMatchObject({
      code: 'unavailable',
    });
    expect(ids.size).toBeGreaterThan(0);
  });

  test('lookups of one name share a question; too many at a time are refused', async () => {
    const waiting: ((found: ResolvedAddress[]) => void)[] = [];
    const resolver = createNameResolver({
      filter: createAddressFilter({ denied: [] }),
      upstream: { lookup: () => new Promise((resolve) => waiting.push(resolve)) },
    });
    const same = [resolver.resolve('a.example', 4), resolver.resolve('a.example', 4)];
    expect(waiting).toHaveLength(1);
    const many = Array.from({ length: 1023 }, (_, i) => resolver.resolve(`b${i}.example`, 4));
    await expect(resolver.resolve('c.example', 4)).rejects.toMatchObject({ code: 'overloaded' });
    for (const give of waiting) give([{ address: '1.1.1.1', ttlS: 1 }]);
    expect(await Promise.all(same)).toEqual([
      [{ address: '1.1.1.1', ttlS: 5 }],
      [{ address: '1.1.1.1', ttlS: 5 }],
    ]);
    await Promise.all(many);
  });
});
