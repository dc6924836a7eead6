/** Apiservers that are killed at every step of a create and of a batch: nothing is lost, nothing doubled. */
import { CRASH_POINTS, type CrashPoint } from '@dsec/apiserver';
import { ROUTES, type Route, type Sandbox } from '@dsec/protocol';
import {
  type CallInput,
  type CallOptions,
  type CallReply,
  callRoute,
  createHttpClient,
  type HttpClient,
  RETRY_POLICY,
} from '@dsec/transport';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ServerProcess, startServer, type TestServer } from '../e2e/start-server.ts';

let server: TestServer;
/** At an apiserver that is never killed. */
let sound: Client;
/** The second edge, which is killed as well. */
let second: ServerProcess;
beforeAll(async () => {
  server = await startServer({ edges: 2, logLevel: 'error' });
  second = server.edges[1] as ServerProcess;
  sound = clientOf(server.url, server.apiKey);
}, 120_000);
afterAll(async () => {
  await sound?.http.close();
  await server?.stop();
}, 60_000);

interface Client {
  readonly http: HttpClient;
  call<R extends Route>(
    route: R,
    input: CallInput<R>,
    options?: CallOptions,
  ): Promise<CallReply<R>>;
}

function clientOf(baseUrl: string, key: string): Client {
  const http = createHttpClient({
    ...{ baseUrl, headers: { authorization: `Bearer ${key}` }, deadlineMs: 60_000 },
    retries: { ...RETRY_POLICY, attemptsMax: 1 },
  });
  return { http, call: (route, input, options) => callRoute(http, route, input, options) };
}

/** So many that some go to each edge. */
const CREATES = 24;
const COUNT = 24;

/** Ids by key, of those that were answered. */
async function createAll({ call }: Client, run: string): Promise<Map<string, string>> {
  const made = new Map<string, string>();
  await Promise.all(
    Array.from({ length: CREATES }, async (_, index) => {
      const idempotencyKey = `${run}-${index}`;
      const body = { layers: [server.layer], labels: { run } };
      const one = await call(ROUTES.createSandbox, { body }, { idempotencyKey }).catch(
        () => undefined,
      );
      if (one !== undefined) made.set(idempotencyKey, one.id);
    }),
  );
  return made;
}

async function createBatch({ call }: Client, run: string): Promise<Map<string, string>> {
  const made = new Map<string, string>();
  const body = { count: COUNT, spec: { layers: [server.layer], labels: { run } } };
  try {
    const lines = await call(ROUTES.createSandboxes, { body }, { idempotencyKey: run });
    for await (const { index, sandbox } of lines) {
      if (sandbox !== undefined) made.set(String(index), sandbox.id);
    }
  } catch {
    // Killed in the middle.
  }
  return made;
}

async function living(run: string): Promise<Sandbox[]> {
  const query = { label: [`run=${run}`], state: ['running' as const], limit: 1000 };
  return (await sound.call(ROUTES.listSandboxes, { query })).sandboxes;
}

/** An edge that has just started takes no tickets for two seconds. */
async function whenHealthy({ call }: Client): Promise<void> {
  for (;;) {
    const { parts } = await call(ROUTES.getHealth, {});
    if (parts.every(({ ok }) => ok)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Kills an apiserver at a point, repeats what it was asked at a sound one, and looks what there is. */
async function killedAt(point: CrashPoint): Promise<void> {
  const run = point.replace('.', '-');
  const work = point.startsWith('batch') ? createBatch : createAll;
  const isMove = point.endsWith('move');
  const env = { DSEC_CRASH_POINT: `${point}:${isMove || point === 'batch.after-record' ? 1 : 3}` };
  await whenHealthy(sound);
  const armed = await server.startApiserver({ env, watchMs: 60_000 });
  const client = clientOf(armed.url, server.apiKey);
  await whenHealthy(client);
  // It does not look again: what it places goes to an edge that is gone.
  if (isMove) {
    second.kill('SIGKILL');
    await second.ended;
  }
  const before = await work(client, run);
  if (isMove) second = await server.startEdge(1);
  // One that was not killed ends by itself, and the test with it.
  const ending = setTimeout(() => armed.process.kill('SIGTERM'), 5000);
  expect(await armed.process.ended, `${point} was not reached`).toBe('SIGKILL');
  clearTimeout(ending);
  await client.http.close();

  const after = await work(sound, run);
  expect(after.size).toBe(work === createBatch ? COUNT : CREATES);
  for (const [key, id] of before) expect(after.get(key)).toBe(id);
  const ids = (await living(run)).map(({ id }) => id).sort();
  expect(ids).toEqual([...new Set(after.values())].sort());
  expect(new Set(after.values()).size).toBe(after.size);
}

const isOfMove = (point: CrashPoint) => point.endsWith('move');

test.each(CRASH_POINTS.filter((point) => !isOfMove(point)))('%s', killedAt, 90_000);
test.each(CRASH_POINTS.filter(isOfMove))('%s', killedAt, 90_000);

test('every crash point is one of a create or of a batch', () => {
  for (const point of CRASH_POINTS) expect(point).toMatch(/^(create|batch)\./);
});
