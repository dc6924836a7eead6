import type { EdgeId } from '@dsec/std';

/** What was placed here and the view of the fleet cannot show yet. */
export interface OwnPlacements {
  /** A placement is under way; call what is returned when it has ended, with whether the sandbox is there. */
  begin(edge: EdgeId): (created: boolean, nowMs: number) => void;
  /** A view of the edge has come that was asked for at `askedMs`: it shows all that had ended by then. */
  seen(edge: EdgeId, askedMs: number): void;
  count(edge: EdgeId): number;
}

interface OfEdge {
  underWay: number;
  /** When those that are there ended, oldest first. */
  ended: number[];
}

export function createOwnPlacements(): OwnPlacements {
  const edges = new Map<EdgeId, OfEdge>();
  const of = (edge: EdgeId): OfEdge => {
    const known = edges.get(edge);
    if (known !== undefined) return known;
    const fresh = { underWay: 0, ended: [] };
    edges.set(edge, fresh);
    return fresh;
  };
  return {
    begin(edge) {
      const counts = of(edge);
      counts.underWay += 1;
      return (created, nowMs) => {
        counts.underWay -= 1;
        if (created) counts.ended.push(nowMs);
      };
    },
    seen(edge, askedMs) {
      const counts = of(edge);
      counts.ended = counts.ended.filter((endedMs) => endedMs >= askedMs);
    },
    count(edge) {
      const { underWay, ended } = of(edge);
      return underWay + ended.length;
    },
  };
}
