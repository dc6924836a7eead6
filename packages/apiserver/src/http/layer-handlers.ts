import type { Identity } from '@dsec/iam';
import {
  compareLayerRefs,
  findRef,
  type LayerRef,
  type LayerStore,
  listLayerIds,
  listRefNames,
  parseLayerRef,
  type RefRecord,
  readManifest,
  refsOfLayer,
  removeRef,
  resolveRef,
  tagLayer,
  verifyLayer,
} from '@dsec/layers';
import type { ReplyOf, RouteOf } from '@dsec/protocol';
import { asDsecError, type Digest, DsecError } from '@dsec/std';
import { createLayerImports } from '../layers/layer-import.ts';
import { layerOf, layerRefOf } from '../layers/layer-shapes.ts';
import { formatCursor, LIMIT_DEFAULT, mapBounded, parseCursor } from '../paging.ts';
import type { ApiHandlers } from './handlers.ts';
import { identityOf } from './key-authorizer.ts';

type LayerOperation =
  | 'importLayer'
  | 'listLayers'
  | 'getLayer'
  | 'verifyLayer'
  | 'removeLayer'
  | 'listLayerRefs'
  | 'resolveLayerRef'
  | 'createLayerRef'
  | 'removeLayerRef';

const READS_AT_ONCE = 16;
const PROBLEMS_MAX = 100;
const PROBLEM_LENGTH_MAX = 512;
const VERIFICATIONS_MAX = 4;
const LAYER_ID = /^sha256:[0-9a-f]{64}$/;
const REF = /^[a-z]+\/[a-z0-9._-]+:[0-9a-z.-]+$/;

/** Layers of the store that this apiserver can reach. */
export function createLayerHandlers(store: LayerStore): Pick<ApiHandlers, LayerOperation> {
  const imports = createLayerImports(store);
  let verifications = 0;
  return {
    async importLayer({ query, body }, call) {
      const identity = identityOf(call.principal);
      if (query.ref !== undefined) checkKind(parseLayerRef(query.ref), identity);
      return imports.run(query, body, { signal: call.signal, project: identity.project });
    },
    async listLayers({ query: { limit = LIMIT_DEFAULT, cursor } }) {
      const after = cursor === undefined ? '' : parseCursor(cursor, LAYER_ID);
      const ids = (await listLayerIds(store)).filter((id) => id > after);
      const page = ids.slice(0, limit);
      const found = await mapBounded(page, READS_AT_ONCE, (id) => readOptional(store, id));
      const last = page.at(-1);
      return {
        layers: found.filter((manifest) => manifest !== undefined).map(layerOf),
        ...(page.length < ids.length && last !== undefined ? { cursor: formatCursor(last) } : {}),
      };
    },
    getLayer: async ({ params }) => layerOf(await readManifest(store, params.layerId as Digest)),
    async verifyLayer({ params }, call) {
      if (verifications >= VERIFICATIONS_MAX) {
        throw new DsecError('overloaded', `${VERIFICATIONS_MAX} layers are being verified already`);
      }
      verifications += 1;
      try {
        const { signal } = call;
        const report = await verifyLayer(store, params.layerId as Digest, { signal });
        return shownReport(report);
      } finally {
        verifications -= 1;
      }
    },
    async removeLayer({ params }, call) {
      await removeNames(store, params.layerId as Digest, identityOf(call.principal));
      return undefined;
    },
    listLayerRefs: ({ query }) => listRefPage(store, query),
    resolveLayerRef: async ({ query }) => layerRefOf(await resolveRef(store, query.selector)),
    async createLayerRef({ params, body }, call) {
      const identity = identityOf(call.principal);
      const ref = refOf(params);
      checkKind(ref, identity);
      return layerRefOf(await tagLayer(store, ref, body.layerId as Digest, identity.project));
    },
    async removeLayerRef({ params }, call) {
      const record = await findRef(store, refOf(params));
      if (record !== undefined) await removeOwn(store, [record], identityOf(call.principal));
      return undefined;
    },
  };
}

/** What grades is made by who may grade, so that no solver can slip in a layer that does. */
function checkKind({ kind }: LayerRef, { scopes }: Pick<Identity, 'scopes'>): void {
  if (kind !== 'grading' || scopes.includes('grading')) return;
  throw new DsecError('permission-denied', 'a layer of kind grading needs a key with that scope', {
    details: { scope: 'grading' },
  });
}

/**
 * Takes every name of a layer away, or none when one of them is not the caller's to take. A layer without a
 * name stays where it is, for sandboxes and layers that use it; a later collection removes its data.
 */
async function removeNames(store: LayerStore, id: Digest, identity: Identity): Promise<void> {
  // A damaged one may go; one that never was is `not-found`.
  await readManifest(store, id).catch((thrown: unknown) => {
    if (asDsecError(thrown).code !== 'data-loss') throw thrown;
  });
  await removeOwn(store, await refsOfLayer(store, id), identity);
}

/** Names are everybody's, and whoever may take one away is who made it; or who operates the platform. */
async function removeOwn(
  store: LayerStore,
  records: readonly RefRecord[],
  { project, scopes }: Identity,
): Promise<void> {
  const grades = records.find(({ ref }) => parseLayerRef(ref).kind === 'grading');
  if (grades !== undefined) checkKind(parseLayerRef(grades.ref), { scopes });
  const foreign = records.find(({ owner }) => owner !== project);
  if (foreign !== undefined && !scopes.includes('node')) {
    throw new DsecError(
      'permission-denied',
      `${foreign.ref} was not made by this project: ask whoever made it, or use a key with scope node`,
      { details: { scope: 'node' } },
    );
  }
  for (const { ref } of records) {
    await removeRef(store, parseLayerRef(ref)).catch((thrown: unknown) => {
      // Gone already: as it was asked.
      if (asDsecError(thrown).code !== 'not-found') throw thrown;
    });
  }
}

/** The same when there is no store: what it would need says why it cannot. */
export function createMissingLayerHandlers(): Pick<ApiHandlers, LayerOperation> {
  const refuse = async (): Promise<never> => {
    throw new DsecError('unsupported', 'this apiserver has no layer store');
  };
  return {
    ...{ importLayer: refuse, listLayers: refuse, getLayer: refuse, verifyLayer: refuse },
    ...{ removeLayer: refuse, listLayerRefs: refuse, resolveLayerRef: refuse },
    ...{ createLayerRef: refuse, removeLayerRef: refuse },
  };
}

/** A layer that was listed and is damaged, or gone, does not hide the others. */
async function readOptional(store: LayerStore, id: Digest) {
  try {
    return await readManifest(store, id);
  } catch (thrown) {
    const { code } = asDsecError(thrown);
    if (code === 'not-found' || code === 'data-loss') return undefined;
    throw thrown;
  }
}

function shownReport({
  layerId,
  problems,
  checkedBytes,
}: Awaited<ReturnType<typeof verifyLayer>>): ReplyOf<RouteOf<'verifyLayer'>> {
  const told = problems.slice(0, PROBLEMS_MAX).map(({ message }) => message);
  return {
    ...{ layerId, checkedBytes, ok: problems.length === 0 },
    problems: told.map((message) => message.slice(0, PROBLEM_LENGTH_MAX)),
  };
}

function refOf({ kind, name, version }: { kind: string; name: string; version: string }): LayerRef {
  return parseLayerRef(`${kind}/${name}:${version}`);
}

async function listRefPage(
  store: LayerStore,
  {
    limit = LIMIT_DEFAULT,
    cursor,
    kind,
    name,
  }: { limit?: number; cursor?: string; kind?: LayerRef['kind']; name?: string },
): Promise<ReplyOf<RouteOf<'listLayerRefs'>>> {
  if (name !== undefined && kind === undefined) {
    throw new DsecError('invalid-argument', 'kind: is needed beside name', {
      details: { field: 'kind' },
    });
  }
  const after = cursor === undefined ? undefined : parseLayerRef(parseCursor(cursor, REF));
  const filter = {
    ...(kind === undefined ? {} : { kind }),
    ...(name === undefined ? {} : { name }),
  };
  const records: RefRecord[] = [];
  for await (const ref of listRefNames(store, filter)) {
    if (after !== undefined && compareLayerRefs(ref, after) <= 0) continue;
    const record = await findRef(store, ref);
    if (record === undefined) continue;
    if (records.length === limit) {
      const last = records.at(-1)?.ref ?? '';
      return { refs: records.map(layerRefOf), cursor: formatCursor(last) };
    }
    records.push(record);
  }
  return { refs: records.map(layerRefOf) };
}
