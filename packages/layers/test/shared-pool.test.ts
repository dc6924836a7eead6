import { describe, expect, it } from 'vitest';
import { createSharedPool } from '../src/shared-pool.ts';

/** Opens numbered values by hand and records what happens. */
function createWorld() {
  const log: string[] = [];
  const waiting: { resolve: (value: string) => void; reject: (reason: Error) => void }[] = [];
  const pool = createSharedPool<string, string>((value) => void log.push(`close ${value}`));
  const open = (signal: AbortSignal) => {
    log.push('open');
    signal.addEventListener('abort', () => log.push('abandoned'));
    return new Promise<string>((resolve, reject) => waiting.push({ resolve, reject }));
  };
  const settle = async () => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  const take = async () => {
    await settle();
    const next = waiting.shift();
    if (next === undefined) throw new Error('nothing is being opened');
    return next;
  };
  return { log, pool, open, take, settle };
}

describe('createSharedPool', () => {
  it('opens once for many users and closes after the last', async () => {
    const { log, pool, open, take } = createWorld();
    const leases = Promise.all([1, 2, 3].map(() => pool.acquire('k', open)));
    (await take()).resolve('v');
    const [first, second, third] = await leases;
    expect(pool.users().get('k')).toBe(3);
    await first?.release();
    await first?.release();
    await second?.release();
    expect(log).toEqual(['open']);
    await third?.release();
    expect(log).toEqual(['open', 'abandoned', 'close v']);
    expect(pool.users().size).toBe(0);
  });

  it('tells every waiter of a failure and then tries anew', async () => {
    const { log, pool, open, take, settle } = createWorld();
    const waits = Promise.allSettled([pool.acquire('k', open), pool.acquire('k', open)]);
    (await take()).reject(new Error('no'));
    expect((await waits).map((wait) => wait.status)).toEqual(['rejected', 'rejected']);
    await settle();
    expect(pool.users().size).toBe(0);
    const again = pool.acquire('k', open);
    (await take()).resolve('v');
    expect((await again).value).toBe('v');
    expect(log.filter((line) => line === 'open')).toHaveLength(2);
  });

  it('lets one waiter give up without disturbing the others', async () => {
    const { log, pool, open, take, settle } = createWorld();
    const controller = new AbortController();
    const impatient = pool.acquire('k', open, controller.signal);
    const patient = pool.acquire('k', open);
    const opening = await take();
    controller.abort(new Error('enough'));
    await expect(impatient).rejects.toThrow('enough');
    await settle();
    expect(log).toEqual(['open']);
    opening.resolve('v');
    expect((await patient).value).toBe('v');
    expect(pool.users().get('k')).toBe(1);
  });

  it('abandons the work when the last waiter gives up, and closes what came too late', async () => {
    const { log, pool, open, take, settle } = createWorld();
    const controller = new AbortController();
    const only = pool.acquire('k', open, controller.signal);
    const opening = await take();
    controller.abort(new Error('enough'));
    await expect(only).rejects.toThrow('enough');
    const next = pool.acquire('k', open);
    await settle();
    expect(log).toEqual(['open', 'abandoned']);
    opening.resolve('late');
    (await take()).resolve('fresh');
    expect((await next).value).toBe('fresh');
    expect(log).toEqual(['open', 'abandoned', 'close late', 'open']);
  });

  it('passes a failure to close to the last user only', async () => {
    const pool = createSharedPool<string, string>(() => {
      throw new Error('busy');
    });
    const open = async () => 'v';
    const lease = await pool.acquire('k', open);
    await expect(lease.release()).rejects.toThrow('busy');
    expect((await pool.acquire('k', open)).value).toBe('v');
  });

  it('keeps keys apart', async () => {
    const { pool } = createWorld();
    const leases = await Promise.all(
      ['a', 'b', 'a'].map((key) => pool.acquire(key, async () => key)),
    );
    expect(leases.map((lease) => lease.value)).toEqual(['a', 'b', 'a']);
    expect([...pool.users()]).toEqual([
      ['a', 2],
      ['b', 1],
    ]);
  });
});
