/** Named environments of a project: ordered lists of layers, kept in the store. */
import { parseLayerSelector } from '@dsec/layers';
import {
  type BodyOf,
  type Environment,
  isValid,
  LayerSelectorText,
  names,
  type RouteOf,
} from '@dsec/protocol';
import { asDsecError, type Clock, DsecError } from '@dsec/std';
import type { KeyEntry, KeyStore } from '@dsec/store';
import type { Static } from 'typebox';
import { formatCursor, keyPart, LIMIT_DEFAULT, nameOfKeyPart, parseCursor } from '../paging.ts';

const EnvironmentRecord = names.record('EnvironmentRecord', {
  layers: names.listOfMax(LayerSelectorText, 64, 1),
  updatedAtMs: names.instantMs(),
});
type EnvironmentRecord = Static<typeof EnvironmentRecord>;

export interface Environments {
  /** `not-found`. */
  get(project: string, name: string): Promise<Environment>;
  list(
    project: string,
    page: { readonly limit?: number; readonly cursor?: string },
  ): Promise<{ environments: Environment[]; cursor?: string }>;
  /**
   * `not-found` for a layer that there is none of now; `conflict` when `revision` is not what is there,
   * `already-exists` for 0 when there is one.
   */
  put(project: string, name: string, body: BodyOf<RouteOf<'putEnvironment'>>): Promise<Environment>;
  /** One that is gone already is fine. */
  remove(project: string, name: string): Promise<void>;
}

const NAME = /^[a-z0-9][a-z0-9._=-]{0,127}$/;

/** `checkLayer` throws when a selector means no layer now. */
export function createEnvironments(
  keys: KeyStore,
  clock: Clock,
  checkLayer?: (selector: string) => Promise<unknown>,
): Environments {
  const prefixOf = (project: string) => `environments/${keyPart(project)}/`;
  const keyOf = (project: string, name: string) => `${prefixOf(project)}${keyPart(name)}`;
  return {
    async get(project, name) {
      const entry = await keys.get(keyOf(project, name));
      if (entry !== undefined) return environmentOf(name, entry);
      throw new DsecError('not-found', `there is no environment ${name} in this project`, {
        details: { about: 'environment' },
      });
    },
    async list(project, { limit = LIMIT_DEFAULT, cursor }) {
      const prefix = prefixOf(project);
      const after = cursor === undefined ? {} : { after: `${prefix}${parseCursor(cursor, NAME)}` };
      const page = await keys.list(prefix, { limit, ...after });
      const last = page.entries.at(-1)?.key.slice(prefix.length);
      return {
        environments: page.entries.map((entry) =>
          environmentOf(nameOfKeyPart(entry.key.slice(prefix.length)), entry),
        ),
        ...(page.next === undefined || last === undefined ? {} : { cursor: formatCursor(last) }),
      };
    },
    async put(project, name, { layers, revision }) {
      checkKinds(layers);
      if (checkLayer !== undefined) {
        for (const layer of layers) await checkLayer(layer);
      }
      const record = { layers, updatedAtMs: clock.wallMs() };
      const key = keyOf(project, name);
      const value = Buffer.from(JSON.stringify(record));
      const write = () => {
        if (revision === undefined) return keys.put(key, value);
        if (revision === 0) return keys.create(key, value);
        return keys.compareAndSet(key, value, revision);
      };
      const written = await write().catch((thrown: unknown) => {
        throw refusalFor(name, thrown);
      });
      return { name, ...record, revision: written };
    },
    remove: (project, name) => keys.delete(keyOf(project, name)),
  };
}

function environmentOf(name: string, { value, revision }: KeyEntry): Environment {
  const record: unknown = JSON.parse(Buffer.from(value).toString('utf8'));
  if (!isValid(EnvironmentRecord, record)) {
    throw new DsecError('data-loss', `the record of the environment ${name} is damaged`);
  }
  const { layers, updatedAtMs }: EnvironmentRecord = record;
  return { name, layers, updatedAtMs, revision };
}

/** The store speaks of its keys. */
function refusalFor(name: string, thrown: unknown): unknown {
  const { code, details } = asDsecError(thrown);
  const isThere = code === 'already-exists';
  if (!isThere && code !== 'conflict') return thrown;
  const message = isThere
    ? `there is an environment ${name} already`
    : `the environment ${name} has been ${details.found === undefined ? 'removed' : 'changed'} meanwhile`;
  return new DsecError(code, message, {
    cause: thrown,
    details: { ...details, about: 'environment' },
  });
}

/** What no sandbox could be made of is refused before it has a name. */
function checkKinds(layers: readonly string[]): void {
  const kinds = layers.map((layer) => parseLayerSelector(layer).kind);
  const count = (kind: string) => kinds.filter((found) => found === kind).length;
  if (count('base') === 1 && count('workspace') <= 1) return;
  throw new DsecError(
    'invalid-argument',
    'an environment has exactly one base and at most one workspace',
    { details: { field: 'layers' } },
  );
}
