/** Keys for agents in sandboxes: within their limits, for sandboxes of their own, until theirs ends. */
import { ROUTES } from '@dsec/protocol';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Caller, createOne, type Fleet, openFleet } from './apiserver-world.ts';

let fleet: Fleet;
let trainer: Caller;
beforeAll(async () => {
  fleet = await openFleet({ edges: 2 });
  trainer = await fleet.callerOf('lab');
}, 60_000);
afterAll(() => fleet.close());

const SCOPES = ['sandboxes:read', 'sandboxes:write', 'exec', 'files:read', 'files:write'] as const;
const LIMITS = { sandboxesMax: 2, cpuMillicores: 500, memoryBytes: 2 ** 28 };
const coded = (code: string, details = {}) => expect.objectContaining({ code, details });

async function agentOf(sandbox: string, limits = LIMITS, lifetimeMs = 600_000) {
  const body = { name: 'agent', scopes: [...SCOPES], limits, sandbox, lifetimeMs };
  const { key, secret = '' } = await trainer.call(ROUTES.createKey, { body });
  return { key, agent: fleet.callerWith(secret) };
}

it('makes sandboxes of its own within its limits, and works in them', async () => {
  const parent = await createOne(trainer);
  const { key, agent } = await agentOf(parent.id);
  expect(key).toMatchObject({ limits: LIMITS, sandbox: parent.id, project: 'lab' });
  expect(key.principal).toMatch(/^agent-[0-9a-f]{16}$/);
  const child = await createOne(agent, { ttl: { lifetimeMs: 86_400_000 } });
  expect(child).toMatchObject({ project: 'lab', principal: key.principal });
  expect(child.spec.limits).toMatchObject({ cpuMillicores: 500, memoryBytes: 2 ** 28 });
  expect(child.expiresAtMs).toBeLessThan((key.expiresAtMs ?? 0) + 10_000);
  const params = { sandboxId: child.id };
  const { exec } = await agent.call(ROUTES.startExec, {
    ...{ params, body: { argv: ['echo', 'hi'], waitMs: 30_000 } },
  });
  expect(exec.exit?.exitCode).toBe(0);
  const listed = await agent.call(ROUTES.listSandboxes, { query: {} });
  expect(listed.sandboxes.map(({ id }) => id)).toEqual([child.id]);
  // As many as it may have at a time; one that has ended makes room.
  const second = await createOne(agent, {}, 'second');
  expect((await createOne(agent, {}, 'second')).id).toBe(second.id);
  await expect(createOne(agent)).rejects.toEqual(
    coded('quota-exceeded', { limit: 'sandboxesMax', max: 2 }),
  );
  await agent.call(ROUTES.stopSandbox, { params });
  await fleet.apiservers[0]?.watcher.refresh();
  await createOne(agent);
});

it('a sandbox with a policy gives its agent no key, and an agent chooses no backend', async () => {
  const denied = expect.objectContaining({ code: 'permission-denied' });
  const parent = await createOne(trainer, { policy: 'open' });
  await expect(agentOf(parent.id)).rejects.toEqual(denied);
  const { agent } = await agentOf((await createOne(trainer)).id);
  await expect(createOne(agent, { backend: 'container' })).rejects.toEqual(denied);
});

it('a secret that was replaced works for its grace, and gives no longer hold', async () => {
  const body = { name: 'worker', scopes: [...SCOPES, 'keys' as const] };
  const { key, secret = '' } = await trainer.call(ROUTES.createKey, { body });
  const old = fleet.callerWith(secret);
  const params = { keyId: key.id };
  const next = await old.call(ROUTES.rotateKey, { params, body: {} });
  await createOne(old);
  const denied = expect.objectContaining({ code: 'permission-denied' });
  await expect(old.call(ROUTES.rotateKey, { params, body: { graceMs: 0 } })).rejects.toEqual(
    denied,
  );
  await expect(old.call(ROUTES.createKey, { body })).rejects.toEqual(denied);
  await fleet.callerWith(next.secret ?? '').call(ROUTES.createKey, { body });
});

it('many requests at a time make no more than it may have', async () => {
  const parent = await createOne(trainer);
  const { agent } = await agentOf(parent.id);
  const made = await Promise.allSettled(Array.from({ length: 12 }, () => createOne(agent)));
  expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
});

it('reaches nothing else: no other sandbox, its own least of all, and no other operation', async () => {
  const parent = await createOne(trainer);
  const { key, agent } = await agentOf(parent.id);
  const other = await agentOf(parent.id);
  const others = await createOne(other.agent);
  const child = await createOne(agent);
  for (const { id: sandboxId } of [parent, others]) {
    const params = { sandboxId };
    await expect(agent.call(ROUTES.getSandbox, { params, query: {} })).rejects.toEqual(
      coded('not-found'),
    );
    await expect(agent.call(ROUTES.stopSandbox, { params })).rejects.toEqual(coded('not-found'));
    await expect(
      agent.call(ROUTES.startExec, { params, body: { argv: ['true'] } }),
    ).rejects.toEqual(coded('not-found'));
    // Its maker may.
    expect((await trainer.call(ROUTES.getSandbox, { params, query: {} })).state).toBe('running');
  }
  const denied = expect.objectContaining({ code: 'permission-denied' });
  const params = { sandboxId: child.id };
  for (const attempt of [
    () => agent.call(ROUTES.renewSandbox, { params, body: { lifetimeMs: 1e9 } }),
    () => agent.call(ROUTES.updateNetwork, { params, body: { version: 1, rules: [] } }),
    () => agent.call(ROUTES.createSandboxes, { body: { count: 1, spec: {} } }),
    () => agent.call(ROUTES.listJobs, { query: {} }),
    () => agent.call(ROUTES.getAudit, { query: {} }),
    () => agent.call(ROUTES.streamEvents, { query: {} }),
    () => agent.call(ROUTES.listKeys, { query: {} }),
    () => agent.call(ROUTES.rotateKey, { params: { keyId: key.id }, body: {} }),
    () => createOne(agent, { network: [{ kind: 'service', target: 'pypi' }] }),
    () => createOne(agent, { isolation: 'node' }),
    () => createOne(agent, { allowDegraded: true }),
  ]) {
    await expect(attempt()).rejects.toEqual(denied);
  }
  const tooMuch = expect.objectContaining({ code: 'quota-exceeded' });
  await expect(createOne(agent, { limits: { memoryBytes: 2 ** 30 } })).rejects.toEqual(tooMuch);
  await expect(createOne(agent, { limits: { cpuMillicores: 501 } })).rejects.toEqual(tooMuch);
});

it('ends with its sandbox, and with the key that made it', async () => {
  const parent = await createOne(trainer);
  const { key, agent } = await agentOf(parent.id);
  const again = await agentOf(parent.id);
  const list = (caller: Caller) => caller.call(ROUTES.listSandboxes, { query: {} });
  await trainer.call(ROUTES.revokeKey, { params: { keyId: key.id } });
  await expect(list(agent)).rejects.toEqual(coded('unauthenticated'));
  await list(again.agent);
  await trainer.call(ROUTES.stopSandbox, { params: { sandboxId: parent.id } });
  await fleet.apiservers[0]?.watcher.refresh();
  await expect(list(again.agent)).rejects.toEqual(coded('unauthenticated'));
  await expect(agentOf(parent.id)).rejects.toEqual(coded('state-conflict'));
});

it('is made by whoever has the sandbox, and never for more than an agent may', async () => {
  const parent = await createOne(trainer);
  const stranger = await fleet.callerOf('else');
  const common = { name: 'a', scopes: ['exec' as const], limits: LIMITS, sandbox: parent.id };
  await expect(stranger.call(ROUTES.createKey, { body: common })).rejects.toEqual(
    coded('not-found'),
  );
  for (const change of [
    { scopes: ['keys' as const] },
    { scopes: ['node' as const] },
    { principal: 'someone' },
    { limits: undefined },
    { sandbox: undefined },
  ]) {
    const body = JSON.parse(JSON.stringify({ ...common, ...change }));
    await expect(trainer.call(ROUTES.createKey, { body })).rejects.toMatchObject({
      code: 'invalid-argument',
    });
  }
});
