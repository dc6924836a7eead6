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
  removeRef,
  resolveRef,
  tagLayer,
  verifyLayer,
} from '@dsec/layers';
import type { ReplyOf, RouteOf } from '@dsec/protocol';
import { asDsecError, type Digest, DsecError } from '@dsec/std';
import { createLayerImports } from '../layers/layer-import.ts';
import { layerOf, layerRefOf } from '../layers/layer-shapes.ts';
import type { RefOwners } from '../layers/ref-owners.ts';
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
export function createLayerHandlers(
  store: LayerStore,
  owners: RefOwners,
): Pick<ApiHandlers, LayerOperation> {
  const imports = createLayerImports(store, owners);
  let verifications = 0;
  return {
    importLayer: async ({ query, body }, call) =>
      imports.run(query, body, {
        signal: call.signal,
        project: identityOf(call.principal).project,
      }),
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
    async removeLayer() {
      throw new DsecError(
        'unsupported',
        'layers are not removed yet, since nothing knows all that use them; remove their refs',
      );
    },
    listLayerRefs: ({ query }) => listRefPage(store, query),
    resolveLayerRef: async ({ query }) => layerRefOf(await resolveRef(store, query.selector)),
    async createLayerRef({ params, body }, call) {
      const { project } = identityOf(call.principal);
      const ref = refOf(params);
      const before = await findRef(store, ref);
      const record = await tagLayer(store, ref, body.layerId as Digest);
      if (before === undefined) await owners.note(record, project);
      return layerRefOf(record);
    },
    async removeLayerRef({ params }, call) {
      await removeOwnRef(store, owners, refOf(params), identityOf(call.principal));
      return undefined;
    },
  };
}

/** Names are everybody's, and whoever may take one away is who made it; or who operates the platform. */
async function removeOwnRef(
  store: LayerStore,
  owners: RefOwners,
  ref: LayerRef,
  { project, scopes }: Identity,
): Promise<void> {
  try {
    const record = await findRef(store, ref);
    if (record === undefined) return;
    if (!scopes.includes('node') && (await owners.projectOf(record)) !== project) {
      throw new DsecError(
        'permission-denied',
        `${record.ref} was not made by this project: ask whoever made it, or use a key with scope node`,
        { details: { scope: 'node' } },
      );
    }
    await removeRef(store, ref);
    await owners.forget(record);
  } catch (thrown) {
    // Gone already: as it was asked.
    if (asDsecError(thrown).code !== 'not-found') throw thrown;
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
