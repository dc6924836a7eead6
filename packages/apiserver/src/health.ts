import type { Health } from '@dsec/protocol';
import { asDsecError, type Clock, DsecError, MINUTE_MS, type Random, SECOND_MS } from '@dsec/std';
import type { KeyStore } from '@dsec/store';
import type { Watcher } from '@dsec/watcher';

export interface HealthOptions {
  readonly keys: Pick<KeyStore, 'get' | 'put'>;
  readonly watcher: Pick<Watcher, 'edges'>;
  readonly clock: Clock;
  readonly random: Random;
}

/** Edges that are told one by one. */
const PARTS_MAX = 31;
/** Anybody may ask, and a write costs the disk something. */
const WRITE_EVERY_MS = 5 * SECOND_MS;
const WRITE_PATIENCE_MS = 2 * SECOND_MS;
const KEPT_MS = MINUTE_MS;
const INSTANCE_BYTES = 8;

/**
 * Whether requests can be served: the store can be read and written, as it cannot on a full disk, and at
 * least one edge answers. What is told of writes is at most some seconds old.
 */
export function createHealth({ keys, watcher, clock, random }: HealthOptions) {
  const refusalOfWrites = createWriteProbe(keys, clock, random);
  return async (): Promise<Health> => {
    const read = keys.get('health/none').then(() => undefined, asDsecError);
    const refusal = (await read) ?? (await refusalOfWrites());
    const store = { name: 'store', ok: refusal === undefined, ...detailOf(refusal) };
    const edges = watcher.edges().map(({ edge, error }) => ({
      ...{ name: `edge ${edge}`, ok: error === undefined },
      ...detailOf(error),
    }));
    const told = [...edges].sort((a, b) => Number(a.ok) - Number(b.ok)).slice(0, PARTS_MAX);
    return { ok: store.ok && edges.some(({ ok }) => ok), parts: [store, ...told] };
  };
}

const detailOf = (error: DsecError | undefined) =>
  error === undefined ? {} : { detail: error.code };

/** Writes one small key, seldom and once at a time, and tells why that failed the last time. */
function createWriteProbe(keys: Pick<KeyStore, 'put'>, clock: Clock, random: Random) {
  const key = `health/${Buffer.from(random.bytes(INSTANCE_BYTES)).toString('hex')}`;
  let last: Promise<DsecError | undefined> = Promise.resolve(undefined);
  let writtenMs = Number.NEGATIVE_INFINITY;
  let isWriting = false;
  return (): Promise<DsecError | undefined> => {
    const nowMs = clock.monotonicMs();
    if (isWriting || nowMs - writtenMs < WRITE_EVERY_MS) return last;
    writtenMs = nowMs;
    isWriting = true;
    const write = keys
      .put(key, new Uint8Array([1]), { ttlMs: KEPT_MS })
      .then(() => undefined, asDsecError)
      .finally(() => {
        isWriting = false;
      });
    const patience = new AbortController();
    const late = clock.sleep(WRITE_PATIENCE_MS, patience.signal).then(
      () => new DsecError('deadline-exceeded', 'the store does not finish a write'),
      () => undefined,
    );
    last = Promise.race([write, late]).finally(() => patience.abort());
    return last;
  };
}
