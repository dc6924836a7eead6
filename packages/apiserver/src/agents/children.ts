/**
 * Whose sandboxes those of keys with limits are: one record per key, with the ids of what it has made. An id
 * is in it before an edge is asked for the sandbox, so that nothing is made that is not counted.
 */
import type { Identity } from '@dsec/iam';
import { isValid, KEY_SANDBOXES_MAX, names } from '@dsec/protocol';
import { DAY_MS, DsecError } from '@dsec/std';
import type { KeyEntry, KeyStore } from '@dsec/store';

export interface Children {
  /** `quota-exceeded` while as many as the key may have are there. Once for one sandbox. */
  add(identity: Identity, sandbox: string): Promise<void>;
  list(identity: Pick<Identity, 'keyId'>): Promise<readonly string[]>;
}

const ChildrenRecord = names.listOfMax(names.sandboxId, KEY_SANDBOXES_MAX);
/** Longer than any such key lives. */
const KEPT_MS = 30 * DAY_MS;
const nameOf = (keyId: string) => `agents/${keyId}`;

/** `hasEnded`: certainly; what is not known may be there. */
export function createChildren(keys: KeyStore, hasEnded: (sandbox: string) => boolean): Children {
  const put = (name: string, from: KeyEntry | undefined, ids: readonly string[]) => {
    const value = Buffer.from(JSON.stringify(ids));
    const options = { ttlMs: KEPT_MS };
    return from === undefined
      ? keys.create(name, value, options)
      : keys.compareAndSet(name, value, from.revision, options);
  };
  return {
    async add({ keyId, limits }, sandbox) {
      const name = nameOf(keyId);
      for (;;) {
        const entry = await keys.get(name);
        const known = idsOf(entry);
        if (known.includes(sandbox)) return;
        const max = limits?.sandboxesMax ?? 0;
        // Those that have ended stay while there is room: their output may be wanted.
        const kept = known.length < max ? known : known.filter((id) => !hasEnded(id));
        if (kept.length >= max) throw full(max);
        try {
          await put(name, entry, [...kept, sandbox]);
          return;
        } catch (thrown) {
          // Another request of the same key was first.
          const { code } = thrown as DsecError;
          if (code !== 'conflict' && code !== 'already-exists') throw thrown;
        }
      }
    },
    list: async ({ keyId }) => idsOf(await keys.get(nameOf(keyId))),
  };
}

function full(max: number): DsecError {
  return new DsecError('quota-exceeded', `this key has ${max} sandboxes, as many as it may`, {
    details: { limit: 'sandboxesMax', max },
  });
}

function idsOf(entry: KeyEntry | undefined): readonly string[] {
  if (entry === undefined) return [];
  const value: unknown = JSON.parse(Buffer.from(entry.value).toString('utf8'));
  if (isValid(ChildrenRecord, value)) return value;
  throw new DsecError('data-loss', 'the record of the sandboxes of a key is damaged');
}
