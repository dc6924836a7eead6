import { formatListPlace } from '@dsec/protocol';
import type { ProjectId, SandboxId, SandboxState } from '@dsec/std';
import { expect, test } from 'vitest';
import { listPage } from '../src/http/sandbox-list.ts';

const mine = 'mine' as ProjectId;

function entry(createdAtMs: number, more: Record<string, unknown> = {}) {
  const random = String(createdAtMs).padStart(16, 'a');
  return {
    id: `sb-local-one-${random}` as SandboxId,
    ...{ createdAtMs, project: mine, state: 'running' as SandboxState, job: undefined, spec: {} },
    ...more,
  };
}
/** The next page's query. */
const after = (page: { cursor: string | undefined }) => ({ limit: 2, cursor: String(page.cursor) });
const times = (page: { entries: readonly { createdAtMs: number }[] }) =>
  page.entries.map(({ createdAtMs }) => createdAtMs);

test('pages follow each other in the order of creation, whatever the order of the entries', () => {
  const entries = [entry(3), entry(1), entry(5), entry(4), entry(2)];
  const first = listPage(entries, { limit: 2 }, mine);
  expect(times(first)).toEqual([1, 2]);
  const second = listPage([...entries, entry(6)], after(first), mine);
  expect(times(second)).toEqual([3, 4]);
  const last = listPage(entries, after(second), mine);
  expect(times(last)).toEqual([5]);
  expect(last.cursor).toBeUndefined();
});

test('a page that is exactly full is the last one when nothing follows', () => {
  expect(listPage([entry(1), entry(2)], { limit: 2 }, mine).cursor).toBeUndefined();
});

test('filters by project, state, job and labels', () => {
  const entries = [
    entry(1, { project: 'other' }),
    entry(2, { state: 'stopped' }),
    entry(3, { job: 'train' }),
    entry(4, { spec: { labels: { a: '1', b: 'x=y' } } }),
  ];
  expect(times(listPage(entries, {}, mine))).toEqual([2, 3, 4]);
  expect(times(listPage(entries, { state: ['stopped', 'failed'] }, mine))).toEqual([2]);
  expect(times(listPage(entries, { job: 'train' }, mine))).toEqual([3]);
  expect(times(listPage(entries, { label: ['a=1', 'b=x=y'] }, mine))).toEqual([4]);
  expect(times(listPage(entries, { label: ['a=2'] }, mine))).toEqual([]);
  expect(times(listPage(entries, { label: ['constructor='] }, mine))).toEqual([]);
});

test('what is no cursor is an invalid argument; the place of one that is gone is a place', () => {
  expect(() => listPage([], { cursor: 'nonsense' }, mine)).toThrowError(
    expect.objectContaining({ code: 'invalid-argument' }),
  );
  const cursor = formatListPlace({ createdAtMs: 2, id: 'sb-local-one-zzzzzzzzzzzzzzzz' });
  expect(times(listPage([entry(1), entry(3)], { cursor }, mine))).toEqual([3]);
});
