import { createManualClock, DsecError, type ErrorCode } from '@dsec/std';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { LauncherClient } from '../src/launcher-client.ts';
import { openLauncherLink } from '../src/launcher-link.ts';

/** A launcher that can be there or not, and connections that can be broken. */
function fake(first: { away?: ErrorCode; adopting?: Promise<void> } = {}) {
  const clock = createManualClock();
  let failure = first.away && new DsecError(first.away, 'away');
  let adopting = first.adopting ?? Promise.resolve();
  const clients: { client: LauncherClient; lose: (code: ErrorCode) => void; closed: boolean }[] =
    [];
  const link = openLauncherLink({
    clock,
    async connect() {
      if (failure !== undefined) throw failure;
      let end = (_: DsecError) => {};
      const entry = { closed: false, lose: (code: ErrorCode) => end(new DsecError(code, 'lost')) };
      const client = {
        closed: new Promise<DsecError>((resolve) => {
          end = resolve;
        }),
        close() {
          entry.closed = true;
          end(new DsecError('unavailable', 'closed'));
        },
      } as LauncherClient;
      clients.push(Object.assign(entry, { client }));
      return client;
    },
    onConnected: () => adopting,
  });
  onTestFinished(() => link.close());
  return {
    clock,
    link,
    clients,
    away: (code: ErrorCode | undefined) => {
      failure = code === undefined ? undefined : new DsecError(code, 'away');
    },
    adoptWith(failing: DsecError | undefined) {
      adopting = failing === undefined ? Promise.resolve() : Promise.reject(failing);
      adopting.catch(() => {});
    },
  };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Lets time pass until something has been done. */
async function waitFor<T>(
  clock: ReturnType<typeof createManualClock>,
  work: Promise<T>,
): Promise<T> {
  let settled = false;
  work.then(
    () => {
      settled = true;
    },
    () => {
      settled = true;
    },
  );
  while (!settled) {
    clock.advance(100);
    await turn();
  }
  return work;
}

describe('openLauncherLink', () => {
  it('gives the same connection to all', async () => {
    const { link, clients } = fake();
    const [first, second] = await Promise.all([link.client(), link.client()]);
    expect(first).toBe(second);
    expect(clients).toHaveLength(1);
  });

  it('comes back after a loss', async () => {
    const { link, clients, clock } = fake();
    const before = await link.client();
    clients[0]?.lose('unavailable');
    await turn();
    const after = await waitFor(clock, link.client());
    expect(after).not.toBe(before);
  });

  it('waits for a launcher that is being started', async () => {
    const { link, away, clock } = fake({ away: 'unavailable' });
    await turn();
    const waiting = link.client();
    away(undefined);
    await expect(waitFor(clock, waiting)).resolves.toBeDefined();
  });

  it('is unavailable when none comes, with the reason', async () => {
    const { link } = fake({ away: 'permission-denied' });
    await expect(link.client()).rejects.toMatchObject({
      code: 'unavailable',
      cause: { code: 'permission-denied' },
    });
    await expect(link.client(AbortSignal.abort())).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('gives nobody a connection before what runs is taken up', async () => {
    let taken = () => {};
    const adopting = new Promise<void>((resolve) => {
      taken = resolve;
    });
    const { link, clients } = fake({ adopting });
    let given = false;
    const waiting = link.client().then(() => {
      given = true;
    });
    await turn();
    expect([clients.length, given]).toEqual([1, false]);
    taken();
    await waiting;
  });

  it('breaks off when that fails, and tries again', async () => {
    const { link, adoptWith, clients, clock } = fake();
    await link.client();
    adoptWith(new DsecError('internal', 'cannot'));
    clients[0]?.lose('unavailable');
    await turn();
    clock.advance(100);
    await turn();
    expect(clients[1]?.closed).toBe(true);
    adoptWith(undefined);
    const found = await waitFor(clock, link.client());
    expect(found).toBe(clients.at(-1)?.client);
  });

  it('gives way to a newer edge for ever', async () => {
    const { link, clients } = fake();
    await link.client();
    clients[0]?.lose('conflict');
    await turn();
    await expect(link.client()).rejects.toMatchObject({ code: 'conflict' });
  });

  it('ends with its backend', async () => {
    const { link, clients } = fake();
    await link.client();
    link.close();
    await turn();
    expect(clients[0]?.closed).toBe(true);
    await expect(link.client()).rejects.toMatchObject({ code: 'unavailable' });
  });
});
