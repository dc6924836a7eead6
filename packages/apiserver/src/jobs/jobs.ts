/** Jobs: the sandboxes that carry one label, counted and acted on as one. Nothing is kept of them. */
import type { Identity } from '@dsec/iam';
import { type Job, type ReplyOf, ROUTES, type RouteOf } from '@dsec/protocol';
import { asDsecError, DsecError, isEndState, type SandboxState, toErrorBody } from '@dsec/std';
import type { Watcher } from '@dsec/watcher';
import type { Static } from 'typebox';
import type { Fleet } from '../fleet/fleet.ts';
import { formatCursor, LIMIT_DEFAULT, mapBounded, parseCursor } from '../paging.ts';

export type JobAction = 'pause' | 'resume' | 'stop';
type JobCounts = Static<typeof Job>;

export interface Jobs {
  list(
    project: string,
    page: { readonly limit?: number; readonly cursor?: string },
  ): Promise<ReplyOf<RouteOf<'listJobs'>>>;
  /** `not-found` for a label that no sandbox of the project carries. */
  get(project: string, job: string): Promise<JobCounts>;
  apply(
    action: JobAction,
    job: string,
    identity: Identity,
    signal: AbortSignal,
  ): Promise<ReplyOf<RouteOf<'stopJob'>>>;
}

const AT_ONCE = 32;
const FAILURES_TOLD_MAX = 100;
const NAME = /^[a-z0-9][a-z0-9._-]{0,127}$/;

/** In which column a state is counted. */
const COLUMNS: Readonly<
  Record<SandboxState, 'creating' | 'running' | 'paused' | 'stopped' | 'failed'>
> = {
  creating: 'creating',
  running: 'running',
  pausing: 'running',
  paused: 'paused',
  resuming: 'paused',
  snapshotting: 'running',
  stopping: 'running',
  stopped: 'stopped',
  failed: 'failed',
};

const ACTIONS = {
  stop: { route: ROUTES.stopSandbox, concerns: (state: SandboxState) => !isEndState(state) },
  pause: { route: ROUTES.pauseSandbox, concerns: (state: SandboxState) => state === 'running' },
  resume: { route: ROUTES.resumeSandbox, concerns: (state: SandboxState) => state === 'paused' },
} as const;

export function createJobs(fleet: Fleet, watcher: Pick<Watcher, 'edges' | 'refresh'>): Jobs {
  /** As it is now: an edge that does not answer would make every count wrong. */
  const current = async (project: string) => {
    await watcher.refresh();
    return watcher.edges().flatMap(({ edge, sandboxes, error }) => {
      if (error !== undefined) {
        throw new DsecError('unavailable', `the edge ${edge} does not answer`, { cause: error });
      }
      return [...sandboxes.values()].filter((sandbox) => sandbox.project === project);
    });
  };
  const counted = async (project: string) => {
    const jobs = new Map<string, JobCounts>();
    for (const { job, state, createdAtMs } of await current(project)) {
      if (job === undefined) continue;
      const counts = jobs.get(job) ?? emptyJob(job, project, createdAtMs);
      jobs.set(job, counts);
      counts[COLUMNS[state]] += 1;
      counts.firstCreatedAtMs = Math.min(counts.firstCreatedAtMs, createdAtMs);
    }
    return jobs;
  };
  return {
    async list(project, { limit = LIMIT_DEFAULT, cursor }) {
      const after = cursor === undefined ? '' : parseCursor(cursor, NAME);
      const jobs = [...(await counted(project)).values()].filter(({ job }) => job > after);
      jobs.sort((a, b) => (a.job < b.job ? -1 : 1));
      const page = jobs.slice(0, limit);
      const last = page.at(-1);
      const isMore = page.length < jobs.length && last !== undefined;
      return { jobs: page, ...(isMore ? { cursor: formatCursor(last.job) } : {}) };
    },
    async get(project, job) {
      const counts = (await counted(project)).get(job);
      if (counts !== undefined) return counts;
      throw new DsecError('not-found', `no sandbox of this project carries the job ${job}`);
    },
    async apply(action, job, holder, signal) {
      const { route, concerns } = ACTIONS[action];
      const all = (await current(holder.project)).filter((sandbox) => sandbox.job === job);
      const living = all.filter(({ state }) => !isEndState(state));
      const outcomes = await mapBounded(
        living.filter(({ state }) => concerns(state)),
        AT_ONCE,
        async ({ id }) => {
          try {
            const params = { sandboxId: id };
            await fleet.linkOf(id).call(route, { params }, { holder, signal });
            return undefined;
          } catch (thrown) {
            return { sandbox: id, error: toErrorBody(asDsecError(thrown)) };
          }
        },
      );
      const failures = outcomes.filter((outcome) => outcome !== undefined);
      return {
        matched: living.length,
        changed: outcomes.length - failures.length,
        failed: failures.length,
        failures: failures.slice(0, FAILURES_TOLD_MAX),
      };
    },
  };
}

function emptyJob(job: string, project: string, firstCreatedAtMs: number): JobCounts {
  const none = { creating: 0, running: 0, paused: 0, stopped: 0, failed: 0 };
  return { job, project, ...none, firstCreatedAtMs };
}
