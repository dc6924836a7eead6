/** The audit over all edges, by what watched paths tell. */
import { ROUTES } from '@dsec/protocol';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Caller, createOne, type Fleet, openFleet } from './apiserver-world.ts';

let fleet: Fleet;
let caller: Caller;
beforeAll(async () => {
  fleet = await openFleet({ edges: 2 });
  caller = await fleet.callerOf('mine');
}, 60_000);
afterAll(() => fleet.close());

const write = (sandboxId: string, path: string, text: string) =>
  caller.call(ROUTES.writeFile, {
    ...{ params: { sandboxId }, query: { path }, body: Buffer.from(text) },
  });
const audit = (query: object, who = caller) => who.call(ROUTES.getAudit, { query });

it('tells changes once, of the sandboxes of a project, page by page over all edges', async () => {
  const made = [];
  for (let index = 0; index < 4; index += 1) {
    made.push(await createOne(caller, { job: 'j', watchPaths: ['/watched'] }));
  }
  expect(new Set(made.map(({ edge }) => edge)).size).toBe(2);
  for (const { id } of made) expect((await audit({ sandbox: id })).records).toEqual([]);
  for (const { id } of made) {
    await write(id, '/watched', 'x');
    await write(id, '/elsewhere', 'x');
    const [record] = (await audit({ sandbox: id })).records;
    expect(record).toMatchObject({
      ...{ sandbox: id, job: 'j', principal: 'someone', total: 1, lost: 0 },
      rows: [{ type: 'tamper', at: 'watched-path', reason: 'added', target: '/watched', count: 1 }],
    });
    await write(id, '/watched', 'y');
    const again = await audit({ sandbox: id });
    expect(again.records[0]?.rows.map((row) => row.reason)).toEqual(['added', 'written']);
    expect(await audit({ sandbox: id })).toEqual(again);
  }
  const first = await audit({ job: 'j', limit: 3 });
  const rest = await audit({ job: 'j', limit: 3, cursor: first.cursor });
  const ids = [...first.records, ...rest.records].map(({ sandbox }) => sandbox);
  expect(ids).toEqual(made.map(({ id }) => id));
  expect(rest.cursor).toBeUndefined();
  expect((await audit({ job: 'other' })).records).toEqual([]);
  const stranger = await fleet.callerOf('else');
  expect((await audit({}, stranger)).records).toEqual([]);
  expect((await audit({ sandbox: made[0]?.id }, stranger)).records).toEqual([]);
});

it('looks once more before a sandbox is stopped, and says it as an event', async () => {
  const { id: sandboxId } = await createOne(caller, { watchPaths: ['/watched'] });
  const ended = new AbortController();
  const events = await caller.call(
    ROUTES.streamEvents,
    { query: { sandbox: sandboxId, type: ['tamper'] } },
    { signal: ended.signal },
  );
  await write(sandboxId, '/watched', 'x');
  await caller.call(ROUTES.stopSandbox, { params: { sandboxId } });
  for await (const { data } of events) {
    expect(data).toMatchObject({ type: 'tamper', reason: 'added', target: '/watched' });
    break;
  }
  ended.abort();
});

it('paused, it is neither resumed nor looked at', async () => {
  const { id: sandboxId } = await createOne(caller, { watchPaths: ['/watched'] });
  const params = { sandboxId };
  await caller.call(ROUTES.pauseSandbox, { params });
  await audit({ sandbox: sandboxId });
  expect((await caller.call(ROUTES.getSandbox, { params, query: {} })).state).toBe('paused');
});
