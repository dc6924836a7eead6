import { type Digest, DsecError } from '@dsec/std';
import {
  type ApartKind,
  isApartKind,
  type LayerKind,
  parseLayerRef,
  ROOT_KINDS,
  type RootKind,
} from './layer-ref.ts';
import { PLAN_LAYERS_MAX } from './mount-plan.ts';
import { type RefRecord, resolveRef } from './ref-store.ts';
import type { ImageMetadata } from './sources/index.ts';
import type { LayerStore } from './store-layout.ts';

/** A layer of an environment as it was when the environment was resolved; floating no more. */
export interface ResolvedLayer<Kind extends LayerKind = RootKind> {
  /** What the caller wrote. */
  readonly requested: string;
  /** The full ref that it meant. */
  readonly ref: string;
  readonly kind: Kind;
  readonly layerId: Digest;
}

/** One that is mounted apart, at `/.dsec/<name>`. */
export interface ApartLayer extends ResolvedLayer<ApartKind> {
  readonly name: string;
}

/** What `create` records: refs may move on later, this does not. */
export interface ResolvedEnvironment {
  /** In composition order: base, workspace, toolkits, diffs; within a kind as the caller gave them. */
  readonly layers: readonly ResolvedLayer[];
  /** Those beside the root, in the order given. Absent: none. */
  readonly apart?: readonly ApartLayer[];
  /** How the base's image wants processes started, if it said so. */
  readonly image: ImageMetadata | null;
}

/** Mounts beside the root that a sandbox has, at most. */
export const APART_LAYERS_MAX = 14;
/** Below /.dsec, of the platform itself. */
export const PLATFORM_NAME = 'platform';

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
  const inRoot: (ResolvedLayer & Pick<RefRecord, 'image'>)[] = [];
  const apart: ApartLayer[] = [];
  for (const requested of refs) {
    const { ref, layerId, image } = await resolveRef(store, requested);
    const { kind, name } = parseLayerRef(ref);
    if (isApartKind(kind)) apart.push({ requested, ref, kind, layerId, name });
    else inRoot.push({ requested, ref, kind, layerId, image });
  }
  const ordered = ROOT_KINDS.flatMap((kind) => inRoot.filter((layer) => layer.kind === kind));
  const layers = ordered.map(({ image: _, ...layer }) => layer);
  checkEnvironment(layers);
  checkApart(apart);
  return { layers, ...(apart.length === 0 ? {} : { apart }), image: ordered[0]?.image ?? null };
}

/** Each has a place of its own. */
function checkApart(apart: readonly ApartLayer[]): void {
  if (apart.length > APART_LAYERS_MAX) {
    throw new DsecError(
      'invalid-argument',
      `at most ${APART_LAYERS_MAX} layers of kind tools or grading`,
    );
  }
  const seen = new Set<string>([PLATFORM_NAME]);
  for (const { name, ref } of apart) {
    if (seen.has(name)) {
      throw new DsecError('invalid-argument', `${ref}: /.dsec/${name} is taken already`);
    }
    seen.add(name);
  }
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
