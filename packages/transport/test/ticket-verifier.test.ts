import { generateKeyPairSync } from 'node:crypto';
import { TICKET_HEADER } from '@dsec/protocol';
import { createManualClock, parseEdgeId } from '@dsec/std';
import { afterEach, expect, it } from 'vitest';
import {
  type Authorizer,
  createTicketVerifier,
  newTicketClaims,
  type RequestFacts,
  sha256Of,
  signTicket,
  type TicketRequest,
} from '../src/index.ts';
import { ask, startServer, stopAll } from './support/test-server.ts';

afterEach(stopAll);

const holder = { edge: 'edge1', project: 'lab', principal: 'trainer' };

/** What an edge makes of a request: the ticket must have been made for exactly this. */
const requestOf = ({ route, method, target, bodyDigest }: RequestFacts): TicketRequest => ({
  operationClass: route.operationClass as TicketRequest['operationClass'],
  method,
  target,
  bodyDigest,
});

it('admits a request over HTTP by its own ticket, once, and nothing else', async () => {
  const clock = createManualClock(1_800_000_000_000);
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const verifier = createTicketVerifier({
    publicKeys: new Map([['k1', publicKey]]),
    edgeId: parseEdgeId('edge1'),
    clock,
  });
  clock.advance(60_000);
  const authorize: Authorizer<string> = async (facts) =>
    verifier.verify(String(facts.headers[TICKET_HEADER] ?? ''), requestOf(facts)).principal;
  const { baseUrl } = await startServer(
    { echo: async ({ body }, { principal }) => ({ text: `${principal} ${body.text}` }) },
    { authorize },
  );
  const target = '/v1/things/abc/echo?times=2';
  const body = '{"text":"hi"}';
  const ticket = (request: Partial<TicketRequest> = {}, lifetimeMs = 30_000) => {
    const own = {
      operationClass: 'exec',
      method: 'POST',
      target,
      bodyDigest: sha256Of(body),
    } as const;
    const claims = newTicketClaims({ ...own, ...request }, holder, lifetimeMs, clock);
    return signTicket(claims, privateKey, 'k1');
  };
  const send = (text: string, path = target, sent = body) =>
    ask(baseUrl, path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', [TICKET_HEADER]: text },
      body: sent,
    });

  const good = ticket();
  expect(await send(good)).toMatchObject({ status: 201, body: { text: 'trainer hi' } });
  const old = ticket({}, 1000);
  clock.advance(1000 + 2001);
  const refused = [
    send(good),
    send(old),
    send(ticket(), '/v1/things/abc/echo?times=3'),
    send(ticket(), target, '{"text":"ho"}'),
    send(ticket({ operationClass: 'files:read' })),
    send(ticket({ method: 'PUT' })),
    send(''),
    send(ticket().slice(0, -1)),
    ask(baseUrl, target, { method: 'POST' }),
  ];
  for (const reply of await Promise.all(refused)) {
    expect(reply).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
  }
});
