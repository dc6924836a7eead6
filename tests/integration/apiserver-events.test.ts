import { type Event, ROUTES } from '@dsec/protocol';
import type { EventAnswer } from '@dsec/transport';
import { afterEach, expect, test } from 'vitest';
import {
  type Caller,
  createOne,
  type Fleet,
  type FleetOptions,
  openFleet,
} from './apiserver-world.ts';

let fleet: Fleet;
const open = async (options?: FleetOptions) => {
  fleet = await openFleet(options);
  return fleet;
};
afterEach(() => fleet.close());

interface Follower {
  /** Told so far. */
  readonly told: EventAnswer<Event>[];
  /** Resolves once `enough` holds. */
  until(enough: (told: EventAnswer<Event>[]) => boolean): Promise<void>;
  stop(): Promise<void>;
}

async function follow(caller: Caller, query: Record<string, unknown> = {}): Promise<Follower> {
  const leaving = new AbortController();
  const events = await caller.call(
    ROUTES.streamEvents,
    { query },
    { signal: leaving.signal, deadlineMs: 20_000 },
  );
  const told: EventAnswer<Event>[] = [];
  let wake = () => {};
  const reading = (async () => {
    for await (const event of events) {
      told.push(event);
      wake();
    }
  })().catch(() => undefined);
  return {
    told,
    async until(enough) {
      while (!enough(told)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async stop() {
      leaving.abort();
      await reading;
    },
  };
}

const idsOf = (told: EventAnswer<Event>[]) =>
  told.map(({ data }) => ('sandbox' in data ? data.sandbox : data.type));
const runs = (id: string) => (told: EventAnswer<Event>[]) =>
  told.some(
    ({ data }) => data.type === 'sandbox-state' && data.sandbox === id && data.state === 'running',
  );

test('a follower hears of its project on every edge, from the moment on at which it came', async () => {
  const { callerOf } = await open({ edges: 3 });
  const [mine, theirs] = [await callerOf('mine'), await callerOf('theirs')];
  const before = await createOne(mine);
  const follower = await follow(mine);
  await createOne(theirs);
  const made = await Promise.all(Array.from({ length: 6 }, () => createOne(mine)));
  for (const { id } of made) await follower.until(runs(id));
  const heard = new Set(idsOf(follower.told));
  expect(heard).toEqual(new Set(made.map(({ id }) => id)));
  expect(heard.has(before.id)).toBe(false);
  await follower.stop();
});

test('a cursor goes on where it was, at another apiserver too, whatever the edge', async () => {
  const { callerOf } = await open({ edges: 2, apiservers: 2 });
  const [one, two] = [await callerOf('p'), await callerOf('p', { at: 1 })];
  const follower = await follow(one);
  const first = await createOne(one);
  await follower.until(runs(first.id));
  await follower.stop();
  const cursor = follower.told.at(-1)?.id;
  const between = await Promise.all(Array.from({ length: 5 }, () => createOne(one)));
  for (const caller of [one, two]) {
    const again = await follow(caller, { cursor });
    const later = await createOne(one);
    for (const { id } of [...between, later]) await again.until(runs(id));
    expect(idsOf(again.told)).not.toContain(first.id);
    const told = again.told.map(({ id }) => id);
    expect(new Set(told).size).toBe(told.length);
    await again.stop();
  }
});

test('filters by sandbox, job and type; a cursor that is none is refused', async () => {
  const { callerOf } = await open();
  const caller = await callerOf('p');
  const one = await createOne(caller);
  const bySandbox = await follow(caller, { sandbox: one.id });
  const byJob = await follow(caller, { job: 'j' });
  const exits = await follow(caller, { type: ['exec-exit'] });
  const two = await createOne(caller, { job: 'j' });
  await caller.call(ROUTES.startExec, {
    params: { sandboxId: one.id },
    body: { argv: ['true'], waitMs: 5000 },
  });
  await caller.call(ROUTES.stopSandbox, { params: { sandboxId: one.id } });
  await byJob.until(runs(two.id));
  await exits.until((told) => told.length > 0);
  await bySandbox.until((told) =>
    told.some(({ data }) => data.type === 'sandbox-state' && data.state === 'stopped'),
  );
  expect(new Set(idsOf(bySandbox.told))).toEqual(new Set([one.id]));
  expect(new Set(idsOf(byJob.told))).toEqual(new Set([two.id]));
  expect(exits.told.map(({ data }) => data.type)).toEqual(['exec-exit']);
  for (const follower of [bySandbox, byJob, exits]) await follower.stop();
  for (const cursor of ['nonsense', Buffer.from('e1').toString('base64url')]) {
    await expect(caller.call(ROUTES.streamEvents, { query: { cursor } })).rejects.toMatchObject({
      code: 'invalid-argument',
    });
  }
});

test('many edges are no leak of listeners, for those who follow from now on or from long ago', async () => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error) => void warnings.push(name);
  process.on('warning', onWarning);
  try {
    const { callerOf } = await open({ edges: 14, apiservers: 2 });
    const [caller, elsewhere] = [await callerOf('p'), await callerOf('p', { at: 1 })];
    const follower = await follow(caller);
    const made = await Promise.all(Array.from({ length: 28 }, () => createOne(caller)));
    for (const { id } of made) await follower.until(runs(id));
    const cursor = String(follower.told[0]?.id);
    await follower.stop();
    // At an apiserver that has not read that far.
    const late = await follow(elsewhere, { cursor });
    await late.until((told) => told.length >= follower.told.length - 1);
    await late.stop();
    await Promise.all(fleet.edges.slice(1).map((edge) => edge.stop()));
    const other = await follow(elsewhere, { cursor });
    await other.stop();
  } finally {
    process.off('warning', onWarning);
  }
  expect(warnings).toEqual([]);
});
