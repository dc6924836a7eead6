import {
  createOwnPlacements,
  type EdgeCandidate,
  type OwnPlacements,
  type PlacementRequest,
  placeMany,
} from '@dsec/placement';
import { asDsecError, type Clock, type EdgeId, type Random } from '@dsec/std';
import type { Watcher } from '@dsec/watcher';
import { attempts } from '../fleet/attempts.ts';

export interface Placer {
  readonly own: OwnPlacements;
  /**
   * So many edges. When the view says that there is none, it is made anew first; when no edge answers at all,
   * as those do that have just started, it is made again and again for some seconds. Throws as `placeMany` of
   * `@dsec/placement`, or the signal's error.
   */
  choose(request: PlacementRequest, count: number, signal: AbortSignal): Promise<readonly EdgeId[]>;
}

export interface PlacerOptions {
  readonly watcher: () => Pick<Watcher, 'edges' | 'refresh'>;
  readonly clock: Clock;
  readonly random: Random;
}

export function createPlacer({ watcher, clock, random }: PlacerOptions): Placer {
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
    async choose(request, count, signal) {
      try {
        return placeMany(candidates(), request, count, random);
      } catch (thrown) {
        if (asDsecError(thrown).code === 'unsupported') throw thrown;
      }
      const look = async () => {
        await watcher().refresh();
        return placeMany(candidates(), request, count, random);
      };
      // Who looks for another edge has an answer already, and does not wait for one.
      const isMove = (request.excluded?.size ?? 0) > 0;
      const patience = isMove ? { patienceMs: 0 } : {};
      return attempts(look, { clock, random, signal, mayRepeat: true, ...patience });
    },
  };
}
