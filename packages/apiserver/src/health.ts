import type { Health } from '@dsec/protocol';
import { asDsecError } from '@dsec/std';
import type { KeyStore } from '@dsec/store';
import type { Watcher } from '@dsec/watcher';

/** Edges that are told one by one. */
const PARTS_MAX = 31;

/** Whether requests can be served: the store answers, and at least one edge does. */
export async function readHealth(
  keys: Pick<KeyStore, 'get'>,
  watcher: Pick<Watcher, 'edges'>,
): Promise<Health> {
  const store = await keys.get('health/none').then(
    () => ({ name: 'store', ok: true }),
    (thrown: unknown) => ({ name: 'store', ok: false, detail: asDsecError(thrown).code }),
  );
  const edges = watcher.edges().map(({ edge, error }) => ({
    name: `edge ${edge}`,
    ok: error === undefined,
    ...(error === undefined ? {} : { detail: error.code }),
  }));
  const told = [...edges].sort((a, b) => Number(a.ok) - Number(b.ok)).slice(0, PARTS_MAX);
  return { ok: store.ok && edges.some(({ ok }) => ok), parts: [store, ...told] };
}
