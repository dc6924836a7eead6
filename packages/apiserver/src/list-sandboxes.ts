import type { Identity } from '@dsec/iam';
import {
  compareListPlaces,
  formatListPlace,
  type QueryOf,
  ROUTES,
  type RouteOf,
  type SandboxPage,
} from '@dsec/protocol';
import type { Fleet } from './fleet/fleet.ts';
import { LIMIT_DEFAULT, mapBounded } from './paging.ts';

const EDGES_AT_ONCE = 16;

/**
 * One page of the sandboxes of a project over all edges. Each edge lists from the same place in the one order
 * there is, so that the cursor is a place and nothing is kept between pages. An edge that does not answer
 * fails the list: one that leaves its sandboxes out would be a wrong answer.
 */
export async function listSandboxes(
  { links }: Fleet,
  query: QueryOf<RouteOf<'listSandboxes'>>,
  holder: Identity,
  signal: AbortSignal,
): Promise<SandboxPage> {
  const { limit = LIMIT_DEFAULT } = query;
  const pages = await mapBounded(links, EDGES_AT_ONCE, (link) =>
    link.call(ROUTES.listSandboxes, { query: { ...query, limit } }, { holder, signal }),
  );
  const found = pages.flatMap(({ sandboxes }) => sandboxes).sort(compareListPlaces);
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const isMore = page.length < found.length || pages.some(({ cursor }) => cursor !== undefined);
  return {
    sandboxes: page,
    ...(isMore && last !== undefined ? { cursor: formatListPlace(last) } : {}),
  };
}
