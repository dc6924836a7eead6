import type { AuditRecord, Event } from '@dsec/protocol';
import { expect, test } from 'vitest';
import { auditLine, rowsOf, summaryOf } from '../src/commands/audit.ts';

const row = { type: 'denied', at: 'dns', reason: 'no-rule', firstAtMs: 0, lastAtMs: 1000 } as const;
const record: AuditRecord = {
  ...{ sandbox: 'sb-s1-e1-aaaaaaaaaaaaaaaa', createdAtMs: 0, principal: 'u', job: 'j' },
  ...{ sinceMs: 0, total: 15, lost: 3 },
  rows: [
    { ...row, target: 'seldom.example', count: 2 },
    { ...row, target: 'often.example', port: 443, count: 10 },
  ],
};

test('what comes most often comes first, what is not known last', () => {
  const [first, second, last] = rowsOf(record);
  expect(first?.slice(1, 6)).toEqual(['j', 'dns', 'no-rule', 'often.example:443', '10']);
  expect(second?.[4]).toBe('seldom.example');
  expect(last?.slice(3, 6)).toEqual(['others', '-', '3']);
  expect(rowsOf({ ...record, lost: 0 })).toHaveLength(2);
});

test('says how much there was in all', () => {
  expect(summaryOf([])).toBe('0 attempts by 0 sandboxes');
  expect(summaryOf([record, { ...record, total: 5, lost: 0 }])).toBe(
    '20 attempts by 2 sandboxes; of 3 only the number is known',
  );
});

test('follows as lines', () => {
  const about = { cursor: '1', atMs: 0, project: 'p', principal: 'u', sandbox: record.sandbox };
  const tamper: Event = {
    ...{ ...about, type: 'tamper', at: 'watched-path', reason: 'written', target: '/t' },
    suppressed: 2,
  };
  expect(auditLine(tamper)).toBe(
    '1970-01-01 00:00:00  tamper  sb-s1-e1-aaaaaaaaaaaaaaaa  watched-path  written  /t, and 2 more',
  );
  expect(auditLine({ type: 'lost', cursor: '1', atMs: 0 })).toContain('no longer kept');
});
