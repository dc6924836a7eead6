import type { Backend, SandboxKey } from '@dsec/backend';
import { DsecError, digestOfHex, parseSandboxId, type SandboxId } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { agentsOf, CREATE, context, createCoreWorld, until } from './core-world.ts';

const rejection = async (work: Promise<unknown>): Promise<DsecError> => {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(DsecError);
  return thrown as DsecError;
};

describe('create', () => {
  it('answers when the sandbox runs, and shows what was settled', async () => {
    const { world, open } = createCoreWorld();
    const { core } = await open();
    const entry = await core.lifecycle.create(CREATE, context());
    expect(world.sandboxes.size).toBe(1);
    expect(entry.state).toBe('running');
    const shown = core.sandboxes.view(entry);
    expect(shown).toMatchObject({
      ...{ state: 'running', revision: 2, edge: 'e1', project: 'p', principal: 'someone' },
      spec: { backend: 'container', user: 'root', cwd: '/', isolation: 'project' },
      protections: [{ name: 'simulated', state: 'enforced' }],
    });
    expect(shown.timings.readyMs).toBeGreaterThanOrEqual(shown.timings.allocatedMs ?? 0);
    expect(shown.expiresAtMs).toBeGreaterThan(Date.now());
  });

  it('answers when it is allocated, if that is asked for', async () => {
    const { open } = createCoreWorld({ createStepMs: 20 });
    const { core } = await open();
    const entry = await core.lifecycle.create({ ...CREATE, waitFor: 'allocated' }, context());
    expect(entry.state).toBe('creating');
    await core.sandboxes.waitForChange(entry, 1, 5000);
    expect(entry.state).toBe('running');
  });

  it('makes one sandbox for one key, at the same time and later', async () => {
    const { world, open } = createCoreWorld({ createStepMs: 5 });
    const { core } = await open();
    const make = () => core.lifecycle.create(CREATE, context({ key: 'k' }));
    const entries = await Promise.all([make(), make(), make()]);
    entries.push(await make());
    expect(new Set(entries.map(({ id }) => id)).size).toBe(1);
    expect(entries.every(({ state }) => state === 'running')).toBe(true);
    expect(world.sandboxes.size).toBe(1);
    const other = core.lifecycle.create(
      CREATE,
      context({ key: 'k', digest: digestOfHex('c'.repeat(64)) }),
    );
    expect((await rejection(other)).code).toBe('idempotency-conflict');
  });

  it('goes on without its caller, whom the key brings back', async () => {
    const { open } = createCoreWorld({ createStepMs: 20 });
    const { core } = await open();
    const controller = new AbortController();
    const { signal } = controller;
    const create = core.lifecycle.create(CREATE, context({ key: 'k', signal }));
    await until(() => [...core.sandboxes.list()].length === 1);
    controller.abort(new DsecError('cancelled', 'gone'));
    expect((await rejection(create)).code).toBe('cancelled');
    const entry = await core.lifecycle.create(CREATE, context({ key: 'k' }));
    expect(entry.state).toBe('running');
    expect([...core.sandboxes.list()]).toEqual([entry]);
  });

  it('uses the id that was chosen for it, if it is one of this edge', async () => {
    const { open } = createCoreWorld();
    const { core } = await open();
    const { id: sandboxId } = parseSandboxId('sb-s1-e1-aaaaaaaaaaaaaaaa');
    const entry = await core.lifecycle.create(CREATE, context({ sandboxId }));
    expect(entry.id).toBe(sandboxId);
    const again = core.lifecycle.create(CREATE, context({ sandboxId }));
    expect((await rejection(again)).code).toBe('already-exists');
    const foreign = 'sb-s1-e2-aaaaaaaaaaaaaaaa' as SandboxId;
    const other = core.lifecycle.create(CREATE, context({ sandboxId: foreign }));
    expect((await rejection(other)).code).toBe('invalid-argument');
  });

  it('leaves nothing when a step fails, and says why again when it is asked again', async () => {
    const { world, open } = createCoreWorld();
    const failing = new DsecError('unsupported', 'not on this node');
    const { core } = await open({
      openAgents: (backend) => ({ ...agentsOf(backend), connect: () => Promise.reject(failing) }),
    });
    const make = () => core.lifecycle.create(CREATE, context({ key: 'k' }));
    expect((await rejection(make())).code).toBe('unsupported');
    expect((await rejection(make())).code).toBe('unsupported');
    await until(() => world.sandboxes.size === 0);
    await core.lifecycle.idle();
    const [entry] = core.sandboxes.list();
    expect(entry).toMatchObject({ state: 'failed', endReason: 'backend-failed' });
    expect(world.leftovers()).toEqual([]);
    expect(core.journal.db.prepare('SELECT count(*) FROM slots').pluck().get()).toBe(0);
  });

  it('says `agent` of one whose agent says nothing', async () => {
    const { open } = createCoreWorld();
    const silent = new DsecError('agent-lost', 'no hello');
    const { core } = await open({
      openAgents: (backend) => ({ ...agentsOf(backend), connect: () => Promise.reject(silent) }),
    });
    expect((await rejection(core.lifecycle.create(CREATE, context()))).code).toBe('agent-lost');
    expect([...core.sandboxes.list()][0]).toMatchObject({ state: 'failed', endReason: 'agent' });
  });

  it('leaves no trace of a request that cannot be met', async () => {
    const { open } = createCoreWorld();
    const { core } = await open();
    const bad = core.lifecycle.create({ environment: 'unknown' }, context({ key: 'k' }));
    expect((await rejection(bad)).code).toBe('not-found');
    expect([...core.sandboxes.list()]).toEqual([]);
    const entry = await core.lifecycle.create({ environment: 'known' }, context({ key: 'k' }));
    expect(entry.layers).toMatchObject([{ ref: 'base/test:1.0.0' }]);
  });
});

describe('the end', () => {
  it('stops a sandbox once, whoever asks', async () => {
    const { world, open } = createCoreWorld();
    const { core } = await open();
    const entry = await core.lifecycle.create(CREATE, context());
    const ended: string[] = [];
    core.sandboxes.hook({ ended: ({ id }) => ended.push(id) });
    await Promise.all([1, 2, 3].map(() => core.lifecycle.stop(entry, context())));
    await core.lifecycle.stop(entry, context());
    expect(entry).toMatchObject({ state: 'stopped', endReason: 'stopped' });
    expect(entry.endedAtMs).toBeDefined();
    expect(world.leftovers()).toEqual([]);
    expect(ended).toEqual([entry.id]);
  });

  it('stops one that is being made', async () => {
    const { world, open } = createCoreWorld({ createStepMs: 10_000 });
    const { core } = await open();
    const create = core.lifecycle.create(CREATE, context({ key: 'k' }));
    create.catch(() => undefined);
    await until(() => [...core.sandboxes.list()].length === 1);
    const [entry] = [...core.sandboxes.list()];
    await core.lifecycle.stop(core.sandboxes.get(entry?.id as SandboxId), context());
    expect((await rejection(create)).code).toBe('cancelled');
    expect(entry).toMatchObject({ state: 'stopped', endReason: 'stopped' });
    expect(world.leftovers()).toEqual([]);
    const repeated = core.lifecycle.create(CREATE, context({ key: 'k' }));
    expect((await rejection(repeated)).code).toBe('cancelled');
  });

  it.each(['oom', 'agent', 'killed'] as const)('notices an end by itself: %s', async (reason) => {
    const { world, open } = createCoreWorld();
    const { core } = await open();
    const entry = await core.lifecycle.create(CREATE, context());
    await world.endSandbox(entry.key, reason);
    await until(() => entry.state === 'failed');
    expect(entry.endReason).toBe(reason);
    await core.lifecycle.idle();
    expect(world.leftovers()).toEqual([]);
    await core.lifecycle.stop(entry, context());
    expect(entry.state).toBe('failed');
    expect(() =>
      core.sandboxes.fail(entry, 'protocol', new DsecError('protocol', 'x')),
    ).not.toThrow();
    expect(entry.endReason).toBe(reason);
  });

  it('frees the slot only when nothing is left, however often that has to be tried', async () => {
    let refusals = 2;
    const refusing = (backend: Backend): Backend => ({
      ...backend,
      async stop(key: SandboxKey) {
        refusals -= 1;
        if (refusals >= 0) throw new DsecError('deadline-exceeded', 'it would not end');
        await backend.stop(key);
      },
    });
    const { world, open } = createCoreWorld({ wrap: refusing });
    const { core } = await open({ admission: { slotsMax: 1 } });
    const entry = await core.lifecycle.create(CREATE, context());
    const stop = core.lifecycle.stop(entry, context());
    expect(entry.state).toBe('stopping');
    expect((await rejection(core.lifecycle.create(CREATE, context()))).details.limit).toBe('slots');
    await stop;
    expect(entry.state).toBe('stopped');
    expect(refusals).toBe(-1);
    expect((await core.lifecycle.create(CREATE, context())).plan.slot).toBe(0);
    expect(world.sandboxes.size).toBe(1);
  });

  it('forgets an ended sandbox after its time', async () => {
    const { open } = createCoreWorld();
    const { core } = await open({ times: { endedKeptMs: 1 } });
    const forgotten: string[] = [];
    core.sandboxes.hook({ forgotten: (id) => forgotten.push(id) });
    const entry = await core.lifecycle.create(CREATE, context());
    await core.lifecycle.stop(entry, context());
    await until(() => forgotten.length === 1);
    expect(forgotten).toEqual([entry.id]);
    expect(() => core.sandboxes.get(entry.id)).toThrow(DsecError);
    expect(core.journal.db.prepare('SELECT count(*) FROM sandboxes').pluck().get()).toBe(0);
  });
});
