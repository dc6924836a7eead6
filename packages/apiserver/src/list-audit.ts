import type { Identity } from '@dsec/iam';
import {
  type AuditPage,
  type AuditRecord,
  compareListPlaces,
  formatListPlace,
  type QueryOf,
  ROUTES,
  type RouteOf,
} from '@dsec/protocol';
import type { EdgeLink } from './fleet/edge-link.ts';
import type { Fleet } from './fleet/fleet.ts';
import { LIMIT_DEFAULT, mapBounded } from './paging.ts';

const EDGES_AT_ONCE = 16;

const placeOf = ({ sandbox: id, createdAtMs }: AuditRecord) => ({ id, createdAtMs });

/** One page over all edges, by the same rules as the list of sandboxes; of one sandbox its edge is asked. */
export async function listAudit(
  fleet: Fleet,
  query: QueryOf<RouteOf<'getAudit'>>,
  holder: Identity,
  signal: AbortSignal,
): Promise<AuditPage> {
  const { limit = LIMIT_DEFAULT, sandbox } = query;
  const links: readonly EdgeLink[] = sandbox === undefined ? fleet.links : [fleet.linkOf(sandbox)];
  const pages = await mapBounded(links, EDGES_AT_ONCE, (link) =>
    link.call(ROUTES.getAudit, { query: { ...query, limit } }, { holder, signal }),
  );
  const found = pages.flatMap(({ records }) => records);
  found.sort((a, b) => compareListPlaces(placeOf(a), placeOf(b)));
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const isMore = page.length < found.length || pages.some(({ cursor }) => cursor !== undefined);
  return {
    records: page,
    ...(isMore && last !== undefined ? { cursor: formatListPlace(placeOf(last)) } : {}),
  };
}
