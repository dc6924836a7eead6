import { join } from 'node:path';
import { type Digest, DsecError } from '@dsec/std';
import { ROOT_KINDS, type RootKind } from './layer-ref.ts';
import type { LayerManifest } from './manifest.ts';
import { blobPaths, nodeLayerPaths } from './store-layout.ts';

/**
 * How the overlay is given its layers. `descriptor`: as detached mounts that are in no mount table
 * (kernel 6.15 and newer). `path`: as mount points under the node directory (6.12).
 */
export type MountForm = 'descriptor' | 'path';

/** The kernel takes 500 lower layers; beyond some dozens every lookup of an absent name becomes slow. */
export const PLAN_LAYERS_MAX = 64;

export interface DevicePlan {
  readonly blobId: Digest;
  readonly blocks: number;
  readonly path: string;
  readonly bytes: number;
}

/**
 * One EROFS mount of a node. The same layer is planned alike for every sandbox, so that they share the
 * mount.
 */
export interface LayerMountPlan {
  readonly layerId: Digest;
  /** The node's verified copy of the metadata. */
  readonly metaPath: string;
  readonly metaBytes: number;
  /** Data files in the order of the device table, used where they are in the store. */
  readonly devices: readonly DevicePlan[];
  /** Where the mount is attached in the `path` form. */
  readonly mountPath: string;
}

/** The writable side of an overlay: directories `upper` and `work` in one place, so on one mount. */
export interface UpperPlan {
  readonly directory: string;
  readonly upper: string;
  readonly work: string;
}

export type RootPlan =
  /** `lower` topmost first. */
  | {
      readonly kind: 'overlay';
      readonly lower: readonly Digest[];
      readonly upper: UpperPlan | undefined;
    }
  /** A single layer to look at: an overlay of one layer without an upper does not exist. */
  | { readonly kind: 'layer'; readonly layerId: Digest };

/** Every mount of a sandbox's root, as data. Applied by `composeRoot`, shown by `dsec`, compared by tests. */
export interface MountPlan {
  readonly form: MountForm;
  /** Bottom first. */
  readonly layers: readonly LayerMountPlan[];
  readonly root: RootPlan;
  readonly attributes: readonly ('readOnly' | 'noDev' | 'noSuid')[];
}

export interface MountPlanInput {
  readonly form: MountForm;
  readonly storeRoot: string;
  readonly nodeDirectory: string;
  /** In environment order: base, workspace, toolkits, diffs. */
  readonly layers: readonly { readonly kind: RootKind; readonly manifest: LayerManifest }[];
  /** A directory for this root alone; without it the root is read-only. */
  readonly upperDirectory: string | undefined;
  /** Set-user-id programs keep their meaning in this root. */
  readonly allowSetuid: boolean;
}

/** A pure function from an environment to its mounts. `invalid-argument` for one that cannot be composed. */
export function planMounts(input: MountPlanInput): MountPlan {
  checkLayers(input);
  const layers = input.layers.map(({ manifest }) => planLayer(input, manifest));
  const writable = input.upperDirectory !== undefined;
  return {
    form: input.form,
    layers,
    root: planRoot(input),
    attributes: [
      ...(writable ? [] : (['readOnly'] as const)),
      'noDev',
      ...(input.allowSetuid ? [] : (['noSuid'] as const)),
    ],
  };
}

function planLayer(input: MountPlanInput, manifest: LayerManifest): LayerMountPlan {
  const paths = nodeLayerPaths(input.nodeDirectory, manifest.layerId);
  return {
    layerId: manifest.layerId,
    metaPath: paths.meta,
    metaBytes: manifest.metaBytes,
    devices: manifest.devices.map((device) => ({
      ...device,
      path: blobPaths({ root: input.storeRoot }, device.blobId).data,
    })),
    mountPath: paths.mount,
  };
}

function planRoot(input: MountPlanInput): RootPlan {
  const lower = input.layers.map(({ manifest }) => manifest.layerId).reverse();
  const [only] = lower;
  const directory = input.upperDirectory;
  if (directory === undefined && lower.length === 1 && only !== undefined) {
    return { kind: 'layer', layerId: only };
  }
  const upper =
    directory === undefined
      ? undefined
      : { directory, upper: join(directory, 'upper'), work: join(directory, 'work') };
  return { kind: 'overlay', lower, upper };
}

function checkLayers({ layers }: MountPlanInput): void {
  const refuse = (why: string) => new DsecError('invalid-argument', why);
  if (layers.length === 0) throw refuse('a root needs at least one layer');
  if (layers.length > PLAN_LAYERS_MAX) {
    throw refuse(`a root takes at most ${PLAN_LAYERS_MAX} layers, not ${layers.length}`);
  }
  const ranks = layers.map(({ kind }) => ROOT_KINDS.indexOf(kind));
  if (ranks.some((rank, position) => rank < (ranks[position - 1] ?? 0))) {
    throw refuse(`layers are composed in the order ${ROOT_KINDS.join(', ')}`);
  }
  // The kernel refuses the same directory twice, and a layer over itself would change nothing.
  const distinct = new Set(layers.map(({ manifest }) => manifest.layerId));
  if (distinct.size !== layers.length) throw refuse('the same layer appears twice in this root');
}
