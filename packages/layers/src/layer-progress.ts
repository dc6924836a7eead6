import type { ImportProgress } from './sources/index.ts';

/** How far a job is, for progress bars: bytes read of the source, or checked (then without entries). */
export type LayerProgress = ImportProgress;
