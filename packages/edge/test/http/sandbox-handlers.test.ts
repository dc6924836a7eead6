import type { SandboxStats } from '@dsec/backend';
import { DsecError } from '@dsec/std';
import { expect, it } from 'vitest';
import { createSandboxHandlers } from '../../src/http/sandbox-handlers.ts';

const STATS = { cpuUs: 1, memoryBytes: 2 } as SandboxStats;

function setUp(state: string, stats: () => Promise<SandboxStats> = async () => STATS) {
  const did: unknown[][] = [];
  const entry = { id: 'sb-1', key: { id: 'sb-1', generation: 1 }, state, runtime: {} };
  const note =
    (what: string) =>
    async (...rest: unknown[]) => {
      did.push([what, ...rest.slice(0, -1)]);
    };
  const handlers = createSandboxHandlers({
    sandboxes: {
      view: ({ id }: { id: string }) => ({ id, state }),
      waitForChange: note('wait'),
    } as never,
    lifecycle: {
      async create(body: unknown, context: object) {
        did.push(['create', body, context]);
        return entry;
      },
      ...{ stop: note('stop'), pause: note('pause'), resume: note('resume'), renew: note('renew') },
    } as never,
    backend: { stats },
    watchedPaths: { check: async () => undefined },
  });
  const call = {
    ...{ principal: { caller: { project: 'ours' }, entry, newId: 'sb-new' } },
    ...{ idempotencyKey: 'k', target: '/v1/sandboxes', signal: undefined },
  } as never;
  return { did, entry, handlers, call };
}

const show = (handlers: ReturnType<typeof setUp>['handlers'], query: object, call: never) =>
  handlers.getSandbox({ query } as never, call);

it('shows usage of what runs, without waking it, and nothing of what does not', async () => {
  for (const state of ['running', 'paused']) {
    const { handlers, call, did } = setUp(state);
    expect(await show(handlers, {}, call)).toEqual({ id: 'sb-1', state, usage: STATS });
    expect(did).toEqual([]);
  }
  const ended = setUp('stopped');
  expect(await show(ended.handlers, {}, ended.call)).toEqual({ id: 'sb-1', state: 'stopped' });
  const gone = setUp('running', async () => {
    throw new DsecError('not-found', 'gone');
  });
  expect(await show(gone.handlers, {}, gone.call)).toEqual({ id: 'sb-1', state: 'running' });
});

it('waits for a change only when it is told since when and how long', async () => {
  const { handlers, call, did, entry } = setUp('running');
  await show(handlers, { waitMs: 5 }, call);
  await show(handlers, { afterRevision: 7, waitMs: 5 }, call);
  expect(did).toEqual([['wait', entry, 7, 5]]);
});

it('hands each change to the lifecycle and shows what became of it', async () => {
  const { handlers, call, did, entry } = setUp('running');
  const shown = { id: 'sb-1', state: 'running' };
  expect(await handlers.stopSandbox({} as never, call)).toEqual(shown);
  expect(await handlers.pauseSandbox({} as never, call)).toEqual(shown);
  expect(await handlers.resumeSandbox({} as never, call)).toEqual(shown);
  const body = { idleMs: 1 };
  expect(await handlers.renewSandbox({ body } as never, call)).toEqual(shown);
  const words = ['stop', 'pause', 'resume'].map((word) => [word, entry]);
  expect(did).toEqual([...words, ['renew', entry, body]]);
});

it('gives a create its key, the digest of the request and the id of the ticket', async () => {
  const { handlers, call, did } = setUp('running');
  const body = { layers: [] };
  expect(await handlers.createSandbox({ body } as never, call)).toMatchObject({ id: 'sb-1' });
  const context = { idempotencyKey: 'k', sandboxId: 'sb-new', caller: { project: 'ours' } };
  expect(did).toMatchObject([['create', body, context]]);
  const digest = expect.stringMatching(/^sha256:/);
  expect(did).toMatchObject([['create', body, { requestDigest: digest }]]);
});
