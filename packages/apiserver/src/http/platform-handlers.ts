import { buildOpenApi, FRAME_VERSION, type Health, ROUTES } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import type { Watcher } from '@dsec/watcher';
import type { ApiserverMetrics } from '../apiserver-metrics.ts';
import type { Events } from '../events/events.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { listAudit } from '../list-audit.ts';
import type { ApiHandlers } from './handlers.ts';
import { identityOf } from './key-authorizer.ts';

export interface PlatformHandlersOptions {
  /** Of DSec. */
  readonly version: string;
  readonly health: () => Promise<Health>;
  readonly fleet: Fleet;
  readonly watcher: Pick<Watcher, 'edge'>;
  readonly events: Events;
  readonly metrics: ApiserverMetrics;
}

type PlatformOperation =
  | 'getHealth'
  | 'getVersion'
  | 'getOpenApi'
  | 'getDoctorReport'
  | 'getMetrics'
  | 'streamEvents'
  | 'getAudit';

export function createPlatformHandlers({
  version,
  health,
  fleet,
  watcher,
  events,
  metrics,
}: PlatformHandlersOptions): Pick<ApiHandlers, PlatformOperation> {
  const openApi = JSON.stringify(buildOpenApi(version));
  return {
    getHealth: health,
    getVersion: async () => ({ version, api: 'v1', frames: FRAME_VERSION }),
    getOpenApi: async () => openApi,
    getMetrics: () => metrics.render(),
    /** Of the first edge that answers: of others, their operators ask them. */
    async getDoctorReport(_input, call) {
      const { signal } = call;
      const link = fleet.links.find(({ edgeId }) => watcher.edge(edgeId)?.error === undefined);
      if (link === undefined) throw new DsecError('unavailable', 'no edge answers');
      return link.call(ROUTES.getDoctorReport, {}, { holder: identityOf(call.principal), signal });
    },
    getAudit: ({ query }, call) => listAudit(fleet, query, identityOf(call.principal), call.signal),
    streamEvents: async ({ query }, call) =>
      events.follow({
        ...{ query, signal: call.signal, identity: identityOf(call.principal) },
        lastEventId: call.headers['last-event-id'],
      }),
  };
}
