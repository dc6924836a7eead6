import {
  createOwnPlacements,
  type EdgeCandidate,
  type OwnPlacements,
  type PlacementRequest,
  placeMany,
} from '@dsec/placement';
import { asDsecError, type EdgeId, type Random } from '@dsec/std';
import type { Watcher } from '@dsec/watcher';

export interface Placer {
  readonly own: OwnPlacements;
  /**
   * So many edges. When the view says that there is none, it is made anew first. Throws as `placeMany` of
   * `@dsec/placement`.
   */
  choose(request: PlacementRequest, count: number): Promise<readonly EdgeId[]>;
}

export function createPlacer(
  watcher: () => Pick<Watcher, 'edges' | 'refresh'>,
  random: Random,
): Placer {
  const own = createOwnPlacements();
  const candidates = (): readonly EdgeCandidate[] =>
    watcher()
      .edges()
      .flatMap(({ edge, state, live, error }) =>
        state === undefined
          ? []
          : {
              ...{ edge, live, pending: own.count(edge), healthy: error === undefined },
              ...{ backends: state.backends, load: state.load },
            },
      );
  return {
    own,
    async choose(request, count) {
      try {
        return placeMany(candidates(), request, count, random);
      } catch (thrown) {
        if (asDsecError(thrown).code === 'unsupported') throw thrown;
      }
      await watcher().refresh();
      return placeMany(candidates(), request, count, random);
    },
  };
}
