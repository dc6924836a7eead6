import Type, { type Static } from 'typebox';
import {
  count,
  cursor,
  instantMs,
  jobId,
  listOfMax,
  projectId,
  record,
  sandboxId,
} from '../names.ts';
import { ErrorBody } from './error-body.ts';
import { PAGE_LIMIT_MAX } from './sandbox.ts';

export const Job = record(
  'Job',
  {
    job: jobId,
    project: projectId,
    creating: count(),
    running: count(),
    paused: count(),
    stopped: count(),
    failed: count(),
    firstCreatedAtMs: instantMs(),
  },
  'The sandboxes that carry one job label, counted.',
);
export type Job = Static<typeof Job>;

export const JobPage = record('JobPage', {
  jobs: listOfMax(Job, PAGE_LIMIT_MAX),
  cursor: Type.Optional(cursor),
});

export const JobResult = record(
  'JobResult',
  {
    matched: count(),
    changed: count('Whose state is now as asked, and was not before.'),
    failed: count(),
    failures: listOfMax(record('JobFailure', { sandbox: sandboxId, error: ErrorBody }), 100),
  },
  'What became of an operation on all sandboxes of a job. At most 100 failures are told one by one.',
);
export type JobResult = Static<typeof JobResult>;
