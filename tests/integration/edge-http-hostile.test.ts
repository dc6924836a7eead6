import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { formatTarget, ROUTES, type Route, type TicketClaims } from '@dsec/protocol';
import { newStreamId, sha256Of } from '@dsec/transport';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Forgery } from '../../packages/edge/test/support/ticketed-client.ts';
import { FOREIGN, SANDBOX, UNKNOWN, useEdge } from './edge-http-world.ts';

const world = useEdge();
const params = { sandboxId: SANDBOX };
const STAT = formatTarget(ROUTES.statFile, params, { path: 'file' });
const MOVE = formatTarget(ROUTES.moveFile, params, {});
const READ = formatTarget(ROUTES.readFile, params, { path: 'file' });

beforeAll(() => writeFileSync(join(world().root, 'file'), 'content'));

interface Sent {
  readonly method?: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function send({ method = 'GET', target, headers, body }: Sent) {
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  const reply = await fetch(`${world().baseUrl}${target}`, {
    ...{ method, headers: { ...headers, ...json } },
    ...(body === undefined ? {} : { body }),
  });
  const text = await reply.text();
  return { status: reply.status, text, body: text.startsWith('{') ? JSON.parse(text) : text };
}

/** A request with a ticket that was made for something else, or by somebody else. */
const signed = (route: Route, target: string, body?: string, forgery?: Forgery) => ({
  ...{ method: route.method, target, headers: world().headersOf(route, target, body, forgery) },
  ...(body === undefined ? {} : { body }),
});

const claims = (change: Partial<TicketClaims>): Forgery => ({
  claims: (before) => ({ ...before, ...change }),
});
const DAY_MS = 86_400_000;
const past = (ms: number): Forgery => ({
  claims: (before) => ({
    ...before,
    notBeforeMs: before.notBeforeMs + ms,
    notAfterMs: before.notAfterMs + ms,
  }),
});

/** THREATS row 88. Each is made when it is sent. */
const TICKETS: readonly (readonly [what: string, make: () => Sent])[] = [
  ['no ticket', () => ({ target: STAT, headers: {} })],
  ['no ticket at all', () => ({ target: STAT, headers: { 'dsec-ticket': 'dt1.test-key.e30.AA' } })],
  ['10 kB', () => ({ target: STAT, headers: { 'dsec-ticket': 'x'.repeat(10_000) } })],
  ['another edge', () => signed(ROUTES.statFile, STAT, undefined, claims({ edge: 'other' }))],
  ['another sandbox', () => signed(ROUTES.statFile, STAT, undefined, claims({ sandbox: FOREIGN }))],
  [
    'another class',
    () => signed(ROUTES.statFile, STAT, undefined, claims({ operationClass: 'exec' })),
  ],
  ['another method', () => signed(ROUTES.statFile, STAT, undefined, claims({ method: 'PUT' }))],
  ['another path', () => ({ ...signed(ROUTES.statFile, STAT), target: `${STAT}2` })],
  [
    'another route',
    () => ({
      ...signed(ROUTES.statFile, STAT),
      target: formatTarget(ROUTES.listFiles, params, {}),
    }),
  ],
  [
    'another body',
    () => ({
      ...signed(ROUTES.moveFile, MOVE, '{"source":"a","target":"b"}'),
      body: '{"source":"a","target":"c"}',
    }),
  ],
  [
    'no body digest',
    () =>
      signed(ROUTES.moveFile, MOVE, '{"source":"a","target":"b"}', {
        claims: ({ bodyDigest: _, ...rest }) => rest,
      }),
  ],
  [
    'a digest without a body',
    () => signed(ROUTES.statFile, STAT, undefined, claims({ bodyDigest: sha256Of('') })),
  ],
  ['another stream', () => signed(ROUTES.readFile, READ, undefined, { streamId: newStreamId() })],
  ['no stream', () => signed(ROUTES.readFile, READ, undefined, { streamId: '' })],
  [
    'a stream that no claim names',
    () => signed(ROUTES.readFile, READ, undefined, { claims: ({ streamId: _, ...rest }) => rest }),
  ],
  ['a day old', () => signed(ROUTES.statFile, STAT, undefined, past(-DAY_MS))],
  ['a minute old', () => signed(ROUTES.statFile, STAT, undefined, past(-60_000))],
  ['of the future', () => signed(ROUTES.statFile, STAT, undefined, past(60_000))],
  [
    "an edge's own key",
    () => {
      const { privateKey } = generateKeyPairSync('ed25519');
      return signed(ROUTES.statFile, STAT, undefined, { privateKey });
    },
  ],
];

describe('tickets', () => {
  test.each(TICKETS)('%s is refused as every other', async (_, make) => {
    const { status, body } = await send(make());
    expect([status, body.code, body.message]).toEqual([
      401,
      'unauthenticated',
      'the ticket is not valid for this request',
    ]);
  });

  test('a good one serves once', async () => {
    const request = signed(ROUTES.statFile, STAT);
    expect((await send(request)).status).toBe(200);
    expect((await send(request)).status).toBe(401);
    const stream = signed(ROUTES.readFile, READ);
    expect(await send(stream)).toMatchObject({ status: 200, text: 'content' });
    expect((await send(stream)).status).toBe(401);
  });

  test('keys can be taken back', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const request = () => signed(ROUTES.statFile, STAT, undefined, { privateKey });
    expect((await send(request())).status).toBe(401);
    const before = world().publicKeys;
    world().server.setPublicKeys(new Map([...before, ['test-key', publicKey]]));
    expect((await send(request())).status).toBe(200);
    world().server.setPublicKeys(before);
    expect((await send(request())).status).toBe(401);
  });
});

describe('sandboxes that are not the caller’s', () => {
  test('unknown, of another project, and of no form: the same answer', async () => {
    const answers: unknown[] = [];
    for (const sandboxId of [UNKNOWN, FOREIGN]) {
      const target = formatTarget(ROUTES.statFile, { sandboxId }, { path: 'file' });
      answers.push(await send(signed(ROUTES.statFile, target)));
    }
    const ids = ['sb-x-evil.example-aaaaaaaaaaaaaaaa', 'sb-..%2f', 'a'.repeat(10_000), '%00'];
    for (const id of ids) {
      answers.push(await send({ target: `/v1/sandboxes/${id}/files/stat?path=x`, headers: {} }));
    }
    expect(answers[0]).toMatchObject({ status: 404, body: { code: 'not-found' } });
    for (const answer of answers) expect(answer).toEqual(answers[0]);
  });
});

describe('requests that are none', () => {
  test.each([
    ['both forms of a path', { path: 'a', pathBase64: 'YQ==' }],
    ['no path', {}],
    ['NUL', { path: 'a\u0000b' }],
    ['NUL in base64', { pathBase64: 'YQBi' }],
    ['no base64', { pathBase64: 'Y!==' }],
    ['a path that is too long', { path: 'p'.repeat(4096) }],
    ['a user that is none', { path: 'a', user: '../root' }],
    ['an unknown name', { path: 'a', host: 'x' }],
  ])('%s', async (_, query) => {
    const target = formatTarget(ROUTES.statFile, params, query as never);
    expect((await send(signed(ROUTES.statFile, target))).status).toBe(400);
  });

  test.each([
    '0',
    '65536',
    '80@evil.example',
    '127.0.0.1:80',
    '[::1%25lo]:80',
    '0x50',
    '-1',
    '8%30',
  ])('port %s', async (port) => {
    const target = `/v1/sandboxes/${SANDBOX}/ports/${port}/connect`;
    const { status } = await send(signed(ROUTES.connectPort, target));
    // Decoded, the last one is a port; only then a ticket, and then a WebSocket, is asked for.
    expect(status).toBe(400);
  });
});

describe('requests that a browser or a proxy could be made to send', () => {
  const raw = (text: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(Number(new URL(world().baseUrl).port), '127.0.0.1');
      let received = '';
      socket.setEncoding('latin1').on('data', (chunk) => {
        received += chunk;
      });
      socket.on('error', reject).on('close', () => resolve(received));
      socket.end(text);
    });
  const get = (target: string, ...headers: string[]) =>
    raw([`GET ${target} HTTP/1.1`, ...headers, 'Connection: close', '', ''].join('\r\n'));

  test('another host, an origin, an absolute target, CONNECT', async () => {
    expect(await get('/v1/version', 'Host: localhost')).toMatch(/^HTTP\/1.1 200/);
    expect(await get('/v1/version', 'Host: evil.example')).toMatch(/^HTTP\/1.1 403/);
    expect(await get(STAT, 'Host: localhost', 'Origin: http://evil.example')).toMatch(/ 403 /);
    expect(await get('http://evil.example/', 'Host: localhost')).toMatch(/^HTTP\/1.1 400/);
    expect(await raw('CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\n\r\n')).toBe('');
  });

  test('smuggled requests reach nothing', async () => {
    const target = formatTarget(ROUTES.connectPort, { ...params, port: 80 }, {});
    const ticket = world().headersOf(ROUTES.connectPort, target, undefined);
    const headers = Object.entries(ticket).map(([name, value]) => `${name}: ${value}`);
    const upgrade = ['Host: localhost', 'Connection: Upgrade', 'Upgrade: h2c', ...headers];
    const text = [`GET ${target} HTTP/1.1`, ...upgrade, '', `GET ${STAT} HTTP/1.1`, '', ''];
    const answer = await raw(text.join('\r\n'));
    expect(answer).toMatch(/^HTTP\/1.1 400/);
    expect(answer.match(/HTTP\/1.1/g)?.length).toBe(1);
    const both = ['Host: localhost', 'Content-Length: 5', 'Transfer-Encoding: chunked'];
    const smuggled = [`PUT ${READ} HTTP/1.1`, ...both, '', '0', '', `GET ${STAT} HTTP/1.1`, '', ''];
    expect(await raw(smuggled.join('\r\n'))).toMatch(/^HTTP\/1.1 400/);
  });
});

test('what is logged holds no ticket, no path and no word of the sandbox', async () => {
  await send(signed(ROUTES.statFile, formatTarget(ROUTES.statFile, params, { path: 'secret-1' })));
  const line = JSON.stringify(world().logs.at(-1));
  expect(line).toContain('"operation":"statFile","status":404,"code":"not-found"');
  expect(line).toContain(`"sandbox":"${SANDBOX}","project":"ours","principal":"tester"`);
  expect(JSON.stringify(world().logs)).not.toMatch(/secret-1|dt1\.|No such file/);
});
