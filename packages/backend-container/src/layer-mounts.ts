import { asDsecError, MINUTE_MS, orAborted } from '@dsec/std';
import type { LayerMountKey } from './mount-key.ts';

/**
 * The layers of a node, mounted once by the launcher and shared by all sandboxes. A mount that nobody
 * uses stays for the next sandbox, up to a bound; the oldest goes first.
 */
export interface LayerMounts {
  /**
   * Makes the caller a user of every layer. Mounts those that are not there; callers that want the same
   * layer at the same time share the work. Aborting ends the caller's wait, not the work. When it
   * rejects, the caller uses none.
   */
  acquire(layerIds: readonly LayerMountKey[], signal?: AbortSignal): Promise<void>;
  /** Undoes one `acquire` or `claim`. */
  release(layerIds: readonly LayerMountKey[]): void;
  /** As `acquire`, for a sandbox that runs: its layers are mounted. */
  claim(layerIds: readonly LayerMountKey[]): void;
  /**
   * What a launcher says that it has mounted: what is new is kept as unused, unless claimed; what it does
   * not know is forgotten.
   */
  found(layerIds: readonly LayerMountKey[]): void;
  users(): ReadonlyMap<LayerMountKey, number>;
  /** Resolves when no mount or unmount is under way. */
  settled(): Promise<void>;
}

export interface LayerMountEffects {
  /** Puts a verified copy of the metadata on the node, and mounts it. */
  mount(layerId: LayerMountKey, signal: AbortSignal): Promise<void>;
  /** `conflict` while a sandbox uses it. */
  unmount(layerId: LayerMountKey): Promise<void>;
}

export interface LayerMountsOptions {
  readonly effects: LayerMountEffects;
  /** Of mounts that nobody uses. */
  readonly unusedMax: number;
}

/** A store that does not answer must not hold creates for ever. */
const MOUNT_TIMEOUT_MS = 2 * MINUTE_MS;

interface Entry {
  users: number;
  /** Of the mount, or of the unmount when `leaving`. */
  work: Promise<void>;
  leaving: boolean;
  /** No mount or unmount is under way. */
  settled: boolean;
}

/** The mounts, and what can be done to one of them. */
interface MountTable {
  readonly entries: Map<LayerMountKey, Entry>;
  /** In the order in which their last users left. */
  readonly unused: Set<LayerMountKey>;
  readonly effects: LayerMountEffects;
}

function forget({ entries, unused }: MountTable, layerId: LayerMountKey, entry: Entry): void {
  if (entries.get(layerId) !== entry) return;
  entries.delete(layerId);
  unused.delete(layerId);
}

function mount(table: MountTable, layerId: LayerMountKey, after: Promise<unknown>): Entry {
  const work = after
    .catch(() => {})
    .then(() => table.effects.mount(layerId, AbortSignal.timeout(MOUNT_TIMEOUT_MS)));
  const entry: Entry = { users: 0, work, leaving: false, settled: false };
  // A failure reaches everybody who waits; the next one tries anew.
  work.then(
    () => {
      entry.settled = true;
    },
    () => forget(table, layerId, entry),
  );
  table.entries.set(layerId, entry);
  return entry;
}

function unmount(table: MountTable, layerId: LayerMountKey, entry: Entry): void {
  entry.leaving = true;
  entry.settled = false;
  entry.work = entry.work
    .then(() => table.effects.unmount(layerId))
    .then(
      () => forget(table, layerId, entry),
      // A sandbox that is being released still holds it, or the launcher is away: next time.
      () => {
        entry.leaving = false;
        entry.settled = true;
        if (table.entries.get(layerId) === entry) table.unused.add(layerId);
      },
    );
}

function join(table: MountTable, layerId: LayerMountKey): Entry {
  const current = table.entries.get(layerId);
  const entry =
    current === undefined || current.leaving
      ? mount(table, layerId, current?.work ?? Promise.resolve())
      : current;
  entry.users += 1;
  table.unused.delete(layerId);
  return entry;
}

function leave({ entries, unused }: MountTable, layerId: LayerMountKey): void {
  const entry = entries.get(layerId);
  if (entry === undefined || entry.users === 0) return;
  entry.users -= 1;
  if (entry.users === 0) unused.add(layerId);
}

/** The entry of a layer that is mounted, known or not. */
function mounted({ entries }: MountTable, layerId: LayerMountKey): Entry {
  const isNew = { users: 0, work: Promise.resolve(), leaving: false, settled: true };
  const entry = entries.get(layerId) ?? isNew;
  entries.set(layerId, entry);
  return entry;
}

export function createLayerMounts({ effects, unusedMax }: LayerMountsOptions): LayerMounts {
  const entries = new Map<LayerMountKey, Entry>();
  const unused = new Set<LayerMountKey>();
  const table = { entries, unused, effects };

  const trim = () => {
    for (const layerId of unused) {
      if (unused.size <= unusedMax) return;
      unused.delete(layerId);
      const entry = entries.get(layerId);
      if (entry !== undefined) unmount(table, layerId, entry);
    }
  };

  const release = (layerIds: readonly LayerMountKey[]) => {
    for (const layerId of layerIds) leave(table, layerId);
    trim();
  };

  return {
    async acquire(layerIds, signal) {
      const joined = layerIds.map((layerId) => join(table, layerId));
      try {
        const isThere = joined.every(({ settled }) => settled) && !signal?.aborted;
        if (!isThere) await orAborted(Promise.all(joined.map(({ work }) => work)), signal);
      } catch (thrown) {
        release(layerIds);
        throw asDsecError(thrown);
      }
    },
    release,
    claim(layerIds) {
      for (const layerId of layerIds) {
        mounted(table, layerId).users += 1;
        unused.delete(layerId);
      }
    },
    found(layerIds) {
      const known = new Set(layerIds);
      for (const [layerId, entry] of entries) {
        const isIdle = entry.settled && entry.users === 0;
        if (isIdle && !known.has(layerId)) forget(table, layerId, entry);
      }
      for (const layerId of layerIds) {
        if (mounted(table, layerId).users === 0) unused.add(layerId);
      }
      trim();
    },
    users: () => new Map([...entries].map(([layerId, { users }]) => [layerId, users])),
    async settled() {
      await Promise.allSettled([...entries.values()].map(({ work }) => work));
    },
  };
}
