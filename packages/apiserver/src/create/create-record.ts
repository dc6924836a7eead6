/**
 * What a create request became: one record per key, so that whoever repeats it, here or at another
 * apiserver, gets the same sandbox. Nothing of an answer is stored.
 */
import { createHash } from 'node:crypto';
import type { Identity } from '@dsec/iam';
import { isValid, LayerSelectorText, names } from '@dsec/protocol';
import { DAY_MS, type Digest, DsecError } from '@dsec/std';
import type { KeyStore } from '@dsec/store';
import Type, { type Static, type TSchema } from 'typebox';

/** A key is remembered for so long after its last change. */
export const RECORD_TTL_MS = DAY_MS;

export const CreateRecord = names.record('CreateRecord', {
  format: Type.Literal(1),
  /** Of the request's body. */
  digest: names.digest,
  sandbox: names.sandboxId,
  edge: names.edgeId,
  /** What the environment meant when the request came first. */
  layers: Type.Optional(names.listOfMax(LayerSelectorText, 64, 1)),
  /** How long it may be there at most, for a key with limits. */
  lifetimeMs: Type.Optional(names.durationMs()),
});
export type CreateRecord = Static<typeof CreateRecord>;

export interface Recorded<T> {
  readonly value: T;
  readonly revision: number;
}

/** Records of one shape. */
export interface Records<T> {
  /** The key of a request's record; the scope is project, principal, route and key (THREATS F2). */
  nameOf(identity: Identity, route: string, idempotencyKey: string): string;
  /** `idempotency-conflict` when it is there for another body. */
  find(name: string, digest: Digest): Promise<Recorded<T> | undefined>;
  /**
   * The same as it is at this moment, though a loss of power may undo it: to learn that there is none, or
   * that nothing has changed.
   */
  glance(name: string, digest: Digest): Promise<Recorded<T> | undefined>;
  /** Whether the newest write of a record is this one. */
  isRevision(name: string, revision: number): Promise<boolean>;
  /**
   * Stores `value`, or finds what another has stored meanwhile. `onCarriedOut`: as that of the store, when it
   * is stored.
   */
  claim(
    name: string,
    value: T,
    digest: Digest,
    onCarriedOut?: () => void,
  ): Promise<Recorded<T> & { readonly isNew: boolean }>;
  /** Replaces a record, or finds what another has replaced it with: then `isNew` is false. */
  move(
    name: string,
    from: Recorded<T>,
    value: T,
    digest: Digest,
  ): Promise<Recorded<T> & { readonly isNew: boolean }>;
}

export function createRecords<S extends TSchema & { static?: unknown }>(
  keys: KeyStore,
  schema: S,
): Records<Static<S> & { readonly digest: string }> {
  type Value = Static<S> & { readonly digest: string };
  const options = { ttlMs: RECORD_TTL_MS };
  const encode = (value: Value) => Buffer.from(JSON.stringify(value));
  const read = async (
    name: string,
    digest: Digest,
    allowUnflushed: boolean,
  ): Promise<Recorded<Value> | undefined> => {
    const entry = await keys.get(name, { allowUnflushed });
    if (entry === undefined) return undefined;
    const value: unknown = JSON.parse(Buffer.from(entry.value).toString('utf8'));
    if (!isValid(schema, value)) {
      throw new DsecError('data-loss', 'the record of a create request is damaged');
    }
    if ((value as Value).digest !== digest) {
      throw new DsecError(
        'idempotency-conflict',
        'the idempotency key was used for a request with another body',
      );
    }
    return { value: value as Value, revision: entry.revision };
  };
  const find = (name: string, digest: Digest) => read(name, digest, false);
  const orFound = async (
    name: string,
    value: Value,
    digest: Digest,
    write: () => Promise<number>,
  ) => {
    try {
      return { value, revision: await write(), isNew: true };
    } catch (thrown) {
      const { code } = thrown as DsecError;
      if (code !== 'already-exists' && code !== 'conflict') throw thrown;
    }
    const found = await find(name, digest);
    if (found !== undefined) return { ...found, isNew: false };
    throw new DsecError('unavailable', 'the record of the request has just expired; try again');
  };
  return {
    nameOf({ project, principal }, route, idempotencyKey) {
      const scope = [principal, route, idempotencyKey].join('\n');
      const hash = createHash('sha256').update(scope).digest('hex');
      return `creates/${project.replace(/\.$/, '=')}/${hash}`;
    },
    find,
    glance: (name, digest) => read(name, digest, true),
    isRevision: async (name, revision) => (await keys.get(name))?.revision === revision,
    claim: (name, value, digest, onCarriedOut) =>
      orFound(name, value, digest, () =>
        keys.create(name, encode(value), {
          ...options,
          ...(onCarriedOut === undefined ? {} : { onCarriedOut }),
        }),
      ),
    move: (name, from, value, digest) =>
      orFound(name, value, digest, () =>
        keys.compareAndSet(name, encode(value), from.revision, options),
      ),
  };
}
