import type { EdgeState } from '@dsec/protocol';
import { createManualClock, DsecError, type EdgeId } from '@dsec/std';
import { afterEach, expect, test } from 'vitest';
import { createWatcher, type StateReader, type Watcher } from '../src/index.ts';

const A = 'a' as EdgeId;
const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

function state(more: Partial<EdgeState> = {}): EdgeState {
  return {
    ...{ edge: 'a', epoch: 1, bootId: '1'.repeat(36), revision: 1, full: true, events: 'c' },
    load: {
      ...{ admitting: true, cpuCount: 1, memoryTotalBytes: 1, memoryAvailableBytes: 1 },
      ...{ diskAvailableBytes: 1, pidsAvailable: 1 },
    },
    ...{ backends: ['container'], sandboxes: [] },
    ...more,
  };
}
const sandbox = (name: string, word: 'running' | 'stopped' = 'running', revision = 1) => ({
  ...{ id: `sb-s1-a-${name.repeat(16)}`, state: word, revision, project: 'p', createdAtMs: 1 },
});

let watcher: Watcher | undefined;
afterEach(() => watcher?.close());

function watch(read: StateReader, edges = [A]) {
  const clock = createManualClock();
  const health: (string | undefined)[] = [];
  watcher = createWatcher({
    ...{ edges, read, clock },
    onHealth: (_edge, error) => health.push(error?.code),
  });
  return { clock, watcher, health };
}

test('asks for everything first, and for what has changed then', async () => {
  const asked: unknown[] = [];
  const answers = [
    state({ revision: 2, sandboxes: [sandbox('a'), sandbox('b')] }),
    state({ revision: 3, full: false, sandboxes: [sandbox('b', 'stopped', 2)] }),
  ];
  const { clock, watcher: watched } = watch(async (_edge, query) => {
    asked.push(query);
    return answers.shift() ?? state({ revision: 3, full: false });
  });
  await settle();
  expect(watched.edge(A)).toMatchObject({ live: 2, error: undefined });
  clock.advance(1000);
  await settle();
  expect(asked[1]).toMatchObject({ epoch: 1, sinceRevision: 2 });
  expect(watched.edge(A)?.live).toBe(1);
  expect(watched.edge(A)?.sandboxes.size).toBe(2);
});

test('after a while everything is asked for anew, so that what was forgotten goes', async () => {
  const queries: { sinceRevision?: number }[] = [];
  const { clock, watcher: watched } = watch(async (_edge, query) => {
    queries.push(query);
    const full = query.sinceRevision === undefined;
    return state({ full, sandboxes: queries.length === 1 ? [sandbox('a')] : [] });
  });
  await settle();
  for (let second = 0; second < 61; second += 1) {
    clock.advance(1000);
    await settle();
  }
  expect(queries.filter(({ sinceRevision }) => sinceRevision === undefined)).toHaveLength(2);
  expect(watched.edge(A)?.sandboxes.size).toBe(0);
});

test('pages are put together', async () => {
  const { watcher: watched } = watch(async (_edge, { cursor }) =>
    cursor === undefined
      ? state({ sandboxes: [sandbox('a')], cursor: 'next' })
      : state({ sandboxes: [sandbox('b')] }),
  );
  await settle();
  expect(watched.edge(A)?.live).toBe(2);
});

test('an edge that fails keeps its last view, and is asked for everything when it is back', async () => {
  let isDown = false;
  const queries: { sinceRevision?: number }[] = [];
  const {
    clock,
    watcher: watched,
    health,
  } = watch(async (_edge, query) => {
    queries.push(query);
    if (isDown) throw new DsecError('unavailable', 'gone');
    return state({ sandboxes: [sandbox('a')] });
  });
  await settle();
  isDown = true;
  clock.advance(1000);
  await settle();
  expect(watched.edge(A)).toMatchObject({ live: 1, error: { code: 'unavailable' } });
  isDown = false;
  clock.advance(1000);
  await settle();
  expect(queries.at(-1)).not.toHaveProperty('sinceRevision');
  expect(health).toEqual([undefined, 'unavailable', undefined]);
});

test('a refresh is not older than its call, and all who come meanwhile share one', async () => {
  let rounds = 0;
  const gates: (() => void)[] = [];
  const { watcher: watched } = watch(async () => {
    rounds += 1;
    await new Promise<void>((resolve) => gates.push(resolve));
    return state();
  });
  await settle();
  const waiting = Promise.all(Array.from({ length: 10 }, () => watched.refresh()));
  expect(rounds).toBe(1);
  gates.shift()?.();
  await settle();
  expect(rounds).toBe(2);
  gates.shift()?.();
  await waiting;
  expect(rounds).toBe(2);
});
