import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import {
  closeOf,
  endAll,
  plainHost,
  rawExchange,
  SANDBOX_AUTHORITY,
  secureClient,
  secureHost,
  startEgress,
} from './egress-fixtures.ts';

afterEach(endAll);

const OPEN = '93.184.216.34';
const OTHER = '93.184.216.35';
const names = { 'open.example.com': OPEN, 'other.example.com': OTHER };
const rules = [{ kind: 'domain' as const, target: 'open.example.com' }];

interface Heard {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A host that remembers its requests and answers with their bodies. */
function httpHost(answer?: (request: IncomingMessage, response: ServerResponse) => boolean) {
  const heard: Heard[] = [];
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    let body = '';
    for await (const chunk of request) body += chunk;
    heard.push({ method, url, headers, body });
    if (answer?.(request, response) !== true) response.end(`you said ${body}`);
  });
  const serve = (socket: Socket) => void server.emit('connection', socket);
  return { heard, serve, server };
}

async function plain(more: object = {}) {
  const host = httpHost();
  const port = await plainHost(host.serve);
  const egress = await startEgress({ rules, names, hosts: { [`${OPEN}:80`]: port }, ...more });
  return { ...egress, heard: host.heard };
}

const get = (host: string, more = 'Connection: close\r\n', path = '/x') =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`;

describe('plain HTTP', () => {
  test('a request for an open name passes, headers of the connection aside', async () => {
    const { http, heard, server } = await plain();
    const text =
      'POST /x?y HTTP/1.1\r\nhOst: Open.Example.com:80\r\nContent-Length: 2\r\nX-Secret: s\r\n' +
      'Connection: close, X-Secret\r\n\r\nhi';
    expect(await rawExchange(http, text)).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*you said hi/);
    expect(heard).toMatchObject([{ method: 'POST', url: '/x?y', body: 'hi' }]);
    expect(heard[0]?.headers).toEqual({
      ...{ host: 'Open.Example.com:80', 'content-length': '2', connection: 'close' },
    });
    expect(server.counters('sb-127.0.0.1')).toMatchObject({ bytesUp: 2, bytesDown: 11 });
  });

  test('chunked bodies, an absolute target, and the first version', async () => {
    const { http, heard } = await plain();
    const chunked =
      'POST http://open.example.com/c HTTP/1.1\r\nHost: open.example.com\r\nTransfer-Encoding: chunked\r\n' +
      'Connection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n';
    expect(await rawExchange(http, chunked)).toContain('you said abc');
    const first = 'GET /1 HTTP/1.0\r\nHost: open.example.com\r\n\r\n';
    expect(await rawExchange(http, first)).toMatch(/\r\n\r\nyou said $/);
    expect(heard.map(({ url }) => url)).toEqual(['/c', '/1']);
  });

  test('each request of a connection is judged again, also when the rules change', async () => {
    const { http, heard, denied, update } = await plain();
    const two = get('open.example.com', '') + get('other.example.com', '');
    const reply = await rawExchange(http, two);
    expect(reply).toMatch(/200 OK[\s\S]*403 Forbidden/);
    expect(heard).toHaveLength(1);
    expect(denied).toMatchObject([{ reason: 'name', name: 'other.example.com', port: 80 }]);
    const socket = connect(http, '127.0.0.1');
    socket.write(get('open.example.com', ''));
    await once(socket, 'data');
    update([]);
    expect(await rawExchange(socket, get('open.example.com', ''))).toContain('403 Forbidden');
    expect(heard).toHaveLength(2);
  });

  const POST = 'POST / HTTP/1.1\r\nHost: open.example.com\r\n';
  const smuggled: [string, string][] = [
    ['two lengths', `${POST}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
    [
      'length and coding',
      `${POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['another coding', `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    [
      'coding twice',
      `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
    ],
    ['coding with a tab', `${POST}Transfer-Encoding:\tchunked x\r\n\r\n0\r\n\r\n`],
    ['a signed length', `${POST}Content-Length: +1\r\n\r\na`],
    [
      'a length behind many headers',
      `GET / HTTP/1.1\r\nHost: open.example.com\r\n${'X: y\r\n'.repeat(150)}Content-Length: 5\r\n\r\nGET /`,
    ],
    ['two hosts', 'GET / HTTP/1.1\r\nHost: open.example.com\r\nHost: other.example.com\r\n\r\n'],
    ['no host', 'GET / HTTP/1.1\r\nX: y\r\n\r\n'],
    ['a host with a path', 'GET / HTTP/1.1\r\nHost: open.example.com/@x\r\n\r\n'],
    ['a folded header', 'GET / HTTP/1.1\r\nHost: open.example.com\r\nX: a\r\n b\r\n\r\n'],
    ['a space before the colon', 'GET / HTTP/1.1\r\nHost : open.example.com\r\n\r\n'],
    ['version 2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['no HTTP', '\0\0\0\0\r\n\r\n'],
    ['another scheme', 'GET ftp://open.example.com/ HTTP/1.1\r\nHost: open.example.com\r\n\r\n'],
    ['a target with a space', 'GET /a b HTTP/1.1\r\nHost: open.example.com\r\n\r\n'],
    [
      'an endless head',
      `GET / HTTP/1.1\r\nHost: open.example.com\r\nX: ${'y'.repeat(40_000)}\r\n\r\n`,
    ],
  ];
  test.each(smuggled)('%s is refused and ends the connection', async (_, text) => {
    const { http, heard, denied } = await plain();
    const reply = await rawExchange(http, text + get('open.example.com', ''));
    // Where the fault is in the body, the connection ends without a word.
    expect(reply).toMatch(/^$|^HTTP\/1.1 400 /);
    expect(reply).not.toContain('200 OK');
    expect(heard).toEqual([]);
    expect(denied).toMatchObject([{ reason: 'malformed' }]);
  });

  test.each([
    ['GET http://other.example.com/ HTTP/1.1\r\nHost: open.example.com\r\n\r\n', 'name-mismatch'],
    ['GET http://open.example.com/ HTTP/1.1\r\nHost: other.example.com\r\n\r\n', 'name-mismatch'],
    ['GET / HTTP/1.1\r\nHost: open.example.com:8080\r\n\r\n', 'name-mismatch'],
    ['GET http://open.example.com:8080/ HTTP/1.1\r\nHost: open.example.com:8080\r\n\r\n', 'name'],
    ['CONNECT other.example.com:443 HTTP/1.1\r\nHost: other.example.com:443\r\n\r\n', 'name'],
    ['CONNECT open.example.com:22 HTTP/1.1\r\nHost: open.example.com:22\r\n\r\n', 'name'],
    ['CONNECT open.example.com:443 HTTP/1.1\r\nHost: other.example.com\r\n\r\n', 'name-mismatch'],
  ])('%j is denied', async (text, reason) => {
    const { http, heard, denied, dialed } = await plain();
    expect(await rawExchange(http, text)).toMatch(/^HTTP\/1.1 403 /);
    expect([heard, dialed]).toEqual([[], []]);
    expect(denied).toMatchObject([{ reason }]);
  });

  test('so many requests in turn, answered in order; more end the connection', async () => {
    const { http, heard } = await plain();
    const requests = (count: number) =>
      Array.from({ length: count }, (_, i) =>
        get('open.example.com', i + 1 === count ? 'Connection: close\r\n' : '', `/${i}`),
      ).join('');
    expect((await rawExchange(http, requests(16))).match(/200 OK/g)).toHaveLength(16);
    expect(heard).toHaveLength(16);
    expect(await rawExchange(http, requests(40))).not.toContain('200 OK');
  });

  test('a head that does not come, or a second one, is not waited for', async () => {
    const { http } = await plain({ limits: { startTimeoutMs: 150 } });
    await rawExchange(http, 'GET / HTTP/1.1\r\nHost: open');
    expect(await rawExchange(http, get('open.example.com', ''))).toContain('200 OK');
  });

  test('a host that is not there, and one that goes away', async () => {
    const gone = await plainHost((socket) => socket.once('data', () => socket.destroy()));
    const { http } = await startEgress({ rules, names, hosts: { [`${OPEN}:80`]: gone } });
    expect(await rawExchange(http, get('open.example.com'))).toMatch(/^HTTP\/1.1 502 /);
    const resets = await plainHost((socket) => socket.resetAndDestroy());
    const reset = await startEgress({ rules, names, hosts: { [`${OPEN}:80`]: resets } });
    for (let i = 0; i < 20; i += 1) {
      expect(await rawExchange(reset.http, get('open.example.com'))).toMatch(/^HTTP\/1.1 502 /);
    }
    const nowhere = await startEgress({ rules, names, hosts: {} });
    expect(await rawExchange(nowhere.http, get('open.example.com'))).toMatch(/^HTTP\/1.1 502 /);
  });

  test('revoking cuts an answer that is on its way', async () => {
    const slow = httpHost((_, response) => response.write('begin'));
    const port = await plainHost(slow.serve);
    const egress = await startEgress({ rules, names, hosts: { [`${OPEN}:80`]: port } });
    const socket = connect(egress.http, '127.0.0.1');
    socket.write(get('open.example.com'));
    await once(socket, 'data');
    const failed = once(socket, 'error');
    egress.update([]);
    expect(egress.server.revokeStale('sb-127.0.0.1', '127.0.0.1')).toBe(1);
    expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' });
  });
});

describe('tunnels and web sockets', () => {
  test('TLS in a tunnel has to be for the name of the tunnel', async () => {
    const host = await secureHost('open.example.com', (socket) => void socket.pipe(socket));
    const egress = await startEgress({ rules, names, hosts: { [`${OPEN}:443`]: host } });
    const tunnel = async () => {
      const socket = connect(egress.http, '127.0.0.1');
      socket.write('CONNECT open.example.com:443 HTTP/1.1\r\nHost: open.example.com:443\r\n\r\n');
      expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 200 /);
      return socket;
    };
    const client = await secureClient(0, {
      servername: 'open.example.com',
      socket: await tunnel(),
    });
    client.write('hello');
    expect(String((await once(client, 'data'))[0])).toBe('hello');
    await expect(
      secureClient(0, { servername: 'other.example.com', socket: await tunnel() }),
    ).rejects.toMatchObject({ code: 'ERR_SSL_TLSV1_ALERT_ACCESS_DENIED' });
    const again = 'CONNECT open.example.com:443 HTTP/1.1\r\nHost: open.example.com:443\r\n\r\n';
    expect(await rawExchange(await tunnel(), again)).toMatch(/^HTTP\/1.1 400 /);
    expect(egress.denied).toMatchObject([{ reason: 'name-mismatch' }, { reason: 'malformed' }]);
  });

  const upgrade = (protocol: string) =>
    get(
      'open.example.com',
      `Connection: Upgrade\r\nUpgrade: ${protocol}\r\nSec-WebSocket-Key: k\r\n`,
    );

  test('a web socket passes once the host has agreed', async () => {
    const host = httpHost();
    host.server.on('upgrade', (request, socket) => {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n`,
      );
      socket.write(`key ${request.headers['sec-websocket-key']} `);
      socket.pipe(socket);
    });
    const port = await plainHost(host.serve);
    const egress = await startEgress({ rules, names, hosts: { [`${OPEN}:80`]: port } });
    const socket = connect(egress.http, '127.0.0.1');
    socket.write(upgrade('websocket'));
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    await expect.poll(() => received).toMatch(/^HTTP\/1.1 101 [\s\S]*\r\n\r\nkey k $/);
    socket.end('GET / HTTP/1.1');
    await closeOf(socket);
    expect(received).toMatch(/GET \/ HTTP\/1.1$/);
  });

  test('a host that does not agree gives no way for other requests', async () => {
    const { http, heard } = await plain();
    const text = upgrade('websocket') + get('other.example.com');
    expect(await rawExchange(http, text)).toMatch(/^HTTP\/1.1 502 /);
    expect(heard).toHaveLength(1);
    expect(await rawExchange(http, upgrade('h2c'))).toMatch(/^HTTP\/1.1 501 /);
  });
});

describe('credentials', () => {
  const operator = {
    services: {
      api: {
        ...{ names: ['open.example.com'], ports: [80, 443] },
        inject: { header: 'authorization', secret: 'api-token' },
      },
    },
  };
  const setting = {
    ...{ rules: [{ kind: 'service' as const, target: 'api' }], names, operator },
    secrets: { 'api-token': 'Bearer s3cret' },
  };
  const inside = { servername: 'open.example.com', ca: SANDBOX_AUTHORITY.material.certificatePem };

  test('are added on the way to the verified host, whatever the sandbox sends', async () => {
    const host = httpHost();
    const port = await secureHost('open.example.com', host.serve);
    const egress = await startEgress({ ...setting, hosts: { [`${OPEN}:443`]: port } });
    const client = await secureClient(egress.tls, inside);
    expect(client.getPeerX509Certificate()?.issuer).toBe('CN=Test Sandbox');
    const text = get(
      'open.example.com',
      'Authorization: mine\r\nauthorization: too\r\nConnection: close\r\n',
    );
    const reply = await rawExchange(client, text);
    expect(reply).toContain('200 OK');
    expect(reply).not.toContain('s3cret');
    expect(host.heard[0]?.headers.authorization).toBe('Bearer s3cret');
    expect(JSON.stringify(egress.denied)).not.toContain('s3cret');
  });

  test('never go to a host that does not prove its name, to another name, or without TLS', async () => {
    const host = httpHost();
    const impostor = await secureHost('other.example.com', host.serve);
    const bare = await plainHost(host.serve);
    const egress = await startEgress({
      ...{ ...setting, hosts: { [`${OPEN}:443`]: impostor, [`${OPEN}:80`]: bare } },
    });
    const wrong = await rawExchange(
      await secureClient(egress.tls, inside),
      get('open.example.com'),
    );
    expect(wrong).toMatch(/^HTTP\/1.1 403 /);
    const other = await rawExchange(
      await secureClient(egress.tls, inside),
      get('other.example.com'),
    );
    expect(other).toMatch(/^HTTP\/1.1 403 /);
    expect(await rawExchange(egress.http, get('open.example.com'))).toMatch(/^HTTP\/1.1 403 /);
    expect(host.heard).toEqual([]);
    expect(egress.denied.map(({ reason }) => reason)).toEqual([
      ...['certificate', 'name-mismatch', 'plain-text'],
    ]);
  });

  test('that the node does not have, or that would break a header, send nothing', async () => {
    const host = httpHost();
    const port = await secureHost('open.example.com', host.serve);
    for (const secrets of [{}, { 'api-token': 'a\r\nX-Evil: b' }]) {
      const egress = await startEgress({ ...setting, secrets, hosts: { [`${OPEN}:443`]: port } });
      const reply = await rawExchange(
        await secureClient(egress.tls, inside),
        get('open.example.com'),
      );
      expect(reply).toMatch(/^HTTP\/1.1 502 [\s\S]*no usable secret api-token/);
    }
    expect(host.heard).toEqual([]);
  });

  test('revoking cuts TLS that ends here', async () => {
    const host = httpHost((_, response) => response.write('begin'));
    const port = await secureHost('open.example.com', host.serve);
    const egress = await startEgress({ ...setting, hosts: { [`${OPEN}:443`]: port } });
    const client = await secureClient(egress.tls, inside);
    client.write(get('open.example.com'));
    await once(client, 'data');
    const closed = closeOf(client);
    egress.update(undefined);
    expect(egress.server.revokeStale('sb-127.0.0.1', '127.0.0.1')).toBe(1);
    await closed;
  });
});
