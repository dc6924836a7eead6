import { generateKeyPairSync, sign } from 'node:crypto';
import type { TicketClaims } from '@dsec/protocol';
import { createManualClock, createSeededRandom, type ManualClock, parseEdgeId } from '@dsec/std';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  createTicketVerifier,
  newStreamId,
  newTicketClaims,
  sha256Of,
  signTicket,
  type TicketRequest,
  type TicketVerifier,
} from '../src/index.ts';

const LIFETIME_MS = 30_000;
const SKEW_MS = 2000;
const SANDBOX = 'sb-a-edge1-aaaaaaaaaaaaaaaa';
const edgeId = parseEdgeId('edge1');
const signer = generateKeyPairSync('ed25519');
const other = generateKeyPairSync('ed25519');
const request: TicketRequest = {
  sandbox: SANDBOX,
  operationClass: 'exec',
  method: 'POST',
  target: `/v1/sandboxes/${SANDBOX}/execs?waitMs=1`,
  bodyDigest: sha256Of('{"argv":["true"]}'),
};
const holder = { edge: 'edge1', project: 'lab', principal: 'trainer', job: 'job-1' };

let clock: ManualClock;
let verifier: TicketVerifier;

beforeEach(() => {
  clock = createManualClock(1_800_000_000_000);
  verifier = newVerifier();
  clock.advance(60_000);
});

function newVerifier(nonceCapacity = 100): TicketVerifier {
  const publicKeys = new Map([['key-1', signer.publicKey]]);
  return createTicketVerifier({ publicKeys, edgeId, clock, skewMs: SKEW_MS, nonceCapacity });
}

const claimsFor = (what: TicketRequest = request, lifetimeMs = LIFETIME_MS) =>
  newTicketClaims(what, holder, lifetimeMs, clock);
const ticketFor = (what?: TicketRequest) => signTicket(claimsFor(what), signer.privateKey, 'key-1');

const expectRefused = (ticket: string, what: TicketRequest = request) =>
  expect(() => verifier.verify(ticket, what)).toThrow(
    expect.objectContaining({
      code: 'unauthenticated',
      message: 'the ticket is not valid for this request',
    }),
  );

/** Signs what `signTicket` would refuse to sign. */
function forge(claims: object, keyId = 'key-1', privateKey = signer.privateKey): string {
  const signed = `dt1.${keyId}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`;
}

describe('ticket', () => {
  it('is accepted for its request and tells who calls', () => {
    const claims = claimsFor();
    const ticket = signTicket(claims, signer.privateKey, 'key-1');
    expect(verifier.verify(ticket, request)).toEqual(claims);
    expect(claims).toMatchObject({ project: 'lab', principal: 'trainer', job: 'job-1' });
  });

  it('serves streams and requests without a body or a sandbox too', () => {
    const stream = { ...request, bodyDigest: undefined, streamId: newStreamId() };
    verifier.verify(ticketFor(stream), stream);
    const bare: TicketRequest = { operationClass: 'node', method: 'GET', target: '/v1/edge/state' };
    verifier.verify(ticketFor(bare), bare);
  });

  it('is refused the second time', () => {
    const ticket = ticketFor();
    verifier.verify(ticket, request);
    expectRefused(ticket);
    clock.advance(LIFETIME_MS);
    expectRefused(ticket);
  });

  it.each<[string, Partial<TicketRequest>]>([
    ['another sandbox', { sandbox: 'sb-a-edge1-bbbbbbbbbbbbbbbb' }],
    ['no sandbox', { sandbox: undefined }],
    ['another class', { operationClass: 'files:read' }],
    ['another method', { method: 'GET' }],
    ['another path', { target: `/v1/sandboxes/${SANDBOX}/stop` }],
    ['another query', { target: `/v1/sandboxes/${SANDBOX}/execs?waitMs=2` }],
    ['another body', { bodyDigest: sha256Of('{"argv":["false"]}') }],
    ['no body', { bodyDigest: undefined }],
    ['a stream', { bodyDigest: undefined, streamId: newStreamId() }],
  ])('is refused for %s, and still good for its own request', (_name, change) => {
    const ticket = ticketFor();
    expectRefused(ticket, { ...request, ...change });
    verifier.verify(ticket, request);
  });

  it('is refused for another stream', () => {
    const stream = { ...request, bodyDigest: undefined, streamId: newStreamId() };
    expectRefused(ticketFor(stream), { ...stream, streamId: newStreamId() });
  });

  it('is refused at another edge', () => {
    expectRefused(forge({ ...claimsFor(), edge: 'edge2' }));
  });

  it('is accepted within its time and the clocks\u2019 skew, and not beyond', () => {
    const claims = claimsFor(request, 10_000);
    const ticket = () =>
      signTicket({ ...claims, nonce: claimsFor().nonce }, signer.privateKey, 'key-1');
    clock.stepWall(-SKEW_MS - 1);
    expectRefused(ticket());
    clock.stepWall(1);
    verifier.verify(ticket(), request);
    clock.stepWall(2 * SKEW_MS + 10_000);
    verifier.verify(ticket(), request);
    clock.stepWall(1);
    expectRefused(ticket());
  });

  it('lives at most thirty seconds, by the word of both ends', () => {
    const claims = claimsFor();
    const long = { ...claims, notAfterMs: claims.notBeforeMs + LIFETIME_MS + 1 };
    const never = { ...claims, notAfterMs: claims.notBeforeMs };
    for (const wrong of [long, never]) {
      expect(() => signTicket(wrong, signer.privateKey, 'key-1')).toThrow(
        expect.objectContaining({ code: 'invalid-argument' }),
      );
      expectRefused(forge(wrong));
    }
  });

  it('is refused when another key signed it, such as an edge\u2019s own', () => {
    expectRefused(forge(claimsFor(), 'key-1', other.privateKey));
    expectRefused(forge(claimsFor(), 'key-2', other.privateKey));
    expectRefused(forge(claimsFor(), 'key-2'));
    expectRefused(forge(claimsFor(), '__proto__'));
  });

  it('is refused when any character of it is changed or missing', () => {
    const ticket = ticketFor();
    const random = createSeededRandom(5);
    for (let i = 0; i < 500; i += 1) {
      const at = random.int(ticket.length);
      const letter = String.fromCharCode(33 + random.int(90));
      if (letter === ticket[at]) continue;
      expectRefused(`${ticket.slice(0, at)}${letter}${ticket.slice(at + 1)}`);
    }
    for (let length = 0; length < ticket.length; length += 7) {
      expectRefused(ticket.slice(0, length));
    }
    verifier.verify(ticket, request);
  });

  it('is refused when it is huge, empty, or not one of ours', () => {
    const ticket = ticketFor();
    const strange = [
      '',
      '.',
      '...',
      'dt1...',
      `${ticket}.x`,
      `dt2${ticket.slice(3)}`,
      `${ticket}\n`,
    ];
    for (const text of [...strange, 'a'.repeat(1_000_000), `${ticket}${'A'.repeat(4000)}`]) {
      expectRefused(text);
    }
    expectRefused(forge([]));
    expectRefused(forge({ ...claimsFor(), extra: 1 }));
    expectRefused(forge({ ...claimsFor(), nonce: 'short' }));
  });

  it('follows a change of keys', () => {
    const both = new Map([
      ['key-1', signer.publicKey],
      ['key-2', other.publicKey],
    ]);
    verifier.setPublicKeys(both);
    verifier.verify(signTicket(claimsFor(), other.privateKey, 'key-2'), request);
    verifier.verify(ticketFor(), request);
    verifier.setPublicKeys(new Map([['key-2', other.publicKey]]));
    expectRefused(ticketFor());
    verifier.verify(signTicket(claimsFor(), other.privateKey, 'key-2'), request);
  });
});

describe('memory of used tickets', () => {
  it('refuses when it is full, and forgets only what has expired', () => {
    verifier = newVerifier(3);
    clock.advance(60_000);
    const first = [ticketFor(), ticketFor(), ticketFor()];
    for (const ticket of first) verifier.verify(ticket, request);
    const fourth = ticketFor();
    expect(() => verifier.verify(fourth, request)).toThrow(
      expect.objectContaining({ code: 'overloaded' }),
    );
    for (const ticket of first) expectRefused(ticket);
    expectRefused(ticketFor(), { ...request, method: 'GET' });
    clock.advance(LIFETIME_MS + SKEW_MS + 1001);
    verifier.verify(ticketFor(), request);
    for (const ticket of first) expectRefused(ticket);
  });

  it('does not take a used ticket again when the clock is set back', () => {
    const used = ticketFor();
    verifier.verify(used, request);
    clock.stepWall(3_600_000);
    verifier.verify(ticketFor(), request);
    clock.stepWall(-3_600_000);
    expectRefused(used);
    clock.advance(LIFETIME_MS + 2 * SKEW_MS);
    verifier.verify(ticketFor(), request);
  });

  it('does not take tickets again that a process before it may have taken', () => {
    const used = ticketFor();
    verifier.verify(used, request);
    verifier = newVerifier();
    const refused = expect.objectContaining({ code: 'unavailable' });
    expect(() => verifier.verify(used, request)).toThrow(refused);
    clock.advance(SKEW_MS);
    expect(() => verifier.verify(used, request)).toThrow(refused);
    verifier.verify(ticketFor(), request);
    expectRefused(forge(claimsFor(), 'key-1', other.privateKey));
  });
});

describe('claims', () => {
  it('are checked before they are signed', () => {
    const sign1 = (change: Partial<TicketClaims>) => () =>
      signTicket({ ...claimsFor(), ...change } as TicketClaims, signer.privateKey, 'key-1');
    const refused = expect.objectContaining({ code: 'invalid-argument' });
    expect(sign1({ edge: 'Edge.example' as never })).toThrow(refused);
    expect(sign1({ nonce: 'x' })).toThrow(refused);
    expect(() => signTicket(claimsFor(), signer.privateKey, 'Key 1')).toThrow(refused);
    expect(() => newTicketClaims({ ...request, method: 'TRACE' }, holder)).toThrow(refused);
  });
});
