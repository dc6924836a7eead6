import { AUDIT_ROWS_MAX } from '@dsec/protocol';
import { createManualClock, type ProjectId, type SandboxId } from '@dsec/std';
import { expect, test } from 'vitest';
import { type AuditNote, createAuditLog } from '../../src/audit/audit-log.ts';
import { auditPage } from '../../src/audit/audit-page.ts';

const A = 'sb-s1-e1-aaaaaaaaaaaaaaaa' as SandboxId;
const B = 'sb-s1-e1-bbbbbbbbbbbbbbbb' as SandboxId;

const entryOf = (id: SandboxId, more: object = {}) => ({
  ...{ id, project: 'p' as ProjectId, principal: 'u', job: 'j', state: 'running', createdAtMs: 1 },
  ...{ spec: {}, ...more },
});

const denied = (target: string, more: Partial<AuditNote> = {}) =>
  ({ type: 'denied', at: 'dns', reason: 'no-rule', target, version: 1, ...more }) as AuditNote;

function open() {
  const clock = createManualClock(1000);
  const sandboxes = new Map([A, B].map((id) => [id, entryOf(id)]));
  const told: { sandbox: SandboxId; target?: string; suppressed: number }[] = [];
  const state = { isFull: false, waiting: 0, forget: (_: SandboxId) => {} };
  const log = createAuditLog({
    ...{ clock, untold: (id) => (id === A ? state.waiting : 0) },
    registry: {
      find: (id: SandboxId) => sandboxes.get(id),
      hook: ({ forgotten }: { forgotten: (id: SandboxId) => void }) => {
        state.forget = forgotten;
      },
    } as never,
    events: {
      append(event: never) {
        if (state.isFull) throw new Error('full');
        told.push(event);
      },
    } as never,
  });
  return { clock, sandboxes, told, state, log };
}

test('counts what is tried again and again in one row, and tells it as an event', () => {
  const { clock, told, log } = open();
  expect(log.find(A)).toBeUndefined();
  log.note(A, denied('x.example', { port: 443 }));
  clock.advance(5000);
  log.note(A, denied('x.example', { port: 443 }));
  log.note(A, { type: 'tamper', at: 'watched-path', reason: 'written', target: '/work/tests' });
  expect(log.find(A)).toEqual({
    ...{ sinceMs: 1000, total: 3, lost: 0 },
    rows: [
      {
        ...{ type: 'denied', at: 'dns', reason: 'no-rule', target: 'x.example', port: 443 },
        ...{ count: 2, firstAtMs: 1000, lastAtMs: 6000 },
      },
      {
        ...{ type: 'tamper', at: 'watched-path', reason: 'written', target: '/work/tests' },
        ...{ count: 1, firstAtMs: 6000, lastAtMs: 6000 },
      },
    ],
  });
  expect(told).toHaveLength(3);
  expect(told[0]).toMatchObject({ sandbox: A, project: 'p', job: 'j', version: 1, suppressed: 0 });
  expect(Object.fromEntries(log.totals)).toEqual({ dns: 2, 'watched-path': 1 });
});

test('distinct denials of one without end cost so much memory, and another is heard', () => {
  const { told, state, log } = open();
  const count = 50_000;
  for (let index = 0; index < count; index += 1) log.note(A, denied(`${index}.example`));
  log.note(B, denied('mine.example'));
  expect(told.at(-1)).toMatchObject({ sandbox: B, target: 'mine.example', suppressed: 0 });
  expect(told.length).toBeLessThan(100);
  const { rows = [], total, lost } = log.find(A) ?? {};
  expect(rows).toHaveLength(AUDIT_ROWS_MAX);
  expect({ total, lost }).toEqual({ total: count, lost: count - AUDIT_ROWS_MAX });
  expect(log.lostTotal).toBe(count - AUDIT_ROWS_MAX);
  expect(log.find(B)).toMatchObject({ total: 1, lost: 0 });
  // What was only counted elsewhere is lost too, and shown.
  state.waiting = 7;
  expect(log.find(A)).toMatchObject({ total: count + 7, lost: count - AUDIT_ROWS_MAX + 7 });
});

test('what could not be told is counted in the next event', () => {
  const { told, state, log } = open();
  state.isFull = true;
  log.note(A, denied('a'), 5);
  log.note(A, denied('b'));
  state.isFull = false;
  log.note(A, denied('c'), 2);
  log.note(A, denied('d'));
  expect(told.map(({ suppressed }) => suppressed)).toEqual([9, 0]);
  expect(log.find(A)).toMatchObject({ total: 11, lost: 7 });
});

test('one that has ended tries nothing any more; what is not listed is forgotten', () => {
  const { sandboxes, state, log } = open();
  log.note(A, denied('a'));
  sandboxes.set(A, entryOf(A, { state: 'stopped' }));
  log.note(A, denied('a'));
  expect(log.find(A)).toMatchObject({ total: 1 });
  state.forget(A);
  expect(log.find(A)).toBeUndefined();
});

test('is listed by project, job and sandbox', () => {
  const { sandboxes, log } = open();
  sandboxes.set(B, entryOf(B, { job: undefined, createdAtMs: 2 }));
  log.note(A, denied('a'));
  log.note(B, denied('b'));
  const idsOf = (query: object, project = 'p') =>
    auditPage(log, sandboxes.values() as never, query, project as ProjectId).records.map(
      ({ sandbox }) => sandbox,
    );
  expect(idsOf({})).toEqual([A, B]);
  expect(idsOf({ job: 'j' })).toEqual([A]);
  expect(idsOf({ sandbox: B })).toEqual([B]);
  expect(idsOf({}, 'q')).toEqual([]);
  const first = auditPage(log, sandboxes.values() as never, { limit: 1 }, 'p' as ProjectId);
  expect(first.records).toHaveLength(1);
  expect(idsOf({ cursor: first.cursor })).toEqual([B]);
});
