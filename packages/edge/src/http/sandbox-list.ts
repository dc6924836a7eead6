import {
  compareListPlaces,
  formatListPlace,
  parseListPlace,
  type QueryOf,
  type RouteOf,
} from '@dsec/protocol';
import type { ProjectId } from '@dsec/std';
import type { SandboxEntry } from '../sandboxes.ts';

type ListedEntry = Pick<SandboxEntry, 'id' | 'createdAtMs' | 'project' | 'state' | 'job' | 'spec'>;

const LIMIT_DEFAULT = 100;

/**
 * One page of the sandboxes of a project, in the order of creation; new ones come behind every place, so that
 * a listing that goes on misses none that was there when it began. Throws `invalid-argument` for a cursor
 * that is none.
 */
export function listPage<Entry extends ListedEntry>(
  entries: Iterable<Entry>,
  query: QueryOf<RouteOf<'listSandboxes'>>,
  project: ProjectId,
): { readonly entries: readonly Entry[]; readonly cursor: string | undefined } {
  const { limit = LIMIT_DEFAULT, cursor } = query;
  const after = cursor === undefined ? undefined : parseListPlace(cursor);
  const isWanted = filterOf(query);
  const found: Entry[] = [];
  for (const entry of entries) {
    const isLater = after === undefined || compareListPlaces(placeOf(entry), after) > 0;
    if (entry.project === project && isLater && isWanted(entry)) found.push(entry);
  }
  found.sort((a, b) => compareListPlaces(placeOf(a), placeOf(b)));
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const isMore = page.length < found.length && last !== undefined;
  return { entries: page, cursor: isMore ? formatListPlace(placeOf(last)) : undefined };
}

/** As it is shown and as it stands in a cursor: whole milliseconds. */
function placeOf({ id, createdAtMs }: ListedEntry) {
  return { id, createdAtMs: Math.floor(createdAtMs) };
}

function filterOf({ state, job, label }: QueryOf<RouteOf<'listSandboxes'>>) {
  const labels = (label ?? []).map((text) => {
    const split = text.indexOf('=');
    return [text.slice(0, split), text.slice(split + 1)] as const;
  });
  return (entry: ListedEntry): boolean =>
    (state === undefined || state.includes(entry.state)) &&
    (job === undefined || entry.job === job) &&
    labels.every(([name, value]) => labelOf(entry, name) === value);
}

function labelOf({ spec }: ListedEntry, name: string): string | undefined {
  const { labels } = spec;
  return labels !== undefined && Object.hasOwn(labels, name) ? labels[name] : undefined;
}
