/**
 * Hostile callers of the API, on simulated nodes: what they try is shown to work for who may do it first, in
 * the same way, so that no mistake in an attempt passes for a protection.
 */
import type { SandboxPlan } from '@dsec/backend';
import type { SimBackend } from '@dsec/backend/sim';
import { type Event, ROUTES } from '@dsec/protocol';
import type { SandboxId } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CREATE, context, createCoreWorld } from '../../packages/edge/test/core-world.ts';
import { createFakeNetwork } from '../../packages/edge/test/network/fake-network.ts';
import {
  type Caller,
  createOne,
  type Fleet,
  LAYERS,
  openFleet,
} from '../integration/apiserver-world.ts';

let fleet: Fleet;
let caller: Caller;
let sandboxId: string;
beforeAll(async () => {
  fleet = await openFleet({ rateLimit: { perSecond: 100, burst: 150 } });
  caller = await fleet.callerOf('mine');
  sandboxId = (await createOne(caller)).id;
}, 60_000);
afterAll(() => fleet.close());

const bodyOf = async (reply: Response) => (await reply.json()) as { code?: string; id?: string };

it('71 audit-flood: a million distinct denials of one, and the one of another is heard', async () => {
  const wrap = (backend: SimBackend) => ({
    ...backend,
    probe: async () => ({ ...(await backend.probe()), network: {} }),
    create: (plan: SandboxPlan, signal?: AbortSignal) => backend.create(plan, signal),
  });
  const network = createFakeNetwork();
  const { core } = await createCoreWorld({ wrap }).open({ openNetwork: () => network });
  const open = () =>
    core.lifecycle.create({ ...CREATE, network: [{ kind: 'service', target: 'pypi' }] }, context());
  const [loud, quiet] = [await open(), await open()];
  const cursor = core.events.cursor();
  const denied = (sandbox: SandboxId, target: string) =>
    network.deny({ sandbox, at: 'dns', reason: 'name', target, suppressed: 0 });
  // The control: a denial alone is an event.
  denied(loud.id, 'first.example');
  for (let index = 0; index < 1_000_000; index += 1) denied(loud.id, `${index}.example`);
  denied(quiet.id, 'quiet.example');
  const seen: Extract<Event, { type: 'denied' }>[] = [];
  const ended = new AbortController();
  for await (const event of core.events.follow({ cursor, signal: ended.signal, quietMs: 50 })) {
    if (event === undefined) break;
    if (event.type === 'denied') seen.push(event);
  }
  expect(seen[0]).toMatchObject({ sandbox: loud.id, target: 'first.example' });
  expect(seen.at(-1)).toMatchObject({ sandbox: quiet.id, target: 'quiet.example', suppressed: 0 });
  expect(seen.length).toBeLessThan(200);
  const record = core.audit.find(loud.id);
  expect(record).toMatchObject({ total: 1_000_001, lost: 1_000_001 - 64 });
  expect(core.audit.find(quiet.id)).toMatchObject({ total: 1, lost: 0 });
}, 120_000);

describe('86 relay-ssrf: a relay goes to ports of the sandbox and to no name or address', () => {
  it.each(['80@evil.example', '127.0.0.1:80', '[::1%25lo]:80', '0x50', '0', '65536', '../../keys'])(
    '%s',
    async (port) => {
      const target = (text: string) => `/v1/sandboxes/${sandboxId}/ports/${text}/connect`;
      // The control: a port gets as far as being no WebSocket, or being one that nobody answers.
      const plain = await caller.fetch(target('7'));
      expect([plain.status, (await bodyOf(plain)).code]).toEqual([400, 'invalid-argument']);
      const channel = await caller.socket(target('7'));
      await channel.close();
      await expect(caller.socket(target(encodeURIComponent(port)))).rejects.toMatchObject({
        code: 'invalid-argument',
      });
    },
  );
});

describe('87 preview-origin: nothing of a sandbox is a page of the origin of the API', () => {
  const content = '<script>fetch("/v1/keys")</script>';
  const target = () => `/v1/sandboxes/${sandboxId}/files/content?path=/page.html`;

  it('a file of a sandbox is bytes to save, for who has the key', async () => {
    await caller.call(ROUTES.writeFile, {
      ...{ params: { sandboxId }, query: { path: '/page.html' } },
      body: Buffer.from(content),
    });
    const reply = await caller.fetch(target());
    expect(await reply.text()).toBe(content);
    expect(reply.headers.get('content-type')).toBe('application/octet-stream');
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
    expect(reply.headers.get('set-cookie')).toBeNull();
  });

  it('a page has no key to use, by cookie, by address or by another origin', async () => {
    expect((await caller.fetch(target())).status).toBe(200);
    const key = caller.key;
    for (const [more, headers, status] of [
      ['', { authorization: '', cookie: `key=${key}; authorization=Bearer ${key}` }, 401],
      [`&key=${key}&authorization=Bearer%20${key}`, { authorization: '' }, 401],
      ['', { origin: 'https://preview.example' }, 403],
      ['', { 'sec-fetch-site': 'same-site' }, 403],
    ] as const) {
      const reply = await caller.fetch(`${target()}${more}`, { headers });
      expect(reply.status, JSON.stringify(headers)).toBe(status);
    }
  });
});

it('89 idem-cross: a key of somebody else, or for something else, gives nothing away', async () => {
  const mine = await createOne(caller, {}, 'once');
  // The control: who repeats the request gets the same.
  expect((await createOne(caller, {}, 'once')).id).toBe(mine.id);
  const other = await fleet.callerOf('other');
  expect((await createOne(other, {}, 'once')).id).not.toBe(mine.id);
  await expect(createOne(caller, { labels: { a: 'b' } }, 'once')).rejects.toMatchObject({
    code: 'idempotency-conflict',
  });
  const waiting = await Promise.all([1, 2, 3].map(() => createOne(caller, {}, 'at-once')));
  expect(new Set(waiting.map(({ id }) => id)).size).toBe(1);
});

it('91 id-host: an id leads to no host, and to no sandbox of another project', async () => {
  expect((await caller.fetch(`/v1/sandboxes/${sandboxId}`)).status).toBe(200);
  const foreign = (await createOne(await fleet.callerOf('other'))).id;
  const tails = ['x-evil.example-aaaaaaaaaaaaaaaa', '..%2f', 'a'.repeat(10_000), '%00'];
  const answers: unknown[] = [];
  for (const id of [foreign, sandboxId.replace(/.$/, '0'), ...tails.map((tail) => `sb-${tail}`)]) {
    const reply = await caller.fetch(`/v1/sandboxes/${id}`);
    answers.push([reply.status, (await bodyOf(reply)).code]);
  }
  for (const answer of answers) expect(answer).toEqual([404, 'not-found']);
});

describe('92 path-names: what is stored under a name is stored there', () => {
  it.each(['..', 'a/b', 'a\u0000b', 'a%2eb', '__proto__', 'Ａ', 'x'.repeat(129), ' a', '.hidden'])(
    '%j',
    async (name) => {
      const at = (text: string) => `/v1/environments/${encodeURIComponent(text)}`;
      const put = (target: string, body: unknown) =>
        caller.fetch(target, {
          ...{ method: 'PUT', body: JSON.stringify(body) },
          headers: { 'content-type': 'application/json' },
        });
      expect((await put(at('good-name'), { layers: LAYERS })).status).toBe(200);
      expect([400, 404]).toContain((await put(at(name), { layers: LAYERS })).status);
      const post = (labels: object) =>
        caller.fetch('/v1/sandboxes', {
          ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
          body: `{"layers":${JSON.stringify(LAYERS)},"labels":{${JSON.stringify(name)}:"v"}}`,
          ...labels,
        });
      expect((await post({})).status).toBe(400);
    },
  );
});

it('110 agent-key: an agent with a key of its own reaches its own sandboxes alone', async () => {
  const body = {
    ...{ name: 'agent', scopes: ['sandboxes:read' as const, 'exec' as const] },
    ...{ limits: { sandboxesMax: 1 }, sandbox: sandboxId },
  };
  const { secret = '' } = await caller.call(ROUTES.createKey, { body });
  const agent = fleet.callerWith(secret);
  const attempts = (who: Caller) => [
    () => who.call(ROUTES.getSandbox, { params: { sandboxId }, query: {} }),
    () => who.call(ROUTES.startExec, { params: { sandboxId }, body: { argv: ['true'] } }),
    () => who.call(ROUTES.getAudit, { query: {} }),
    () => who.call(ROUTES.listJobs, { query: {} }),
  ];
  for (const attempt of attempts(caller)) await attempt();
  for (const attempt of attempts(agent)) {
    await expect(attempt()).rejects.toMatchObject({
      code: expect.stringMatching(/^(not-found|permission-denied)$/),
    });
  }
  expect((await agent.call(ROUTES.listSandboxes, { query: {} })).sandboxes).toEqual([]);
});

it('111 rate-flood: a key that asks without measure is refused, and others are not', async () => {
  const loud = await fleet.callerOf('loud');
  const calm = await fleet.callerOf('calm');
  const ask = (who: Caller) => who.fetch('/v1/sandboxes');
  expect((await ask(loud)).status).toBe(200);
  const replies = await Promise.all(Array.from({ length: 400 }, () => ask(loud)));
  const refused = replies.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThan(100);
  expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  expect(await bodyOf(refused[0] as Response)).toMatchObject({ code: 'rate-limited' });
  expect((await ask(calm)).status).toBe(200);
});

it('112 key-stolen: a key that was rotated without grace, or revoked, ends at once', async () => {
  const body = { name: 'k', scopes: ['keys' as const, 'sandboxes:read' as const] };
  const { key, secret = '' } = await caller.call(ROUTES.createKey, { body });
  const thief = fleet.callerWith(secret);
  const list = (who: Caller) => who.call(ROUTES.listSandboxes, { query: {} });
  await list(thief);
  const params = { keyId: key.id };
  const { secret: next = '' } = await caller.call(ROUTES.rotateKey, {
    params,
    body: { graceMs: 0 },
  });
  await expect(list(thief)).rejects.toMatchObject({ code: 'unauthenticated' });
  const owner = fleet.callerWith(next);
  await list(owner);
  // Nobody gets the secret of a key that did not come of his.
  const sibling = await caller.call(ROUTES.createKey, { body: { ...body, name: 's' } });
  await expect(
    owner.call(ROUTES.rotateKey, { params: { keyId: sibling.key.id }, body: {} }),
  ).rejects.toMatchObject({ code: 'permission-denied' });
  await caller.call(ROUTES.revokeKey, { params });
  await expect(list(owner)).rejects.toMatchObject({ code: 'unauthenticated' });
});
