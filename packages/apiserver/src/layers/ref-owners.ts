/** Which project gave a layer its name, for names that were made through the API. */
import type { RefRecord } from '@dsec/layers';
import { isValid, names } from '@dsec/protocol';
import { asDsecError } from '@dsec/std';
import type { KeyEntry, KeyStore } from '@dsec/store';
import Type, { type Static } from 'typebox';
import { keyPart } from '../paging.ts';

const RefOwnerRecord = names.record('RefOwnerRecord', {
  format: Type.Literal(1),
  project: names.projectId,
  /** Which making of the name it is about: the name may have been removed and made anew elsewhere. */
  layerId: names.digest,
  createdAtMs: names.instantMs(),
});
type RefOwnerRecord = Static<typeof RefOwnerRecord>;

export interface RefOwners {
  /** A project has just made this name. Of two that did at once, it is the first one's. */
  note(ref: RefRecord, project: string): Promise<void>;
  /** `undefined` for a name that was not made through the API. */
  projectOf(ref: RefRecord): Promise<string | undefined>;
  /** The name is gone. */
  forget(ref: RefRecord): Promise<void>;
}

export function createRefOwners(keys: KeyStore): RefOwners {
  return {
    async note(ref, project) {
      const { layerId, createdAtMs } = ref;
      const record: RefOwnerRecord = { format: 1, project, layerId, createdAtMs };
      const value = Buffer.from(JSON.stringify(record));
      const entry = await keys.get(keyOf(ref));
      if (ownerIn(entry, ref) !== undefined) return;
      try {
        if (entry === undefined) await keys.create(keyOf(ref), value);
        else await keys.compareAndSet(entry.key, value, entry.revision);
      } catch (thrown) {
        const { code } = asDsecError(thrown);
        if (code !== 'conflict' && code !== 'already-exists') throw thrown;
      }
    },
    projectOf: async (ref) => ownerIn(await keys.get(keyOf(ref)), ref),
    async forget(ref) {
      const entry = await keys.get(keyOf(ref));
      if (entry === undefined || ownerIn(entry, ref) === undefined) return;
      await keys.delete(entry.key, entry.revision).catch((thrown: unknown) => {
        if (asDsecError(thrown).code !== 'conflict') throw thrown;
      });
    },
  };
}

function keyOf({ ref }: RefRecord): string {
  return `layer-refs/${ref.split(/[/:]/).map(keyPart).join('/')}`;
}

/** A damaged record makes nobody the owner, so that only operators may remove the name. */
function ownerIn(entry: KeyEntry | undefined, ref: RefRecord): string | undefined {
  if (entry === undefined) return undefined;
  const record = parse(entry.value);
  if (!isValid(RefOwnerRecord, record)) return undefined;
  const isSame = record.layerId === ref.layerId && record.createdAtMs === ref.createdAtMs;
  return isSame ? record.project : undefined;
}

function parse(value: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(value).toString('utf8'));
  } catch {
    return undefined;
  }
}
