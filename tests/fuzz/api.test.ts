/** The HTTP API by its own description: whatever is asked, an answer comes, and it is a typed one. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLayerStore } from '@dsec/layers';
import { buildOpenApi, ErrorBody, isValid, ROUTES } from '@dsec/protocol';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type Caller,
  createOne,
  type Fleet,
  LAYERS,
  openFleet,
} from '../integration/apiserver-world.ts';
import {
  createRequests,
  type Dictionary,
  type FuzzRequest,
  operationsOf,
} from './api-arbitrary.ts';

const RUNS = process.env.DSEC_TEST_LONG === '1' ? 600 : 40;
/** Each valid one is a process. */
const IMPORT_RUNS = Math.ceil(RUNS / 8);
/** No operation takes longer, as they are asked here. */
const HANG_MS = 20_000;

const document = JSON.parse(JSON.stringify(buildOpenApi('0.1.0')));
const operations = operationsOf(document);
const directory = mkdtempSync(join(tmpdir(), 'dsec-fuzz-api-'));
let fleet: Fleet;
let caller: Caller;
let known: Dictionary;
/** Of all that was asked. */
const answers = { done: 0, refused: 0 };

beforeAll(async () => {
  fleet = await openFleet({ edges: 2, slotsMax: 48, layers: await createLayerStore(directory) });
  caller = await fleet.callerOf('fuzz');
  const ids = [];
  for (let index = 0; index < 6; index += 1) ids.push((await createOne(caller, { job: 'j' })).id);
  const params = { sandboxId: String(ids[0]) };
  const body = { argv: ['cat'], stdin: true };
  const { exec } = await caller.call(ROUTES.startExec, { params, body });
  await importEmptyLayer(String(LAYERS[0]));
  const env = { params: { name: 'env' }, body: { layers: LAYERS } };
  await caller.call(ROUTES.putEnvironment, env);
  known = {
    ...{ sandboxId: ids, sandbox: ids, execId: [exec.id], jobId: ['j'], job: ['j'] },
    ...{ name: ['env'], environment: ['env'], path: ['/', '/tmp', '/tmp/file'] },
  };
}, 60_000);
afterAll(async () => {
  await fleet?.close();
  rmSync(directory, { recursive: true, force: true });
});

async function importEmptyLayer(ref: string): Promise<void> {
  const archive = join(directory, 'empty.tar');
  execFileSync('tar', ['-cf', archive, '--files-from', '/dev/null']);
  const body = readFileSync(archive);
  const query = { format: 'tar' as const, ref };
  for await (const told of await caller.call(ROUTES.importLayer, { query, body })) {
    if (told.error !== undefined) throw new Error(told.error.message);
  }
}

async function ask({ method, target, headers, body }: FuzzRequest): Promise<void> {
  const leaving = new AbortController();
  const signal = AbortSignal.any([leaving.signal, AbortSignal.timeout(HANG_MS)]);
  const init = { method, headers, signal, redirect: 'manual' as const };
  const reply = await caller.fetch(target, body === undefined ? init : { ...init, body });
  if (reply.ok) answers.done += 1;
  else answers.refused += 1;
  // A stream that follows has no end of its own.
  const isEndless = reply.headers.get('content-type') === 'text/event-stream';
  const isFollowing = reply.ok && target.includes('follow=true');
  if (isEndless || isFollowing) return leaving.abort();
  const text = await reply.text();
  expect(reply.status).not.toBe(500);
  expect(reply.status).toBeGreaterThanOrEqual(200);
  if (reply.ok) return;
  expect(reply.headers.get('content-type')).toContain('application/json');
  const error: unknown = JSON.parse(text);
  expect(isValid(ErrorBody, error), text).toBe(true);
}

test('the document has every operation', () => {
  expect(operations.map(({ id }) => id).sort()).toEqual(Object.keys(ROUTES).sort());
});

test.each(operations.map((operation) => [operation.id, operation] as const))(
  '%s: no hang, no fault, a typed error',
  async (id, operation) => {
    const numRuns = id === 'importLayer' ? IMPORT_RUNS : RUNS;
    const requests = createRequests(document, known)(operation);
    await fc.assert(fc.asyncProperty(requests, ask), { numRuns, seed: 7, endOnFailure: true });
  },
  240_000,
);

test('much of it was understood, and much of it was not', () => {
  const all = answers.done + answers.refused;
  expect(answers.done / all).toBeGreaterThan(0.1);
  expect(answers.refused / all).toBeGreaterThan(0.1);
});

test('after all of it the server is as it was', async () => {
  const body = { argv: ['true'], waitMs: 5000 };
  const { id } = await createOne(caller).catch(async () => {
    await caller.call(ROUTES.stopJob, { params: { jobId: 'j' } });
    return createOne(caller);
  });
  const done = await caller.call(ROUTES.startExec, { params: { sandboxId: id }, body });
  expect(done.exec).toMatchObject({ exit: { exitCode: 0 } });
}, 60_000);
