import { type Digest, DsecError } from '@dsec/std';
import { LAYER_KINDS, type LayerKind, parseLayerRef } from './layer-ref.ts';
import { PLAN_LAYERS_MAX } from './mount-plan.ts';
import { type RefRecord, resolveRef } from './ref-store.ts';
import type { ImageMetadata } from './sources/index.ts';
import type { LayerStore } from './store-layout.ts';

/** A layer of an environment as it was when the environment was resolved; floating no more. */
export interface ResolvedLayer {
  /** What the caller wrote. */
  readonly requested: string;
  /** The full ref that it meant. */
  readonly ref: string;
  readonly kind: LayerKind;
  readonly layerId: Digest;
}

/** What `create` records: refs may move on later, this does not. */
export interface ResolvedEnvironment {
  /** In composition order: base, workspace, toolkits, diffs; within a kind as the caller gave them. */
  readonly layers: readonly ResolvedLayer[];
  /** How the base's image wants processes started, if it said so. */
  readonly image: ImageMetadata | null;
}

/**
 * Resolves refs to layers and puts them in order. Exactly one base and at most one workspace: which files
 * win must not depend on how a caller orders a list. `not-found`, or `invalid-argument` with what is
 * wrong.
 */
export async function resolveEnvironment(
  store: LayerStore,
  refs: readonly string[],
): Promise<ResolvedEnvironment> {
  if (refs.length > PLAN_LAYERS_MAX) {
    throw new DsecError('invalid-argument', `an environment has at most ${PLAN_LAYERS_MAX} layers`);
  }
  const resolved: { requested: string; record: RefRecord; kind: LayerKind }[] = [];
  for (const requested of refs) {
    const record = await resolveRef(store, requested);
    resolved.push({ requested, record, kind: parseLayerRef(record.ref).kind });
  }
  const ordered = LAYER_KINDS.flatMap((kind) => resolved.filter((layer) => layer.kind === kind));
  const layers = ordered.map(({ requested, record, kind }) => {
    return { requested, ref: record.ref, kind, layerId: record.layerId };
  });
  checkEnvironment(layers);
  return { layers, image: ordered[0]?.record.image ?? null };
}

function checkEnvironment(layers: readonly ResolvedLayer[]): void {
  const count = (kind: LayerKind) => layers.filter((layer) => layer.kind === kind).length;
  if (count('base') !== 1) {
    throw new DsecError(
      'invalid-argument',
      `an environment has exactly one base, not ${count('base')}`,
    );
  }
  if (count('workspace') > 1) {
    throw new DsecError('invalid-argument', 'an environment has at most one workspace');
  }
  const seen = new Map<Digest, string>();
  for (const { layerId, ref } of layers) {
    const other = seen.get(layerId);
    if (other !== undefined) {
      throw new DsecError('invalid-argument', `${other} and ${ref} are the same layer`);
    }
    seen.set(layerId, ref);
  }
}
