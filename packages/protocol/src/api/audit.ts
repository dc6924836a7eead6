/** What sandboxes tried that they may not: counted for each, however often. */
import Type, { type Static } from 'typebox';
import {
  count,
  cursor,
  instantMs,
  integer,
  jobId,
  listOfMax,
  principalId,
  record,
  sandboxId,
} from '../names.ts';
import { DeniedAt, DeniedReason, DeniedTarget, TamperAt } from './event.ts';
import { pageQuery } from './sandbox.ts';

/** Different attempts of one sandbox that are told apart. */
export const AUDIT_ROWS_MAX = 64;

const counted = {
  reason: DeniedReason,
  target: Type.Optional(DeniedTarget),
  count: count('How often, as far as each was looked at.'),
  firstAtMs: instantMs(),
  lastAtMs: instantMs(),
};

export const AuditRow = Type.Union([
  record('AuditDenied', {
    ...{ type: Type.Literal('denied'), at: DeniedAt, ...counted },
    port: Type.Optional(integer(1, 65_535)),
  }),
  record('AuditTamper', { type: Type.Literal('tamper'), at: TamperAt, ...counted }),
]);
export type AuditRow = Static<typeof AuditRow>;

export const AuditRecord = record(
  'AuditRecord',
  {
    sandbox: sandboxId,
    createdAtMs: instantMs(),
    principal: principalId,
    job: Type.Optional(jobId),
    sinceMs: instantMs('From when on it was counted: the start of the edge, or of the sandbox.'),
    total: count('All attempts, those that are lost among them.'),
    lost: count('Attempts of which nothing but their number is known.'),
    rows: listOfMax(AuditRow, AUDIT_ROWS_MAX),
  },
  'What one sandbox tried, the first kinds of attempts by themselves and the others as a number.',
);
export type AuditRecord = Static<typeof AuditRecord>;

export const AuditQuery = record('AuditQuery', {
  ...pageQuery,
  sandbox: Type.Optional(sandboxId),
  job: Type.Optional(jobId),
});

export const AuditPage = record('AuditPage', {
  records: listOfMax(AuditRecord, 1000),
  cursor: Type.Optional(cursor),
});
export type AuditPage = Static<typeof AuditPage>;
