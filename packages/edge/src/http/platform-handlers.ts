import {
  buildOpenApi,
  type DoctorReport,
  type EdgeState,
  FRAME_VERSION,
  type Health,
  type QueryOf,
} from '@dsec/protocol';
import { MINUTE_MS, type ProjectId, type SandboxId } from '@dsec/std';
import type { AuditLog } from '../audit/audit-log.ts';
import { auditPage } from '../audit/audit-page.ts';
import type { WatchedPaths } from '../audit/watched-paths.ts';
import type { EventLog } from '../journal/event-log.ts';
import type { Sandboxes } from '../sandboxes.ts';
import type { EdgeMetrics } from './edge-metrics.ts';
import type { EdgeRoutes } from './edge-routes.ts';
import { streamEvents } from './event-stream.ts';
import type { EdgeHandlers } from './handlers.ts';
import { callerOfVisitor } from './ticket-authorizer.ts';

export interface PlatformHandlersOptions {
  /** Of DSec. */
  readonly version: string;
  readonly state: (query: QueryOf<EdgeRoutes['getEdgeState']>) => EdgeState | Promise<EdgeState>;
  readonly doctor: (signal: AbortSignal) => Promise<DoctorReport>;
  /** Never asks anything that could wait. */
  readonly health: () => Health;
  readonly events: Pick<EventLog, 'follow'>;
  readonly metrics: EdgeMetrics;
  readonly audit: AuditLog;
  readonly sandboxes: Sandboxes;
  readonly watchedPaths: Pick<WatchedPaths, 'check'>;
  /** Callers of this project see the events of all; it is that of the platform's own parts. */
  readonly platformProject: ProjectId | undefined;
}

const DOCTOR_MS = MINUTE_MS;

type PlatformOperation =
  | 'streamEvents'
  | 'getAudit'
  | 'getEdgeState'
  | 'getDoctorReport'
  | 'getMetrics'
  | 'getHealth'
  | 'getVersion'
  | 'getOpenApi';

export function createPlatformHandlers(
  options: PlatformHandlersOptions,
): Pick<EdgeHandlers, PlatformOperation> {
  const { version, state, doctor, health, events, metrics, platformProject, audit, watchedPaths } =
    options;
  const { list, find } = options.sandboxes;
  /** Examining a host is work: all who ask at a time share one. */
  let examination: Promise<DoctorReport> | undefined;
  const openApi = JSON.stringify(buildOpenApi(version));
  return {
    async streamEvents({ query }, call) {
      const caller = callerOfVisitor(call.principal);
      return streamEvents(events, {
        ...{ query, caller, signal: call.signal },
        lastEventId: call.headers['last-event-id'],
        isPlatform: caller.project === platformProject,
      });
    },
    async getAudit({ query }, call) {
      const { project } = callerOfVisitor(call.principal);
      const { sandbox } = query;
      const isOwn = sandbox !== undefined && find(sandbox as SandboxId)?.project === project;
      if (isOwn) await watchedPaths.check(sandbox as SandboxId);
      return auditPage(audit, list(), query, project);
    },
    getEdgeState: async ({ query }) => state(query),
    getDoctorReport: () => {
      examination ??= doctor(AbortSignal.timeout(DOCTOR_MS)).finally(() => {
        examination = undefined;
      });
      return examination;
    },
    getMetrics: () => metrics.render(),
    getHealth: async () => health(),
    getVersion: async () => ({ version, api: 'v1', frames: FRAME_VERSION }),
    getOpenApi: async () => openApi,
  };
}
