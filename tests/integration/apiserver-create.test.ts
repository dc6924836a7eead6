import { ROUTES, type SandboxBatchItem } from '@dsec/protocol';
import { isEndState } from '@dsec/std';
import { afterEach, expect, test } from 'vitest';
import { createOne, type Fleet, type FleetOptions, LAYERS, openFleet } from './apiserver-world.ts';

let fleet: Fleet | undefined;
const open = async (options?: FleetOptions) => {
  fleet = await openFleet(options);
  return fleet;
};
afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

const listedIn = ({ edges }: Fleet) => edges.flatMap(({ edge }) => [...edge.sandboxes.list()]);
const batchOf = async (lines: AsyncIterable<SandboxBatchItem>) => {
  const items: SandboxBatchItem[] = [];
  for await (const item of lines) items.push(item);
  return items;
};

test('a sandbox is there at once after it was made, for its project alone', async () => {
  const { callerOf } = await open();
  const [mine, theirs] = [await callerOf('mine'), await callerOf('theirs')];
  const { id, state, project } = await createOne(mine, { labels: { a: '1' } });
  expect({ state, project }).toEqual({ state: 'running', project: 'mine' });
  const input = { params: { sandboxId: id } };
  expect((await mine.call(ROUTES.getSandbox, input)).id).toBe(id);
  await expect(theirs.call(ROUTES.getSandbox, input)).rejects.toMatchObject({ code: 'not-found' });
});

test('one key is one sandbox, from two apiservers at once too; another body is refused', async () => {
  const opened = await open({ edges: 2, apiservers: 2 });
  const one = await opened.callerOf('p');
  const other = await opened.callerOf('p', { at: 1 });
  const made = await Promise.all(
    Array.from({ length: 16 }, (_, index) => createOne(index % 2 ? one : other, {}, 'same')),
  );
  expect(new Set(made.map(({ id }) => id)).size).toBe(1);
  expect(listedIn(opened)).toHaveLength(1);
  await expect(createOne(one, { user: 'nobody' }, 'same')).rejects.toMatchObject({
    code: 'idempotency-conflict',
  });
  const stranger = await opened.callerOf('q');
  expect((await createOne(stranger, {}, 'same')).id).not.toBe(made[0]?.id);
});

test('an edge that is full passes the sandbox on; the record says where it is', async () => {
  const opened = await open({ edges: 2, slotsMax: 2 });
  const caller = await opened.callerOf('p');
  const made = [];
  for (const key of ['a', 'b', 'c', 'd']) made.push(await createOne(caller, {}, key));
  expect(new Set(made.map(({ edge }) => edge))).toEqual(new Set(['e1', 'e2']));
  for (const [index, key] of ['a', 'b', 'c', 'd'].entries()) {
    expect((await createOne(caller, {}, key)).id).toBe(made[index]?.id);
  }
  await expect(createOne(caller, {}, 'e')).rejects.toMatchObject({ code: 'overloaded' });
  expect(listedIn(opened)).toHaveLength(4);
  // Room again: the same key goes on.
  await caller.call(ROUTES.stopSandbox, { params: { sandboxId: String(made[0]?.id) } });
  expect((await createOne(caller, {}, 'e')).state).toBe('running');
});

test('an edge that cannot be reached is passed over', async () => {
  const opened = await open({ edges: 2 });
  const caller = await opened.callerOf('p');
  await createOne(caller);
  await opened.edges[0]?.stop();
  const made = await Promise.all(
    Array.from({ length: 6 }, (_, i) => createOne(caller, {}, `k${i}`)),
  );
  expect(new Set(made.map(({ edge }) => edge))).toEqual(new Set(['e2']));
});

test('a batch tells each sandbox as it is ready, over all edges; a repetition finds them', async () => {
  const opened = await open({ edges: 3 });
  const caller = await opened.callerOf('p');
  const body = { count: 40, spec: { layers: LAYERS, job: 'burst' } };
  const ask = () =>
    caller.call(ROUTES.createSandboxes, { body }, { idempotencyKey: 'burst' }).then(batchOf);
  const items = await ask();
  expect(items.map(({ index }) => index).sort((a, b) => a - b)).toEqual([...Array(40).keys()]);
  expect(new Set(items.map(({ sandbox }) => sandbox?.edge)).size).toBe(3);
  const again = await ask();
  const byIndex = (found: SandboxBatchItem[]) =>
    new Map(found.map(({ index, sandbox }) => [index, sandbox?.id]));
  expect(byIndex(again)).toEqual(byIndex(items));
  expect(listedIn(opened)).toHaveLength(40);
});

test('a batch of more than there is room for tells what failed, and goes on when there is room', async () => {
  const opened = await open({ edges: 2, slotsMax: 4 });
  const caller = await opened.callerOf('p');
  const body = { count: 11, spec: { layers: LAYERS } };
  const ask = () =>
    caller.call(ROUTES.createSandboxes, { body }, { idempotencyKey: 'big' }).then(batchOf);
  const items = await ask();
  const failed = items.filter(({ error }) => error !== undefined);
  expect(failed).toHaveLength(3);
  expect(new Set(failed.map(({ error }) => error?.code))).toEqual(new Set(['overloaded']));
  expect(listedIn(opened)).toHaveLength(8);
});

test('a caller that leaves its batch finds what was made by the same key', async () => {
  const opened = await open();
  const caller = await opened.callerOf('p');
  const body = { count: 200, spec: { layers: LAYERS } };
  const options = { idempotencyKey: 'left' };
  const seen: (string | undefined)[] = [];
  for await (const { sandbox } of await caller.call(ROUTES.createSandboxes, { body }, options)) {
    seen.push(sandbox?.id);
    if (seen.length === 5) break;
  }
  const items = await batchOf(await caller.call(ROUTES.createSandboxes, { body }, options));
  expect(items).toHaveLength(200);
  expect(new Set(items.map(({ sandbox }) => sandbox?.id))).toEqual(
    new Set(listedIn(opened).map(({ id }) => id)),
  );
  expect(items.map(({ sandbox }) => sandbox?.id)).toEqual(expect.arrayContaining(seen));
});

test('what is wrong with a request is said before anything is placed', async () => {
  const { callerOf } = await open();
  const caller = await callerOf('p');
  await expect(createOne(caller, { environment: 'e' })).rejects.toMatchObject({
    code: 'invalid-argument',
    details: { field: 'layers' },
  });
  const named = caller.call(ROUTES.createSandbox, { body: { environment: 'none' } });
  await expect(named).rejects.toMatchObject({ code: 'not-found' });
  await expect(createOne(caller, { backend: 'microvm' })).rejects.toMatchObject({
    code: 'unsupported',
  });
});

test('an environment is settled when the request comes first, and shown by its name', async () => {
  const { callerOf } = await open();
  const caller = await callerOf('p');
  const params = { name: 'work' };
  await caller.call(ROUTES.putEnvironment, { params, body: { layers: LAYERS } });
  const create = () =>
    caller.call(ROUTES.createSandbox, { body: { environment: 'work' } }, { idempotencyKey: 'e' });
  const made = await create();
  expect(made.spec).toMatchObject({ environment: 'work' });
  expect(made.spec).not.toHaveProperty('layers');
  await caller.call(ROUTES.putEnvironment, { params, body: { layers: ['base/other:1.0.0'] } });
  expect((await create()).id).toBe(made.id);
  await caller.call(ROUTES.removeEnvironment, { params });
  expect((await create()).id).toBe(made.id);
});

test('of a hundred of which half find no room, what was answered is there and no other', async () => {
  const opened = await open({ edges: 2, slotsMax: 25 });
  const caller = await opened.callerOf('p');
  const outcomes = await Promise.allSettled(
    Array.from({ length: 100 }, (_, index) => createOne(caller, {}, `h${index}`)),
  );
  const made = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : []));
  const codes = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
  expect(new Set(codes)).toEqual(new Set(['overloaded']));
  expect(made).toHaveLength(50);
  expect(new Set(listedIn(opened).map(({ id }) => id))).toEqual(new Set(made));
  for (const sandboxId of made.slice(0, 10)) {
    const found = await caller.call(ROUTES.getSandbox, { params: { sandboxId } });
    expect(found.state).toBe('running');
  }
});

test('what a caller has left behind ends by its time', async () => {
  const opened = await open();
  const caller = await opened.callerOf('p');
  const leaving = new AbortController();
  const body = { layers: LAYERS, ttl: { lifetimeMs: 1500 } };
  const asked = Array.from({ length: 12 }, () =>
    caller.call(ROUTES.createSandbox, { body }, { signal: leaving.signal }),
  );
  await Promise.race(asked);
  leaving.abort();
  await Promise.allSettled(asked);
  const living = () => listedIn(opened).filter(({ state }) => !isEndState(state));
  while (living().length > 0) await new Promise((resolve) => setTimeout(resolve, 100));
  expect(listedIn(opened).length).toBeGreaterThan(0);
});
