import type { Identity } from '@dsec/iam';
import {
  compareListPlaces,
  formatListPlace,
  parseListPlace,
  type QueryOf,
  ROUTES,
  type RouteOf,
  type Sandbox,
  type SandboxPage,
} from '@dsec/protocol';
import { asDsecError, DsecError } from '@dsec/std';
import type { Fleet } from '../fleet/fleet.ts';
import { LIMIT_DEFAULT, mapBounded } from '../paging.ts';
import type { Children } from './children.ts';

const AT_ONCE = 16;

/** One page of the sandboxes that a key with limits has made: each is asked for by its id. */
export const listOwn =
  (children: Pick<Children, 'list'>) =>
  async (
    fleet: Pick<Fleet, 'linkOf'>,
    { limit = LIMIT_DEFAULT, cursor, state, job, label }: QueryOf<RouteOf<'listSandboxes'>>,
    holder: Identity,
    signal: AbortSignal,
  ): Promise<SandboxPage> => {
    if (label !== undefined) {
      throw new DsecError('invalid-argument', 'a key with limits does not list by labels', {
        details: { field: 'label' },
      });
    }
    const after = cursor === undefined ? undefined : parseListPlace(cursor);
    const read = async (sandboxId: string): Promise<Sandbox | undefined> => {
      const input = { params: { sandboxId }, query: {} };
      try {
        return await fleet.linkOf(sandboxId).call(ROUTES.getSandbox, input, { holder, signal });
      } catch (thrown) {
        // It ended long ago, or was never made.
        if (asDsecError(thrown).code === 'not-found') return undefined;
        throw thrown;
      }
    };
    const found = (await mapBounded(await children.list(holder), AT_ONCE, read)).filter(
      (one): one is Sandbox =>
        one !== undefined &&
        (state === undefined || state.includes(one.state)) &&
        (job === undefined || one.spec.job === job) &&
        (after === undefined || compareListPlaces(one, after) > 0),
    );
    found.sort(compareListPlaces);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    const isMore = page.length < found.length && last !== undefined;
    return { sandboxes: page, ...(isMore ? { cursor: formatListPlace(last) } : {}) };
  };
