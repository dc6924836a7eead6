import { afterEach, expect, it } from 'vitest';
import { exchange, startServer, stopAll, type TestHandlers } from './support/test-server.ts';

afterEach(stopAll);

const show: TestHandlers['show'] = async ({ params }) => ({ text: params.id });

it('lets nobody say twice who calls', async () => {
  const { port } = await startServer({ show });
  const get = (headers: string) =>
    exchange(
      port,
      `GET /v1/things/abc HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\n${headers}\r\n`,
    );
  expect(await get('Authorization: Bearer a\r\n')).toMatch(/^HTTP\/1.1 200/);
  const twice = await get('Authorization: Bearer a\r\nauthorization: Bearer a\r\n');
  expect(twice).toMatch(/^HTTP\/1.1 401.*"code":"unauthenticated"/s);
});

it('does not mind a type of a body that is not sent', async () => {
  const { port } = await startServer({
    poke: async () => 'poked',
    echo: async () => ({ text: '' }),
  });
  const post = (operation: string, headers: string) =>
    exchange(
      port,
      `POST /v1/things/abc/${operation} HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\n${headers}\r\n`,
    );
  const json = 'Content-Type: application/json\r\n';
  for (const headers of [json, `${json}Content-Length: 0\r\n`, 'Content-Type: text/plain\r\n']) {
    expect(await post('poke', headers), headers).toMatch(/^HTTP\/1.1 200.*poked/s);
    expect(await post('echo', headers), headers).toMatch(/^HTTP\/1.1 400.*"invalid-argument"/s);
  }
});

it('answers only for its own hosts and to pages of allowed origins', async () => {
  const { port } = await startServer(
    { show, socket: async () => {} },
    { allowedHosts: ['dsec.example', '127.0.0.1'], allowedOrigins: ['https://ui.example'] },
  );
  const get = (headers: string, target = '/v1/things/abc') =>
    exchange(port, `GET ${target} HTTP/1.1\r\nConnection: close\r\n${headers}\r\n\r\n`);
  const statusOf = async (reply: Promise<string>) => Number((await reply).split(' ')[1]);
  const good = ['Host: dsec.example', `Host: 127.0.0.1:${port}`, 'Host: DSEC.example:1'];
  const host = 'Host: dsec.example\r\n';
  for (const headers of [
    ...good,
    `${host}Origin: https://ui.example`,
    `${host}Sec-Fetch-Site: none`,
  ]) {
    expect(await statusOf(get(headers)), headers).toBe(200);
  }
  const bad = [
    ...['Host: evil.example', 'Host: dsec.example.evil.example', 'Host: dsec.example@evil.example'],
    ...['Host: ', 'Host: dsec.example:x', 'Host: dsec.example\r\nHost: evil.example'],
    ...['Origin: https://evil.example', 'Origin: null', 'Origin: https://ui.example:444'].map(
      (origin) => host + origin,
    ),
    ...[`${host}Sec-Fetch-Site: cross-site`, `${host}Sec-Fetch-Site: same-site`],
  ];
  for (const headers of bad) expect(await statusOf(get(headers)), headers).toBe(403);
  const key = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==';
  const origin = 'Origin: https://evil.example';
  const upgrade = `${host}Upgrade: websocket\r\nConnection: Upgrade\r\n${key}\r\n${origin}`;
  expect(await statusOf(get(upgrade, '/v1/things/abc/socket'))).toBe(403);
  expect(await statusOf(get(host.trimEnd(), 'http://evil.example/v1/things/abc'))).toBe(400);
  expect(
    await statusOf(get(host + Array.from({ length: 80 }, (_, i) => `X-${i}: 1`).join('\r\n'))),
  ).toBe(413);
  expect(await statusOf(get(`${host}X: ${'a'.repeat(40_000)}`))).toBe(413);
  expect(await statusOf(get(`${host}Content-Length: 5\r\n\r\nhello`))).toBe(400);
  expect(await statusOf(exchange(port, 'this is not HTTP\r\n\r\n'))).toBe(400);
  expect(await exchange(port, `CONNECT evil.example:80 HTTP/1.1\r\n${host}\r\n`)).toBe('');
});

it('says what is missing or not understood in a head, in its own form', async () => {
  const { port } = await startServer({ show, echo: async ({ body }) => body });
  const ask = (head: string, body = '') =>
    exchange(port, `${head}\r\nConnection: close\r\n\r\n${body}`);
  const get = 'GET /v1/things/abc HTTP/1.1';
  expect(await ask(get)).toMatch(/^HTTP\/1.1 400 .*"invalid-argument".*Host header/s);
  const odd = await ask(`${get}\r\nHost: localhost\r\nExpect: miracles`);
  expect(odd).toMatch(/^HTTP\/1.1 400 .*"invalid-argument".*100-continue/s);
  const post = 'POST /v1/things/abc/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2';
  for (const type of ['', '\r\nContent-Type: text/plain', '\r\nContent-Type: nonsense']) {
    expect(await ask(post + type, '{}'), type).toMatch(
      /^HTTP\/1.1 400 .*"invalid-argument".*Content-Type: application\/json/s,
    );
  }
  expect(await ask(`${get}\r\nHost: evil.example`)).toContain('--allow-host');
  const page = await ask(`${get}\r\nHost: localhost\r\nOrigin: https://evil.example`);
  expect(page).toMatch(/^HTTP\/1.1 403 .*"remedy":"Call from a program/s);
});
