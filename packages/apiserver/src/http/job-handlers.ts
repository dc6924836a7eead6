import type { JobAction, Jobs } from '../jobs/jobs.ts';
import type { ApiHandlers } from './handlers.ts';
import { identityOf, type Visitor } from './key-authorizer.ts';

export function createJobHandlers(
  jobs: Jobs,
): Pick<ApiHandlers, 'listJobs' | 'getJob' | 'pauseJob' | 'resumeJob' | 'stopJob'> {
  const apply =
    (action: JobAction) =>
    (
      { params }: { readonly params: { readonly jobId: string } },
      call: { readonly principal: Visitor; readonly signal: AbortSignal },
    ) =>
      jobs.apply(action, params.jobId, identityOf(call.principal), call.signal);
  return {
    listJobs: ({ query }, call) => jobs.list(identityOf(call.principal).project, query),
    getJob: ({ params }, call) => jobs.get(identityOf(call.principal).project, params.jobId),
    pauseJob: apply('pause'),
    resumeJob: apply('resume'),
    stopJob: apply('stop'),
  };
}
