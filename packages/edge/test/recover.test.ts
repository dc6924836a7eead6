import { parseSandboxId } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { BOOT_ID, CREATE, context, createCoreWorld, until } from './core-world.ts';

describe('a restarted edge', () => {
  it('finds what runs, and goes on with it', async () => {
    const { world, open } = createCoreWorld();
    const first = await open();
    const made = await first.core.lifecycle.create(CREATE, context({ key: 'k' }));
    const sequence = first.core.sandboxes.nextSequence(made);
    first.crash();

    const { core } = await open();
    expect(core.journal.epoch).toBe(first.core.journal.epoch + 1);
    const entry = core.sandboxes.get(made.id);
    expect(entry).toMatchObject({ state: 'running', revision: made.revision, plan: made.plan });
    expect(core.sandboxes.view(entry)).toMatchObject({ timings: { readyMs: expect.any(Number) } });
    expect(core.sandboxes.nextSequence(entry)).toBeGreaterThan(sequence);
    expect(await core.lifecycle.create(CREATE, context({ key: 'k' }))).toBe(entry);
    await world.endSandbox(entry.key, 'oom');
    await until(() => entry.state === 'failed');
    expect(entry.endReason).toBe('oom');
  });

  it('says that it runs to those who follow sandboxes', async () => {
    const { open } = createCoreWorld();
    const first = await open();
    const made = await first.core.lifecycle.create(CREATE, context());
    first.crash();
    const seen: string[] = [];
    const { core } = await open();
    core.sandboxes.hook({ running: ({ id }, from) => seen.push(`${id} ${from}`) });
    await core.lifecycle.pause(core.sandboxes.get(made.id), context());
    await core.sandboxes.requireRunning(made.id);
    expect(seen).toEqual([`${made.id} resuming`]);
  });

  it('thaws what should run, and freezes what is paused, whoever did otherwise meanwhile', async () => {
    const { world, open } = createCoreWorld();
    const first = await open();
    const [runs, rests] = await Promise.all([
      first.core.lifecycle.create(CREATE, context()),
      first.core.lifecycle.create(CREATE, context()),
    ]);
    await first.core.lifecycle.pause(rests, context());
    await first.backend.freeze(runs.key);
    await first.backend.thaw(rests.key);
    first.crash();

    const { core } = await open();
    await core.lifecycle.idle();
    const isFrozen = ({ key }: typeof runs) =>
      world.sandboxes.get(`${key.id}.${key.generation}`)?.context.time.isFrozen;
    expect([core.sandboxes.get(runs.id).state, isFrozen(runs)]).toEqual(['running', false]);
    expect([core.sandboxes.get(rests.id).state, isFrozen(rests)]).toEqual(['paused', true]);
  });

  it('removes what was half made, and says so to the key', async () => {
    const { world, open } = createCoreWorld({ createStepMs: 60_000 });
    const first = await open();
    const create = first.core.lifecycle.create(CREATE, context({ key: 'k' }));
    create.catch(() => undefined);
    await until(() => world.sandboxes.size === 1);
    first.crash();

    const { core } = await open();
    await core.lifecycle.idle();
    const [entry] = core.sandboxes.list();
    expect(entry).toMatchObject({ state: 'failed', endReason: 'edge-restart' });
    expect(world.leftovers()).toEqual([]);
    await expect(core.lifecycle.create(CREATE, context({ key: 'k' }))).rejects.toMatchObject({
      code: 'unavailable',
      details: { endReason: 'edge-restart' },
    });
  });

  it('goes on with a stop', async () => {
    const { world, open } = createCoreWorld();
    const first = await open();
    const made = await first.core.lifecycle.create(CREATE, context());
    first.backend.stop = () => new Promise(() => undefined);
    void first.core.lifecycle.stop(made, context()).catch(() => undefined);
    await until(() => made.state === 'stopping');
    first.crash();
    expect(world.sandboxes.size).toBe(1);

    const { core } = await open();
    await core.lifecycle.idle();
    expect(core.sandboxes.get(made.id)).toMatchObject({ state: 'stopped', endReason: 'stopped' });
    expect(world.leftovers()).toEqual([]);
    expect(core.journal.db.prepare('SELECT count(*) FROM slots').pluck().get()).toBe(0);
  });

  it.each(['pausing', 'resuming'] as const)('undoes a change: %s', async (state) => {
    const { open } = createCoreWorld();
    const first = await open();
    const made = await first.core.lifecycle.create(CREATE, context());
    const never = () => new Promise<void>(() => undefined);
    if (state === 'resuming') await first.core.lifecycle.pause(made, context());
    if (state === 'pausing') first.backend.pause = never;
    else first.backend.resume = never;
    const change = state === 'pausing' ? 'pause' : 'resume';
    void first.core.lifecycle[change](made, context()).catch(() => undefined);
    await until(() => made.state === state);
    first.crash();

    const { core } = await open();
    const entry = core.sandboxes.get(made.id);
    await until(() => entry.state === 'running');
    expect((await core.sandboxes.requireRunning(made.id)).id).toBe(made.id);
  });

  it('keeps a paused one paused', async () => {
    const { open } = createCoreWorld();
    const first = await open();
    const made = await first.core.lifecycle.create(CREATE, context());
    await first.core.lifecycle.pause(made, context());
    first.crash();
    const { core } = await open();
    expect(core.sandboxes.get(made.id).state).toBe('paused');
    expect((await core.sandboxes.requireRunning(made.id)).state).toBe('running');
  });

  it('says of what ended meanwhile why it did', async () => {
    const { world, open } = createCoreWorld();
    const first = await open();
    const made = await first.core.lifecycle.create(CREATE, context());
    first.crash();
    await world.endSandbox(made.key, 'oom', 'out of memory');
    const { core } = await open();
    const entry = core.sandboxes.get(made.id);
    expect(entry).toMatchObject({ state: 'failed', endReason: 'oom' });
    await core.lifecycle.idle();
    expect(world.leftovers()).toEqual([]);
  });

  it('has lost everything when the machine was started again', async () => {
    const { world, open } = createCoreWorld();
    const first = await open();
    const made = await first.core.lifecycle.create(CREATE, context());
    first.crash();
    const { core } = await open({ bootId: BOOT_ID.replaceAll('1', '2') });
    expect(core.sandboxes.get(made.id)).toMatchObject({ state: 'failed', endReason: 'host-lost' });
    await core.lifecycle.idle();
    expect(world.leftovers()).toEqual([]);
  });

  it('removes what nobody claims, and nothing that it does not know to be its own', async () => {
    const { world, open } = createCoreWorld();
    const first = await open();
    const made = await first.core.lifecycle.create(CREATE, context());
    const { id } = parseSandboxId('sb-s1-e1-strangerstranger');
    await first.backend.create({ ...made.plan, key: { id, generation: 1 }, slot: 9 });
    first.crash();
    const { core } = await open();
    expect([...world.sandboxes.values()].map(({ key }) => key.id)).toEqual([made.id]);
    expect([...core.sandboxes.list()].map(({ id: listed }) => listed)).toEqual([made.id]);
  });

  it('waits for nobody who has the root: there is one edge', async () => {
    const { open } = createCoreWorld();
    await open();
    await expect(open()).rejects.toMatchObject({ code: 'conflict' });
  });

  it('does not serve when it cannot know what runs', async () => {
    const { open } = createCoreWorld({
      wrap: (backend) => ({ ...backend, recover: () => Promise.reject(new Error('no answer')) }),
    });
    await expect(open()).rejects.toThrow('no answer');
  });
});
