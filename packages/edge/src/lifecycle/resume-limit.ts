import { type Clock, DsecError, type SandboxId, SECOND_MS } from '@dsec/std';
import type { SandboxEntry, Sandboxes } from '../sandboxes.ts';

/** Resumes of late: one is forgotten with every `everyMs` of its rate. */
export interface ResumeBudget {
  spent: number;
  asOfMs: number;
}

interface ResumeRate {
  /** At once. */
  readonly max: number;
  readonly everyMs: number;
}

export const SANDBOX_RESUMES: ResumeRate = { max: 20, everyMs: SECOND_MS };
/** A job may wake all that it has on this node twice at once, and then each of them so often. */
const JOB_SANDBOX_EVERY_MS = 5 * SECOND_MS;

/** What a job with so many sandboxes may: at least what one sandbox may. */
export const jobResumes = (sandboxes: number): ResumeRate => ({
  max: Math.max(SANDBOX_RESUMES.max, 2 * sandboxes),
  everyMs: Math.min(SANDBOX_RESUMES.everyMs, JOB_SANDBOX_EVERY_MS / sandboxes),
});

export const newResumeBudget = (): ResumeBudget => ({ spent: 0, asOfMs: 0 });

export interface ResumeLimits {
  /**
   * Takes one resume of the sandbox, and of its job. Throws `rate-limited` when either has none left:
   * requests that wake what somebody pauses again and again would keep the node busy with nothing else
   * (THREATS C8).
   */
  take(sandbox: Pick<SandboxEntry, 'project' | 'job'> & { readonly resumes: ResumeBudget }): void;
}

interface Job {
  /** Its sandboxes that run or are paused. */
  readonly sandboxes: Set<SandboxId>;
  readonly budget: ResumeBudget;
}

export function createResumeLimits(sandboxes: Pick<Sandboxes, 'hook'>, clock: Clock): ResumeLimits {
  const jobs = new Map<string, Job>();
  const join = ({ id, project, job }: SandboxEntry) => {
    if (job === undefined) return;
    const name = jobName(project, job);
    const known = jobs.get(name) ?? { sandboxes: new Set(), budget: newResumeBudget() };
    jobs.set(name, known);
    known.sandboxes.add(id);
  };
  sandboxes.hook({
    running: join,
    paused: join,
    ended({ id, project, job }) {
      if (job === undefined) return;
      const name = jobName(project, job);
      const known = jobs.get(name);
      known?.sandboxes.delete(id);
      if (known?.sandboxes.size === 0) jobs.delete(name);
    },
  });
  return {
    take({ project, job, resumes }) {
      const nowMs = clock.monotonicMs();
      const known = job === undefined ? undefined : jobs.get(jobName(project, job));
      check('sandbox', resumes, SANDBOX_RESUMES, nowMs);
      if (known !== undefined) {
        check('job', known.budget, jobResumes(known.sandboxes.size), nowMs);
        known.budget.spent += 1;
      }
      resumes.spent += 1;
    },
  };
}

/** Jobs of two projects may have one name. Neither part holds a slash. */
const jobName = (project: string, job: string) => `${project}/${job}`;

function check(what: string, budget: ResumeBudget, { max, everyMs }: ResumeRate, nowMs: number) {
  budget.spent = Math.max(0, budget.spent - Math.max(0, nowMs - budget.asOfMs) / everyMs);
  budget.asOfMs = nowMs;
  const tooMany = budget.spent + 1 - max;
  if (tooMany <= 0) return;
  throw new DsecError('rate-limited', `the ${what} is resumed too often`, {
    details: { limit: what, retryAfterMs: Math.ceil(tooMany * everyMs) },
  });
}
