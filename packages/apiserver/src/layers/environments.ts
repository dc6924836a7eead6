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
import { type Clock, DsecError } from '@dsec/std';
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
  /** `conflict` when `revision` is not what is there; `already-exists` for 0 when there is one. */
  put(project: string, name: string, body: BodyOf<RouteOf<'putEnvironment'>>): Promise<Environment>;
  /** One that is gone already is fine. */
  remove(project: string, name: string): Promise<void>;
}

const NAME = /^[a-z0-9][a-z0-9._=-]{0,127}$/;

export function createEnvironments(keys: KeyStore, clock: Clock): Environments {
  const prefixOf = (project: string) => `environments/${keyPart(project)}/`;
  const keyOf = (project: string, name: string) => `${prefixOf(project)}${keyPart(name)}`;
  return {
    async get(project, name) {
      const entry = await keys.get(keyOf(project, name));
      if (entry !== undefined) return environmentOf(name, entry);
      throw new DsecError('not-found', `there is no environment ${name} in this project`);
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
      checkLayers(layers);
      const record = { layers, updatedAtMs: clock.wallMs() };
      const key = keyOf(project, name);
      const value = Buffer.from(JSON.stringify(record));
      const written =
        revision === undefined
          ? await keys.put(key, value)
          : revision === 0
            ? await keys.create(key, value)
            : await keys.compareAndSet(key, value, revision);
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

/** What no sandbox could be made of is refused before it has a name. */
function checkLayers(layers: readonly string[]): void {
  const kinds = layers.map((layer) => parseLayerSelector(layer).kind);
  const count = (kind: string) => kinds.filter((found) => found === kind).length;
  if (count('base') === 1 && count('workspace') <= 1) return;
  throw new DsecError(
    'invalid-argument',
    'an environment has exactly one base and at most one workspace',
    { details: { field: 'layers' } },
  );
}
