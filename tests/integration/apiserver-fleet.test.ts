import { type Key, ROUTES, type SandboxPage } from '@dsec/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Caller, createOne, type Fleet, openFleet } from './apiserver-world.ts';

let fleet: Fleet;
let mine: Caller;
let theirs: Caller;
beforeAll(async () => {
  fleet = await openFleet({ edges: 3, apiservers: 2 });
  mine = await fleet.callerOf('mine');
  theirs = await fleet.callerOf('theirs');
});
afterAll(() => fleet.close());

const refused = (code: string) => expect.objectContaining({ code });

async function pages(query: Record<string, unknown>): Promise<SandboxPage['sandboxes'][]> {
  const found: SandboxPage['sandboxes'][] = [];
  for (let cursor: string | undefined; ; ) {
    const more = cursor === undefined ? {} : { cursor };
    const page = await mine.call(ROUTES.listSandboxes, { query: { ...query, ...more } });
    found.push(page.sandboxes);
    cursor = page.cursor;
    if (cursor === undefined) return found;
  }
}

test('a list goes over all edges in the order of creation, page by page, each sandbox once', async () => {
  const made: string[] = [];
  for (let index = 0; index < 12; index += 1) {
    const labels = { parity: index % 2 === 0 ? 'even' : 'odd' };
    made.push((await createOne(mine, { labels, job: 'listed' })).id);
  }
  await createOne(theirs, { job: 'listed' });
  const paged = await pages({ limit: 5, job: 'listed' });
  expect(paged.map(({ length }) => length)).toEqual([5, 5, 2]);
  const all = paged.flat();
  expect(new Set(all.map(({ id }) => id))).toEqual(new Set(made));
  const times = all.map(({ createdAtMs }) => createdAtMs);
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect((await pages({ label: ['parity=odd'], job: 'listed' })).flat()).toHaveLength(6);
  expect(new Set(all.map(({ edge }) => edge)).size).toBeGreaterThan(1);
  await expect(pages({ cursor: 'nonsense' })).rejects.toEqual(refused('invalid-argument'));
});

test('a job is counted and acted on as one, for its project alone', async () => {
  const ids = [];
  for (let index = 0; index < 5; index += 1) ids.push((await createOne(mine, { job: 'j1' })).id);
  const other = await createOne(theirs, { job: 'j1' });
  const params = { jobId: 'j1' };
  const count = () => mine.call(ROUTES.getJob, { params });
  expect(await count()).toMatchObject({ job: 'j1', project: 'mine', running: 5, stopped: 0 });
  expect(await mine.call(ROUTES.pauseJob, { params })).toMatchObject({ matched: 5, changed: 5 });
  expect(await count()).toMatchObject({ running: 0, paused: 5 });
  expect(await mine.call(ROUTES.resumeJob, { params })).toMatchObject({ changed: 5, failed: 0 });
  expect(await mine.call(ROUTES.stopJob, { params })).toMatchObject({ matched: 5, changed: 5 });
  expect(await count()).toMatchObject({ running: 0, paused: 0, stopped: 5 });
  expect(await mine.call(ROUTES.stopJob, { params })).toMatchObject({ matched: 0, changed: 0 });
  const listed = await mine.call(ROUTES.listJobs, {});
  expect(listed.jobs.map(({ job }) => job)).toContain('j1');
  const found = await theirs.call(ROUTES.getSandbox, { params: { sandboxId: other.id } });
  expect(found.state).toBe('running');
  const absent = mine.call(ROUTES.getJob, { params: { jobId: 'nobody' } });
  await expect(absent).rejects.toEqual(refused('not-found'));
});

test('keys give no more than their maker has, are seen by their project, and end at once', async () => {
  const keysOnly = await fleet.callerOf('mine', { scopes: ['keys', 'sandboxes:read'] });
  const body = { name: 'reader', scopes: ['sandboxes:read' as const] };
  const made = await keysOnly.call(ROUTES.createKey, { body }, { idempotencyKey: 'k' });
  expect(made.secret).toMatch(/^dsec_/);
  const again = await keysOnly.call(ROUTES.createKey, { body }, { idempotencyKey: 'k' });
  expect(again).toEqual({ key: expect.objectContaining({ id: made.key.id }) });

  const asReader = (target: string, init: RequestInit = {}) =>
    mine.fetch(target, { ...init, headers: { authorization: `Bearer ${made.secret}` } });
  expect((await asReader('/v1/sandboxes')).status).toBe(200);
  expect((await asReader('/v1/keys')).status).toBe(403);

  const wider = { ...body, scopes: ['exec' as const] };
  await expect(keysOnly.call(ROUTES.createKey, { body: wider })).rejects.toEqual(
    refused('permission-denied'),
  );
  for (const project of ['theirs', 'platform']) {
    await expect(keysOnly.call(ROUTES.createKey, { body: { ...body, project } })).rejects.toEqual(
      refused('permission-denied'),
    );
  }
  const { secret } = await mine.call(ROUTES.createKey, {
    body: { name: 'short', scopes: ['keys'], lifetimeMs: 60_000 },
  });
  const byShort = async (lifetime: object) => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const child = JSON.stringify({ name: 'child', scopes: ['keys'], ...lifetime });
    const answer = await mine.fetch('/v1/keys', { method: 'POST', headers, body: child });
    return { status: answer.status, key: ((await answer.json()) as { key?: Key }).key };
  };
  const child = await byShort({});
  expect(child.key?.expiresAtMs).toBeLessThanOrEqual(Date.now() + 60_000);
  expect(await byShort({ lifetimeMs: 120_000 })).toMatchObject({ status: 403 });

  const strangers = await fleet.callerOf('theirs', { scopes: ['keys'] });
  const params = { keyId: made.key.id };
  await expect(strangers.call(ROUTES.revokeKey, { params })).rejects.toEqual(refused('not-found'));
  const seen = await strangers.call(ROUTES.listKeys, {});
  expect(seen.keys.every(({ project }) => project === 'theirs')).toBe(true);

  await keysOnly.call(ROUTES.revokeKey, { params });
  expect((await asReader('/v1/sandboxes')).status).toBe(401);
  const listed = await keysOnly.call(ROUTES.listKeys, {});
  expect(listed.keys.find(({ id }) => id === made.key.id)?.revokedAtMs).toBeGreaterThan(0);
  expect(JSON.stringify(listed)).not.toContain(made.secret);
});

test('with a key, the keys that were made with it end', async () => {
  const makeAs = async (secret: string) => {
    const answer = await mine.fetch('/v1/keys', {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'next', scopes: ['keys'] }),
    });
    return (await answer.json()) as { key: Key; secret: string };
  };
  const first = await makeAs(mine.key);
  const third = await makeAs((await makeAs(first.secret)).secret);
  const statusOf = async ({ secret }: { secret: string }) =>
    (await mine.fetch('/v1/keys', { headers: { authorization: `Bearer ${secret}` } })).status;
  expect(await statusOf(third)).toBe(200);
  await mine.call(ROUTES.revokeKey, { params: { keyId: first.key.id } });
  expect(await Promise.all([first, third].map(statusOf))).toEqual([401, 401]);
});

test('whoever operates nodes makes keys of other projects, but none of the platform', async () => {
  const body = { name: 'other', scopes: ['exec' as const], project: 'third', principal: 'bot' };
  const made = await mine.call(ROUTES.createKey, { body });
  expect(made.key).toMatchObject({ project: 'third', principal: 'bot' });
  await expect(
    mine.call(ROUTES.createKey, { body: { ...body, project: 'platform' } }),
  ).rejects.toEqual(refused('permission-denied'));
});

test('environments have revisions, and pages', async () => {
  const layers = ['base/a:^1', 'toolkit/t:latest'];
  const put = (name: string, revision?: number) => {
    const body = { layers, ...(revision === undefined ? {} : { revision }) };
    return mine.call(ROUTES.putEnvironment, { params: { name }, body });
  };
  const first = await put('one', 0);
  await expect(put('one', 0)).rejects.toEqual(refused('already-exists'));
  const second = await put('one', first.revision);
  await expect(put('one', first.revision)).rejects.toEqual(refused('conflict'));
  const params = { name: 'one' };
  expect(await mine.call(ROUTES.getEnvironment, { params })).toEqual(second);
  await expect(theirs.call(ROUTES.getEnvironment, { params })).rejects.toEqual(
    refused('not-found'),
  );
  for (const name of ['dotted.', 'three', 'two']) await put(name);
  const page = await mine.call(ROUTES.listEnvironments, { query: { limit: 3 } });
  expect(page.environments.map(({ name }) => name)).toEqual(['dotted.', 'one', 'three']);
  const query = { limit: 3, cursor: String(page.cursor) };
  const rest = await mine.call(ROUTES.listEnvironments, { query });
  expect(rest.environments.map(({ name }) => name)).toEqual(['two']);
  expect(rest.cursor).toBeUndefined();
  await mine.call(ROUTES.removeEnvironment, { params });
  await mine.call(ROUTES.removeEnvironment, { params });
  const bad = { layers: ['toolkit/t:latest'] };
  await expect(
    mine.call(ROUTES.putEnvironment, { params: { name: 'no' }, body: bad }),
  ).rejects.toEqual(refused('invalid-argument'));
});

test('health, version, metrics, OpenAPI and the page for people', async () => {
  const health = await mine.call(ROUTES.getHealth, {});
  expect(health.ok).toBe(true);
  expect(health.parts.map(({ name }) => name)).toEqual(['store', 'edge e1', 'edge e2', 'edge e3']);
  expect(await mine.call(ROUTES.getVersion, {})).toMatchObject({ api: 'v1' });
  expect(await mine.call(ROUTES.getMetrics, {})).toContain('dsec_apiserver_edge_up{edge="e1"} 1');
  expect(JSON.parse(await mine.call(ROUTES.getOpenApi, {})).openapi).toBe('3.1.0');
  const page = await mine.fetch('/docs', { headers: { authorization: '' } });
  expect(page.headers.get('content-type')).toContain('text/html');
  const html = await page.text();
  expect(html).toContain('createSandboxes');
  expect(html).not.toMatch(/(src|href)="(https?:)?\/\//);
  expect(html).not.toContain('<script');
});

test('what no edge or store can do says so', async () => {
  await expect(mine.call(ROUTES.listSnapshots, {})).rejects.toEqual(refused('unsupported'));
  await expect(mine.call(ROUTES.listLayers, {})).rejects.toEqual(refused('unsupported'));
});

const endOf = async ({ body }: Response) => {
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) void chunk;
  } catch {
    // Cut off.
  }
  return 'ended';
};

test.each([
  ['revoked', {}],
  ['expired', { lifetimeMs: 1500 }],
] as const)(
  'a key that is %s ends the streams that it has opened, and no others',
  async (how, more) => {
    const body = { name: how, scopes: ['sandboxes:read' as const], ...more };
    const { key, secret } = await mine.call(ROUTES.createKey, { body });
    const headers = { authorization: `Bearer ${secret}` };
    const stays = await mine.fetch('/v1/events');
    const events = await mine.fetch('/v1/events', { headers });
    expect([stays.status, events.status]).toEqual([200, 200]);
    if (how === 'revoked') await mine.call(ROUTES.revokeKey, { params: { keyId: key.id } });
    expect(await endOf(events)).toBe('ended');
    for (const target of ['/v1/events', '/v1/sandboxes', '/v1/keys']) {
      expect((await mine.fetch(target, { headers })).status).toBe(401);
    }
    const later = new Promise((resolve) => setTimeout(() => resolve('open'), 500));
    expect(await Promise.race([endOf(stays), later])).toBe('open');
    await stays.body?.cancel().catch(() => undefined);
  },
);
