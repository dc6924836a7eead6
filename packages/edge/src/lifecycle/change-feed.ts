import { DsecError, type SandboxId } from '@dsec/std';
import type { Changes, ChangesQuery } from '../sandboxes.ts';
import type { LiveSandbox } from './live-sandbox.ts';

/** Changes in an answer, where the caller names no fewer. */
const LIMIT_MAX = 10_000;
/** Whether the first page was a full one, the epoch, the revision of the last one told. */
const CURSOR = /^([fd])-(\d{1,16})-(\d{1,16})$/;

export interface ChangeFeed {
  changed(sandbox: LiveSandbox): void;
  read(query: ChangesQuery): Changes;
}

/** What changed since a revision of the edge. The revision begins anew with every epoch. */
export function createChangeFeed(
  epoch: number,
  sandboxes: ReadonlyMap<SandboxId, LiveSandbox>,
): ChangeFeed {
  let revision = 0;

  const startOf = (query: ChangesQuery): { full: boolean; since: number } => {
    if (query.cursor === undefined) {
      const full = query.epoch !== epoch || query.sinceRevision === undefined;
      return { full, since: full ? 0 : (query.sinceRevision as number) };
    }
    const [, kind, cursorEpoch, since] = CURSOR.exec(query.cursor) ?? [];
    if (kind === undefined || Number(cursorEpoch) !== epoch) {
      throw new DsecError('invalid-argument', 'the cursor is none of this epoch; begin again');
    }
    return { full: kind === 'f', since: Number(since) };
  };

  return {
    changed(sandbox) {
      revision += 1;
      sandbox.changedAt = revision;
    },
    read(query) {
      const { full, since } = startOf(query);
      const limit = Math.min(query.limit ?? LIMIT_MAX, LIMIT_MAX);
      const changed = [...sandboxes.values()]
        .filter(({ changedAt }) => changedAt > since)
        .sort((a, b) => a.changedAt - b.changedAt);
      const page = changed.slice(0, limit);
      const told = page.at(-1)?.changedAt ?? since;
      return {
        ...{ epoch, revision, full, sandboxes: page.map(shown) },
        cursor: page.length < changed.length ? `${full ? 'f' : 'd'}-${epoch}-${told}` : undefined,
      };
    },
  };
}

function shown({ id, state, revision, project, job, endReason, createdAtMs }: LiveSandbox) {
  return {
    ...{ id, state, revision, project, createdAtMs },
    ...(job === undefined ? {} : { job }),
    ...(endReason === undefined ? {} : { endReason }),
  };
}
