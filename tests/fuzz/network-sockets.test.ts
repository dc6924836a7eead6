/**
 * Hostile bytes on the open sockets of the proxies: nothing goes to a host that no rule opens, every
 * connection ends, and the proxies serve on.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import {
  createAddressFilter,
  createDenialReporter,
  createDnsAnswerer,
  createNameGuard,
  createNameResolver,
  startDnsServer,
} from '@dsec/network';
import { createSeededRandom } from '@dsec/std';
import { afterEach, describe, expect, test } from 'vitest';
import { helloOf } from '../../packages/network/test/client-hello-fixtures.ts';
import { queryOf, readReply } from '../../packages/network/test/dns-fixtures.ts';
import {
  closeOf,
  endAll,
  ends,
  plainHost,
  rawExchange,
  secureClient,
  secureHost,
  startEgress,
} from '../../packages/network/test/egress-fixtures.ts';

afterEach(endAll);

const long = process.env.DSEC_TEST_LONG === '1';
const seed = Number(process.env.SEED ?? 20_261_130);
const random = createSeededRandom(seed);

function mutate(seedBytes: Buffer): Buffer {
  let bytes = Buffer.from(seedBytes);
  for (let left = random.int(5); left > 0; left -= 1) {
    const at = random.int(bytes.length + 1);
    const kind = random.int(3);
    const insert = Buffer.from(random.bytes(random.int(6)));
    bytes = Buffer.concat([
      bytes.subarray(0, at),
      insert,
      bytes.subarray(at + (kind === 0 ? 0 : insert.length)),
    ]);
  }
  return bytes;
}

/** Sends bytes in a few pieces and leaves in one of three ways; resolves when the connection is over. */
async function throwAt(port: number, bytes: Buffer): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.resume();
  const cut = random.int(bytes.length + 1);
  socket.write(bytes.subarray(0, cut));
  if (random.int(2) === 0) await new Promise((resolve) => setImmediate(resolve));
  socket.write(bytes.subarray(cut));
  const closed = closeOf(socket);
  const how = random.int(3);
  if (how === 0) socket.end();
  else if (how === 1) setTimeout(() => socket.destroy(), 20);
  else setTimeout(() => socket.resetAndDestroy(), 20);
  await closed;
}

async function inGroups(count: number, work: (i: number) => Promise<void>): Promise<void> {
  for (let i = 0; i < count; i += 20) {
    await Promise.all(Array.from({ length: 20 }, (_, k) => work(i + k)));
  }
}

describe('egress', () => {
  const OPEN = '93.184.216.34';
  const heads = [
    'GET / HTTP/1.1\r\nHost: open.example.com\r\n\r\n',
    'POST /a HTTP/1.1\r\nHost: open.example.com\r\nContent-Length: 3\r\n\r\nabc',
    'POST /b HTTP/1.1\r\nHost: open.example.com\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    'CONNECT open.example.com:443 HTTP/1.1\r\nHost: open.example.com:443\r\n\r\n',
    'GET /w HTTP/1.1\r\nHost: open.example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
    'GET http://open.example.com/ HTTP/1.1\r\nHost: open.example.com\r\n\r\n',
  ].map((text) => Buffer.from(text));
  const hellos = [
    helloOf({ serverName: 'open.example.com' }),
    helloOf({ serverName: 'evil.example.com' }),
    helloOf({ serverName: 'open.example.com', extensions: [[0xfe0d, Buffer.alloc(30)]] }),
  ];
  const seeds = [...heads, ...hellos, Buffer.concat([heads[3], hellos[0]] as Buffer[])];
  for (const a of heads) for (const b of heads) seeds.push(Buffer.concat([a, b]));

  test('any streams reach open names alone, and every connection ends', async () => {
    const hosts: string[] = [];
    const server = createServer((request, response) => {
      hosts.push(String(request.headers.host));
      request.resume();
      response.end('fine');
    });
    const plain = await plainHost((socket: Socket) => void server.emit('connection', socket));
    const secure = await secureHost('open.example.com', (socket) => void socket.pipe(socket));
    const egress = await startEgress({
      rules: [{ kind: 'domain', target: 'open.example.com' }],
      names: { 'open.example.com': OPEN, 'evil.example.com': '93.184.216.66' },
      hosts: { [`${OPEN}:80`]: plain, [`${OPEN}:443`]: secure },
      limits: { connectionRate: { perSecond: 1e6, burst: 1e6 }, startTimeoutMs: 500 },
    });
    await inGroups(long ? 20_000 : 600, (i) => {
      const bytes = mutate(seeds[i % seeds.length] ?? Buffer.alloc(0));
      return throwAt(random.int(2) === 0 ? egress.tls : egress.http, bytes);
    });
    await expect.poll(() => egress.server.counters('sb-127.0.0.1').open, { timeout: 5000 }).toBe(0);
    expect(egress.dialed.filter((place) => !place.startsWith(`${OPEN}:`))).toEqual([]);
    expect(hosts.filter((host) => !/^open\.example\.com\.?(:80)?$/i.test(host))).toEqual([]);
    expect(hosts.length).toBeGreaterThan(0);
    const head = 'GET / HTTP/1.1\r\nHost: open.example.com\r\nConnection: close\r\n\r\n';
    expect(await rawExchange(egress.http, head)).toContain('200 OK');
    const client = await secureClient(egress.tls, { servername: 'open.example.com' });
    client.write('x');
    await once(client, 'data');
  });
});

describe('DNS over TCP', () => {
  test('any streams get answers or an end, and the server serves on', async () => {
    const network = {
      version: 1,
      addresses: [],
      names: [{ pattern: 'a.example', ports: [], isDedicated: false }],
    };
    const findSandbox = () => ({ id: 'sb-1', network });
    const answerer = createDnsAnswerer({
      ...{ findSandbox, gatewayAddress: '169.254.77.1', guard: createNameGuard() },
      denials: createDenialReporter({ onDenied: () => undefined }),
      resolver: createNameResolver({
        filter: createAddressFilter({ denied: [] }),
        upstream: { lookup: async () => [] },
      }),
      onDedicated: () => undefined,
    });
    const at = { host: '127.0.0.1', port: 0 };
    const limits = {
      ...{ connectionsMax: 64, connectionsPerSandboxMax: 64 },
      ...{ queriesPerConnectionMax: 8, idleTimeoutMs: 500 },
    };
    const server = await startDnsServer({ answerer, findSandbox, udp: at, tcp: at, limits });
    ends.push(() => server.close());
    const query = queryOf('a.example');
    const framed = Buffer.concat([Buffer.from([0, query.length]), query]);
    await inGroups(long ? 10_000 : 200, () =>
      throwAt(server.tcpPort, mutate(Buffer.concat([framed, framed, framed]))),
    );
    await expect
      .poll(async () => {
        const socket = connect(server.tcpPort, '127.0.0.1');
        socket.on('error', () => undefined);
        socket.write(framed);
        const reply = await new Promise<Buffer>((resolve) => {
          socket.once('data', resolve);
          socket.once('close', () => resolve(Buffer.alloc(14)));
        });
        socket.destroy();
        return readReply(reply.subarray(2)).addresses;
      })
      .toEqual(['169.254.77.1']);
  });
});
