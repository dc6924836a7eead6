/** Layers: made by import, kept in a store, named by refs, composed into the root of a sandbox. */
export { CRASH_POINTS, type CrashPoint, REPAIR_CRASH_POINTS } from './crash-point.ts';
export {
  APART_LAYERS_MAX,
  type ApartLayer,
  PLATFORM_NAME,
  type ResolvedEnvironment,
  type ResolvedLayer,
  resolveEnvironment,
} from './environment.ts';
export {
  checkHistory,
  type HistoryProblem,
  type HistoryQuestion,
  type HistoryReport,
} from './history/check-history.ts';
export { type CutHistory, type CutOptions, cutHistory } from './history/cut-history.ts';
export { directoryFiles, type HistoryFile, layerFiles } from './history/history-files.ts';
export type { ImportedLayer } from './import-job.ts';
export { type ImportLayerOptions, importLayer } from './import-layer.ts';
export { listLayerIds } from './layer-ids.ts';
export {
  type DamagedLayer,
  type LayerDescription,
  listLayers,
  showLayer,
} from './layer-list.ts';
export type { LayerProgress } from './layer-progress.ts';
export {
  compareLayerRefs,
  formatLayerRef,
  isFloating,
  LAYER_KINDS,
  type LayerKind,
  type LayerRef,
  type LayerSelector,
  parseLayerRef,
  parseLayerSelector,
} from './layer-ref.ts';
export type { LayerManifest } from './manifest.ts';
export {
  type LayerMountPlan,
  type MountForm,
  type MountPlan,
  type MountPlanInput,
  PLAN_LAYERS_MAX,
  planMounts,
  type RootPlan,
  type UpperPlan,
} from './mount-plan.ts';
export { type LayerFiles, type NodeCopies, openNodeCopies } from './node-copies.ts';
export {
  type NodeEffects,
  type NodeLayers,
  type NodeLayersOptions,
  openNodeLayers,
} from './node-layers.ts';
export {
  findRef,
  listRefNames,
  listRefs,
  type RefFilter,
  type RefRecord,
  refsOfLayer,
  removeRef,
  resolveRef,
} from './ref-store.ts';
export { type ComposedRoot, composeRoot } from './root-composer.ts';
export type { SharedLease } from './shared-pool.ts';
export * from './sources/index.ts';
export {
  createLayerStore,
  openLayerStore,
  readManifest,
  sweepLayerStore,
} from './store-directory.ts';
export type { LayerStore } from './store-layout.ts';
export { tagLayer } from './tag-layer.ts';
export type { VerifyProblem, VerifyReport } from './verify-job.ts';
export { type VerifyOptions, verifyLayer } from './verify-layer.ts';
