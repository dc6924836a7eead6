import { dueOf, expiryOf } from '@dsec/edge';
import type { Ttl } from '@dsec/protocol';
import { createManualClock, HOUR_MS } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { CREATE, context, createCoreWorld } from './core-world.ts';

const timed = (ttl: Ttl, more: { lifetimeEndsBootMs?: number; graceEndsBootMs?: number } = {}) => ({
  moving: { generation: 1, timings: {}, ttl, ...more },
  ...{ state: 'running' as const, lastUsedBootMs: 1000, holds: 0 },
});

describe('dueOf', () => {
  it.each([
    ['nothing', timed({}), 1e12],
    ['nothing', timed({ idleMs: 100 }), 1099],
    ['end', timed({ idleMs: 100 }), 1100],
    ['end', timed({ idleMs: 1e9 }, { lifetimeEndsBootMs: 2000 }), 2000],
    ['nothing', timed({ idleMs: 1e9 }, { lifetimeEndsBootMs: 2000 }), 1999],
    ['grace', timed({ idleMs: 100, graceMs: 5 }), 1100],
    ['nothing', timed({ idleMs: 100, graceMs: 5 }, { graceEndsBootMs: 1105 }), 1104],
    ['end', timed({ idleMs: 100, graceMs: 5 }, { graceEndsBootMs: 1105 }), 1105],
  ] as const)('%s', (due, sandbox, nowMs) => {
    expect(dueOf(sandbox, nowMs)).toBe(due);
  });

  it('has the earlier of two deadlines', () => {
    expect(expiryOf(timed({ idleMs: 100 }, { lifetimeEndsBootMs: 2000 }), 0)).toBe(1100);
    expect(expiryOf(timed({ idleMs: 5000 }, { lifetimeEndsBootMs: 2000 }), 0)).toBe(2000);
    expect(expiryOf(timed({}), 0)).toBeUndefined();
  });

  it('does not count idle time while the sandbox is held, unless it is paused', () => {
    const held = { ...timed({ idleMs: 100 }, { lifetimeEndsBootMs: 9000 }), holds: 1 };
    expect(dueOf(held, 5000)).toBe('nothing');
    expect(expiryOf(held, 5000)).toBe(5100);
    expect(dueOf(held, 9000)).toBe('end');
    expect(dueOf({ ...held, state: 'paused' }, 5000)).toBe('end');
  });
});

const settle = async () => {
  for (let n = 0; n < 20; n += 1) await new Promise((resolve) => setImmediate(resolve));
};

async function opened(ttl: Ttl) {
  const clock = createManualClock(1_700_000_000_000);
  const { world, open } = createCoreWorld({ clock });
  const first = await open();
  const entry = await first.core.lifecycle.create({ ...CREATE, ttl }, context());
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 100) {
      clock.advance(Math.min(100, left));
      await settle();
    }
  };
  return { ...first, open, world, clock, entry, pass };
}

describe('the time of a sandbox', () => {
  it('is up when it was not used', async () => {
    const { core, entry, pass, world } = await opened({ idleMs: 2000, lifetimeMs: HOUR_MS });
    await pass(1500);
    core.sandboxes.touch(entry);
    await pass(1500);
    expect(entry.state).toBe('running');
    await pass(1000);
    expect(entry).toMatchObject({ state: 'stopped', endReason: 'ttl' });
    expect(world.leftovers()).toEqual([]);
  });

  it('is not up while something holds it, and begins with the last that ends', async () => {
    const { core, entry, pass } = await opened({ idleMs: 1000, lifetimeMs: HOUR_MS });
    const release = [core.sandboxes.hold(entry), core.sandboxes.hold(entry)];
    await pass(5000);
    release[0]?.();
    await pass(3000);
    expect(entry.state).toBe('running');
    release[1]?.();
    await pass(800);
    expect(entry.state).toBe('running');
    await pass(500);
    expect(entry).toMatchObject({ state: 'stopped', endReason: 'ttl' });
  });

  it('leaves a held one its idle time when the edge is lost', async () => {
    const { core, crash, open, entry, pass } = await opened({ idleMs: 4000 });
    core.sandboxes.hold(entry);
    await pass(10_000);
    crash();
    const again = (await open()).core.sandboxes.get(entry.id);
    await pass(2500);
    expect(again.state).toBe('running');
    await pass(2000);
    expect(again).toMatchObject({ state: 'stopped', endReason: 'ttl' });
  });

  it('passes in a paused one from the pause on, whoever holds it', async () => {
    const { core, entry, pass } = await opened({ idleMs: 1000 });
    core.sandboxes.hold(entry);
    await pass(3000);
    await core.lifecycle.pause(entry, context());
    await pass(800);
    expect(entry.state).toBe('paused');
    await pass(500);
    expect(entry).toMatchObject({ state: 'stopped', endReason: 'ttl' });
  });

  it('is up after its lifetime, used or not, whatever the wall clock does', async () => {
    const { core, entry, pass, clock } = await opened({ idleMs: 1000, lifetimeMs: 3000 });
    clock.stepWall(HOUR_MS * 1000);
    for (let n = 0; n < 5; n += 1) {
      await pass(500);
      core.sandboxes.touch(entry);
    }
    expect(entry.state).toBe('running');
    clock.stepWall(-HOUR_MS * 2000);
    await pass(700);
    expect(entry).toMatchObject({ state: 'stopped', endReason: 'ttl' });
  });

  it('passes while the machine sleeps', async () => {
    const { entry, pass, clock } = await opened({ lifetimeMs: HOUR_MS });
    clock.suspend(2 * HOUR_MS);
    await pass(300);
    expect(entry.state).toBe('stopped');
  });

  it('has a grace time for scoring, in which nothing starts', async () => {
    const { core, entry, pass } = await opened({ idleMs: 1000, graceMs: 2000 });
    await pass(1200);
    expect(entry).toMatchObject({ state: 'running', inGrace: true });
    await expect(
      core.sandboxes.requireRunning(entry.id, { startsCommand: true }),
    ).rejects.toMatchObject({ code: 'state-conflict', details: { inGrace: true } });
    await core.sandboxes.requireRunning(entry.id);
    await pass(1000);
    expect(entry.state).toBe('running');
    await pass(1200);
    expect(entry).toMatchObject({ state: 'stopped', endReason: 'ttl' });
  });

  it('can be renewed, in its grace time too', async () => {
    const { core, entry, pass } = await opened({ lifetimeMs: 1000, graceMs: 1000 });
    await pass(1500);
    expect(entry.inGrace).toBe(true);
    await core.lifecycle.renew(entry, { lifetimeMs: 3000 }, context());
    expect(entry).toMatchObject({ inGrace: false, ttl: { lifetimeMs: 3000 } });
    await core.sandboxes.requireRunning(entry.id, { startsCommand: true });
    await pass(2500);
    expect(entry.state).toBe('running');
    await pass(700);
    expect(entry.state).toBe('stopped');
    await expect(core.lifecycle.renew(entry, {}, context())).rejects.toMatchObject({
      code: 'state-conflict',
    });
  });

  it('can be without end', async () => {
    const { core, entry, pass, clock } = await opened({ lifetimeMs: 1000 });
    await core.lifecycle.renew(entry, {}, context());
    clock.suspend(HOUR_MS * 1000);
    await pass(500);
    expect(entry.state).toBe('running');
    expect(core.sandboxes.view(entry)).not.toHaveProperty('expiresAtMs');
  });

  it('is shown in the time of the wall', async () => {
    const { core, entry, clock } = await opened({ lifetimeMs: 60_000 });
    clock.advance(1000);
    expect(core.sandboxes.view(entry).expiresAtMs).toBe(1_700_000_060_000);
    clock.stepWall(5000);
    expect(core.sandboxes.view(entry).expiresAtMs).toBe(1_700_000_065_000);
  });

  it('goes on over a restart of the edge', async () => {
    const { crash, open, entry, pass, clock } = await opened({ idleMs: 8000, lifetimeMs: 10_000 });
    await pass(500);
    crash();
    clock.advance(4000);
    const { core } = await open();
    const again = core.sandboxes.get(entry.id);
    expect(again.state).toBe('running');
    await pass(3700);
    expect(again.state).toBe('stopped');
  });
});
