/** An edge as its callers see it: tickets in front, a simulated node behind. */
import {
  decodeAttachData,
  type Event,
  encodeAttachData,
  ROUTES,
  type Sandbox,
} from '@dsec/protocol';
import { newSandboxId, type SandboxId } from '@dsec/std';
import { expect, it } from 'vitest';
import { CREATE, until } from '../core-world.ts';
import { EDGE, SHARD, startEdge } from '../support/served-edge.ts';

const params = ({ id }: Pick<Sandbox, 'id'>) => ({ sandboxId: id as SandboxId });

it('takes a sandbox from its creation to its end', async () => {
  const { clientOf } = await startEdge();
  const client = clientOf('p');
  const key = { idempotencyKey: 'create-1' };
  const sandbox = await client.call(ROUTES.createSandbox, { body: CREATE }, key);
  expect(sandbox).toMatchObject({ state: 'running', project: 'p', principal: 'someone' });
  const again = await client.call(ROUTES.createSandbox, { body: CREATE }, key);
  expect(again.id).toBe(sandbox.id);
  const theirs = await clientOf('q').call(ROUTES.createSandbox, { body: CREATE }, key);
  expect(theirs).toMatchObject({ project: 'q', state: 'running' });
  expect(theirs.id).not.toBe(sandbox.id);
  const other = { body: { ...CREATE, job: 'other' } };
  await expect(client.call(ROUTES.createSandbox, other, key)).rejects.toMatchObject({
    code: 'idempotency-conflict',
  });

  const one = { params: params(sandbox) };
  const started = await client.call(ROUTES.startExec, {
    ...one,
    body: { argv: ['echo', 'hello'], waitMs: 10_000 },
  });
  expect(started).toMatchObject({ exec: { exit: { exitCode: 0 } }, stdout: { text: 'hello\n' } });
  const exec = { params: { ...params(sandbox), execId: started.exec.id } };
  const output = await client.call(ROUTES.readExecOutput, { ...exec, query: { offset: 2 } });
  expect(output.headers).toEqual({ 'dsec-offset': '2', 'dsec-end': 'true' });
  const parts: Uint8Array[] = [];
  for await (const part of output.body) parts.push(part);
  expect(Buffer.concat(parts).toString()).toBe('llo\n');
  const wrong = { params: { ...params(sandbox), execId: `ex-${'a'.repeat(16)}` } };
  await expect(client.call(ROUTES.getExec, wrong)).rejects.toMatchObject({ code: 'not-found' });

  const shown = await client.call(ROUTES.getSandbox, one);
  expect(shown.usage).toBeDefined();
  expect(await client.call(ROUTES.pauseSandbox, one)).toMatchObject({ state: 'paused' });
  expect(await client.call(ROUTES.getSandbox, one)).toMatchObject({ state: 'paused' });
  const file = { ...one, query: { path: '/note' }, body: Buffer.from('woken') };
  expect(await client.call(ROUTES.writeFile, file)).toMatchObject({ sizeBytes: 5 });
  expect(await client.call(ROUTES.getSandbox, one)).toMatchObject({ state: 'running' });
  const ttl = { idleMs: 60_000 };
  expect((await client.call(ROUTES.renewSandbox, { ...one, body: ttl })).expiresAtMs).toBeDefined();
  await expect(client.call(ROUTES.createSnapshot, { ...one, body: {} })).rejects.toMatchObject({
    code: 'unsupported',
  });

  const waiting = client.call(ROUTES.getSandbox, {
    ...one,
    query: { afterRevision: (await client.call(ROUTES.getSandbox, one)).revision, waitMs: 10_000 },
  });
  expect(await client.call(ROUTES.stopSandbox, one)).toMatchObject({ state: 'stopped' });
  expect((await waiting).state).toMatch(/^stop/);
  const late = client.call(ROUTES.startExec, { ...one, body: { argv: ['true'] } });
  await expect(late).rejects.toMatchObject({
    ...{ code: 'state-conflict', details: { state: 'stopped', endReason: 'stopped' } },
  });
});

it('attaches to a command: stdin in, output out, its end last', async () => {
  const { clientOf } = await startEdge();
  const client = clientOf('p');
  const sandbox = await client.call(ROUTES.createSandbox, { body: CREATE });
  const { exec } = await client.call(ROUTES.startExec, {
    ...{ params: params(sandbox), body: { argv: ['cat'], stdin: true } },
  });
  const channel = await client.socket(
    ROUTES.attachExec,
    { ...params(sandbox), execId: exec.id },
    {},
  );
  await channel.send(
    encodeAttachData({ channel: 'stdin', offset: 0, data: Buffer.from('through') }),
  );
  await channel.send(JSON.stringify({ type: 'stdin-end', offset: 7 }));
  let text = '';
  const types: string[] = [];
  for await (const message of channel.messages()) {
    if (typeof message === 'string') types.push((JSON.parse(message) as { type: string }).type);
    else text += Buffer.from(decodeAttachData(message).data).toString();
  }
  expect(text).toBe('through');
  expect([types[0], types.at(-1)]).toEqual(['attached', 'exit']);
  expect(await channel.closed).toBeUndefined();
});

it('makes a sandbox under the id that the ticket names', async () => {
  const { clientOf } = await startEdge();
  const newId = newSandboxId(SHARD, EDGE);
  const sandbox = await clientOf('p').call(ROUTES.createSandbox, { body: CREATE }, { newId });
  expect(sandbox.id).toBe(newId);
});

it('hides what is of another project', async () => {
  const { clientOf } = await startEdge();
  const sandbox = await clientOf('p').call(ROUTES.createSandbox, { body: CREATE });
  const stranger = clientOf('q');
  const calls = [
    () => stranger.call(ROUTES.getSandbox, { params: params(sandbox) }),
    () => stranger.call(ROUTES.stopSandbox, { params: params(sandbox) }),
    () => stranger.call(ROUTES.statFile, { params: params(sandbox), query: { path: '/' } }),
  ];
  for (const call of calls) {
    await expect(call()).rejects.toMatchObject({
      ...{ code: 'not-found', message: 'there is no such sandbox' },
    });
  }
  await expect(
    stranger.socket(ROUTES.connectPort, { ...params(sandbox), port: 80 }, {}),
  ).rejects.toMatchObject({ code: 'not-found' });
});

it('streams events from a cursor, each to whom it concerns', async () => {
  const { clientOf, server } = await startEdge();
  const client = clientOf('p');
  const from = (await clientOf('platform').call(ROUTES.getEdgeState, {})).events;
  const follow = async (project: string, query: object) => {
    const events: Event[] = [];
    const answer = await clientOf(project).call(ROUTES.streamEvents, { query });
    const ended = (async () => {
      for await (const { id, data } of answer) {
        expect(id).toBe(data.cursor);
        events.push(data);
      }
    })();
    ended.catch(() => {});
    return { events, ended };
  };
  const mine = await follow('p', { cursor: from });
  const all = await follow('platform', { cursor: from });
  const theirs = await follow('q', { cursor: from });
  const first = await client.call(ROUTES.createSandbox, { body: CREATE });
  await clientOf('q').call(ROUTES.createSandbox, { body: CREATE });
  await client.call(ROUTES.stopSandbox, { params: params(first) });
  const states = ({ events }: { events: Event[] }) =>
    events.map((event) => event.type === 'sandbox-state' && [event.project, event.state]);
  await until(() => mine.events.length === 4 && all.events.length === 6);
  const life = ['creating', 'running', 'stopping', 'stopped'].map((state) => ['p', state]);
  expect(states(mine)).toEqual(life);
  expect(states(theirs)).toEqual(['creating', 'running'].map((state) => ['q', state]));
  const rest = await follow('p', { cursor: mine.events[1]?.cursor });
  await until(() => rest.events.length === 2);
  expect(states(rest)).toEqual(life.slice(2));
  const foreign = await follow('p', { cursor: `${'0'.repeat(16)}-1` });
  await until(() => foreign.events.length >= 1);
  expect(foreign.events[0]?.type).toBe('lost');
  await expect(
    client.call(ROUTES.streamEvents, { query: { cursor: 'nonsense' } }),
  ).rejects.toMatchObject({ code: 'invalid-argument' });
  await server.close(1000);
  await Promise.all([mine.ended, all.ended]);
});

it('tells of itself: state, health, versions, metrics', async () => {
  const { clientOf, baseUrl } = await startEdge();
  const client = clientOf('p');
  const sandbox = await client.call(ROUTES.createSandbox, { body: CREATE });
  const state = await client.call(ROUTES.getEdgeState, {});
  expect(state).toMatchObject({ edge: EDGE, full: true, sandboxes: [{ id: sandbox.id }] });
  const since = { epoch: state.epoch, sinceRevision: state.revision };
  expect(await client.call(ROUTES.getEdgeState, { query: since })).toMatchObject({
    ...{ full: false, sandboxes: [] },
  });
  const open = async (path: string) => (await fetch(`${baseUrl}${path}`)).json();
  expect(await open('/v1/health')).toMatchObject({ ok: true });
  expect(await open('/v1/version')).toEqual({ version: '0.1.0', api: 'v1', frames: 1 });
  expect(await open('/v1/openapi.json')).toHaveProperty('openapi');
  expect(await open('/v1/metrics')).toMatchObject({ code: 'unauthenticated' });
  const metrics = await client.call(ROUTES.getMetrics, {});
  expect(metrics).toContain('dsec_edge_sandboxes{state="running"} 1');
  expect(metrics).toContain('dsec_edge_requests_total{operation="getHealth",status="200"} 1');
});
