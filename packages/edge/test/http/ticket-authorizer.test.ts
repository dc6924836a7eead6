import { ROUTES, type Route, SANDBOX_HEADER, STREAM_HEADER, TICKET_HEADER } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { newStreamId, type RequestFacts, type TicketVerifier } from '@dsec/transport';
import { expect, it } from 'vitest';
import { createTicketAuthorizer } from '../../src/http/ticket-authorizer.ts';

const MINE = 'sb-s1-edgea-aaaaaaaaaaaaaaaa';
const THEIRS = 'sb-s1-edgea-bbbbbbbbbbbbbbbb';
const streamId = newStreamId();

/** A verifier that believes the ticket `good`, and what it was asked. */
function setUp() {
  const asked: unknown[] = [];
  const verifier = {
    verify(ticket: string, request: unknown) {
      asked.push(request);
      if (ticket !== 'good') throw new DsecError('unauthenticated', 'no');
      return { project: 'ours', principal: 'me', job: 'job' };
    },
  } as unknown as TicketVerifier;
  const entries = new Map([
    [MINE, { id: MINE, project: 'ours', spec: {} }],
    [THEIRS, { id: THEIRS, project: 'theirs', spec: {} }],
  ]);
  const authorize = createTicketAuthorizer(verifier, { find: (id) => entries.get(id) as never });
  const facts = (operation: string, route: Route, more: object = {}) =>
    ({
      ...{ operation, route, params: {}, method: route.method, target: '/v1/x' },
      ...{ headers: { [TICKET_HEADER]: 'good' }, bodyDigest: undefined, ...more },
    }) as unknown as RequestFacts;
  return { authorize, facts, asked };
}

it('asks for nothing where anybody may come', async () => {
  const { authorize, facts, asked } = setUp();
  const visitor = await authorize(facts('getHealth', ROUTES.getHealth, { headers: {} }));
  expect(visitor).toEqual({ caller: undefined, entry: undefined });
  expect(asked).toEqual([]);
});

it('gives the sandbox, or the same not-found whoever has it', async () => {
  const { authorize, facts, asked } = setUp();
  const of = (sandboxId: string) =>
    authorize(facts('getSandbox', ROUTES.getSandbox, { params: { sandboxId } }));
  expect(await of(MINE)).toEqual({
    caller: { project: 'ours', principal: 'me', job: 'job', mayGrade: false },
    entry: { id: MINE, project: 'ours', spec: {} },
  });
  expect(asked).toMatchObject([{ sandbox: MINE, operationClass: 'sandboxes:read' }]);
  const error = { code: 'not-found', message: 'there is no such sandbox', details: {} };
  await expect(of(THEIRS)).rejects.toMatchObject(error);
  await expect(of('sb-s1-edgea-cccccccccccccccc')).rejects.toMatchObject(error);
});

it('wants a stream id for a stream and none elsewhere', async () => {
  const { authorize, facts, asked } = setUp();
  const params = { sandboxId: MINE };
  const ticket = { [TICKET_HEADER]: 'good' };
  for (const [route, header] of [
    [ROUTES.readFile, streamId],
    [ROUTES.readFile, undefined],
    [ROUTES.readFile, 'short'],
    [ROUTES.statFile, undefined],
    [ROUTES.statFile, streamId],
  ] as const) {
    const headers = header === undefined ? ticket : { ...ticket, [STREAM_HEADER]: header };
    await authorize(facts('x', route, { params, headers }));
  }
  const ids = (asked as { streamId: unknown }[]).map((request) => request.streamId);
  expect(ids).toEqual([streamId, '', '', undefined, streamId]);
});

it('takes the id of a new sandbox from its header, which the ticket must name', async () => {
  const { authorize, facts, asked } = setUp();
  const headers = { [TICKET_HEADER]: 'good', [SANDBOX_HEADER]: THEIRS };
  const visitor = await authorize(facts('createSandbox', ROUTES.createSandbox, { headers }));
  expect(visitor).toMatchObject({ entry: undefined, newId: THEIRS });
  expect(asked).toMatchObject([{ sandbox: THEIRS }]);
  const plain = await authorize(facts('createSandbox', ROUTES.createSandbox));
  expect(plain.newId).toBeUndefined();
});

it('refuses a ticket that is absent or comes twice', async () => {
  const { authorize, facts } = setUp();
  for (const headers of [{}, { [TICKET_HEADER]: ['good', 'good'] }]) {
    await expect(
      authorize(facts('getMetrics', ROUTES.getMetrics, { headers })),
    ).rejects.toMatchObject({ code: 'unauthenticated' });
  }
});
