import { DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { CREATE, context, createCoreWorld, until } from './core-world.ts';

const opened = async (options: Parameters<typeof createCoreWorld>[0] = {}) => {
  const { world, open } = createCoreWorld(options);
  const { core, backend } = await open();
  const entry = await core.lifecycle.create(CREATE, context());
  return { world, core, backend, entry };
};

describe('pause', () => {
  it('stands still until an operation needs it', async () => {
    const { world, core, entry } = await opened();
    await core.lifecycle.pause(entry, context());
    await core.lifecycle.pause(entry, context());
    expect(entry.state).toBe('paused');
    const [node] = world.sandboxes.values();
    expect(node?.context.time.isFrozen).toBe(true);
    const all = await Promise.all([1, 2, 3].map(() => core.sandboxes.requireRunning(entry.id)));
    expect(all.every((found) => found === entry)).toBe(true);
    expect(node?.context.time.isFrozen).toBe(false);
    expect(entry.revision).toBe(6);
  });

  it('runs on when it would not be frozen', async () => {
    const { core, backend, entry } = await opened();
    const pause = backend.pause;
    backend.pause = () => Promise.reject(new DsecError('freeze-timeout', 'too busy'));
    await expect(core.lifecycle.pause(entry, context())).rejects.toMatchObject({
      code: 'freeze-timeout',
    });
    expect(entry.state).toBe('running');
    backend.pause = pause;
    await core.lifecycle.pause(entry, context());
    expect(entry.state).toBe('paused');
  });

  it('is over when it can be neither paused nor thawed', async () => {
    const { world, core, backend, entry } = await opened();
    backend.pause = () => Promise.reject(new DsecError('freeze-timeout', 'too busy'));
    backend.resume = () => Promise.reject(new DsecError('internal', 'broken'));
    await expect(core.lifecycle.pause(entry, context())).rejects.toThrow('too busy');
    expect(entry).toMatchObject({ state: 'failed', endReason: 'backend-failed' });
    await core.lifecycle.idle();
    expect(world.leftovers()).toEqual([]);
  });

  it('stays paused when it cannot be resumed, and can be stopped', async () => {
    const { core, backend, entry } = await opened();
    await core.lifecycle.pause(entry, context());
    backend.resume = () => Promise.reject(new DsecError('internal', 'broken'));
    await expect(core.sandboxes.requireRunning(entry.id)).rejects.toThrow('broken');
    expect(entry.state).toBe('paused');
    await core.lifecycle.stop(entry, context());
    expect(entry.state).toBe('stopped');
  });

  it('gives way to a stop', async () => {
    const { core, backend, entry } = await opened();
    backend.pause = (_key, signal) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      });
    const pause = core.lifecycle.pause(entry, context());
    pause.catch(() => undefined);
    await until(() => entry.state === 'pausing');
    await core.lifecycle.stop(entry, context());
    await expect(pause).rejects.toMatchObject({ code: 'cancelled' });
    expect(entry.state).toBe('stopped');
  });

  it('refuses operations on what has ended, with its end', async () => {
    const { core, entry } = await opened();
    await core.lifecycle.stop(entry, context());
    await expect(core.sandboxes.requireRunning(entry.id)).rejects.toMatchObject({
      ...{ code: 'state-conflict', message: 'the sandbox is stopped' },
      details: { state: 'stopped', endReason: 'stopped' },
    });
    await expect(core.lifecycle.pause(entry, context())).rejects.toMatchObject({
      code: 'state-conflict',
    });
  });
});
