import { link, opendir, unlink } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { syncDirectory } from '@dsec/linux';
import { asDsecError, type Digest, DsecError } from '@dsec/std';
import type { Static } from 'typebox';
import { crashPoint } from './crash-point.ts';
import { ensureDirectory } from './durable-file.ts';
import { bothKinds, isGrading, markGrading } from './grading-mark.ts';
import {
  formatLayerRef,
  isFloating,
  isLayerKind,
  LAYER_KINDS,
  type LayerKind,
  type LayerRef,
  parseLayerRef,
  parseLayerSelector,
  selectVersion,
  sortVersions,
} from './layer-ref.ts';
import { readJson } from './record-file.ts';
import { REF_FORMAT } from './record-limits.ts';
import type { RefRecordSchema } from './record-schemas.ts';
import { type LayerStore, refPaths, refsDirectory } from './store-layout.ts';

/** One directory of the store holds at most this many names; more are refused when listed. */
const NAMES_MAX = 1_000_000;
export type RefRecord = Static<typeof RefRecordSchema>;
export type Provenance = RefRecord['source'];

export function refRecordOf(ref: LayerRef, fields: Omit<RefRecord, 'format' | 'ref'>): RefRecord {
  return { format: REF_FORMAT, ref: formatLayerRef(ref), ...fields };
}

/** The record of a full ref, or undefined. */
export async function findRef(store: LayerStore, ref: LayerRef): Promise<RefRecord | undefined> {
  const path = refPaths(store, ref).file;
  let record: RefRecord;
  try {
    record = await readJson(path, (schemas) => schemas.RefRecordSchema);
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code === 'not-found') return undefined;
    throw error;
  }
  if (record.ref !== formatLayerRef(ref)) {
    throw new DsecError('data-loss', `${path} holds the record of ${record.ref}`);
  }
  return record;
}

/** What a ref or a floating selector means now. `not-found` names what exists. */
export async function resolveRef(store: LayerStore, text: string): Promise<RefRecord> {
  const selector = parseLayerSelector(text);
  // A version may be removed between the listing and the read: then the listing is out of date, so look
  // again.
  for (let attempt = 0; attempt < 8; attempt += 1) {
    const versions = isFloating(selector.version)
      ? await listVersions(store, selector.kind, selector.name)
      : [selector.version];
    const version = selectVersion(selector.version, versions);
    const record = version && (await findRef(store, { ...selector, version }));
    if (record) return record;
    if (version === undefined || !isFloating(selector.version)) break;
  }
  const known = await listVersions(store, selector.kind, selector.name);
  const shown = known.slice(0, 10).join(', ') + (known.length > 10 ? ', …' : '');
  throw new DsecError(
    'not-found',
    `no layer matches ${text}; versions of ${selector.kind}/${selector.name}: ${shown || 'none'}`,
    { details: { about: 'layer' } },
  );
}

/** Which refs to list. `name` needs `kind`. */
export interface RefFilter {
  readonly kind?: LayerKind;
  readonly name?: string;
}

/**
 * Every ref that matches: by kind, then name, newest version first. Refs removed meanwhile are left out;
 * the first damaged one is `data-loss`.
 */
export async function* listRefs(
  store: LayerStore,
  filter: RefFilter = {},
): AsyncGenerator<RefRecord> {
  for await (const ref of listRefNames(store, filter)) {
    const record = await findRef(store, ref);
    if (record !== undefined) yield record;
  }
}

/** The names alone, in the same order, whatever their records say. */
export async function* listRefNames(
  store: LayerStore,
  filter: RefFilter = {},
): AsyncGenerator<LayerRef> {
  for (const kind of filter.kind === undefined ? LAYER_KINDS : [filter.kind]) {
    const names = filter.name === undefined ? await listNames(store, kind) : [filter.name];
    for (const name of names) {
      for (const version of await listVersions(store, kind, name)) {
        yield { kind, name, version };
      }
    }
  }
}

/** Every name of a layer. Damaged records, which name nothing, are passed over. */
export async function refsOfLayer(store: LayerStore, layerId: Digest): Promise<RefRecord[]> {
  const found: RefRecord[] = [];
  for await (const ref of listRefNames(store)) {
    const record = await findRef(store, ref).catch((thrown: unknown) => {
      if (asDsecError(thrown).code === 'data-loss') return undefined;
      throw thrown;
    });
    if (record?.layerId === layerId) found.push(record);
  }
  return found;
}

/**
 * Removes a name. The layer stays: other refs, sandboxes and diffs may use it, and only a collector that
 * knows all of them may remove data. A damaged record is removed like any other. `not-found` when there is
 * no such ref, `data-loss` when something else is in its place.
 */
export async function removeRef(store: LayerStore, ref: LayerRef): Promise<void> {
  const { file, directory } = refPaths(store, ref);
  try {
    await unlink(file);
    await syncDirectory(directory);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'EISDIR') throw foreignDirectory(file, thrown);
    if (code === 'ENOENT') {
      throw new DsecError('not-found', `there is no layer named ${formatLayerRef(ref)}`, {
        details: { about: 'layer' },
      });
    }
    throw asDsecError(thrown);
  }
}

/** We make no directories there, so what it holds is not ours to remove. */
function foreignDirectory(path: string, cause: unknown): DsecError {
  const message = `${path} is a directory where a ref belongs; look what it holds, then remove it by hand`;
  return new DsecError('data-loss', message, { cause });
}

/** Makes the directories that a ref needs, durably, so that `commitRef` has little left that can fail. */
export async function prepareRef(store: LayerStore, ref: LayerRef): Promise<void> {
  const { kindDirectory, directory } = refPaths(store, ref);
  await ensureDirectory(kindDirectory);
  await ensureDirectory(directory);
  // Synced even when they existed: whoever made them may not have come that far.
  await syncDirectory(refsDirectory(store));
  await syncDirectory(kindDirectory);
}

/** Throws `already-exists` when the ref means another layer, or the same one started in another way. */
export async function checkRefIsFree(
  store: LayerStore,
  ref: LayerRef,
  wanted: RefRecord,
): Promise<RefRecord | undefined> {
  const existing = await findRef(store, ref);
  if (existing === undefined) return undefined;
  const same =
    existing.layerId === wanted.layerId && isDeepStrictEqual(existing.image, wanted.image);
  if (same) return existing;
  const what =
    existing.layerId === wanted.layerId
      ? 'names this layer with another environment, working directory or user'
      : `names layer ${existing.layerId}`;
  throw new DsecError(
    'already-exists',
    `${existing.ref} ${what}; a version never moves: choose a new one, or remove it first`,
    { details: { layerId: existing.layerId } },
  );
}

/**
 * Gives a durable file its name in `refs/`. A link, so that of two processes exactly one creates it; the
 * other gets the first one's record if that says the same, else `already-exists`.
 */
export async function commitRef(
  store: LayerStore,
  ref: LayerRef,
  staged: { readonly path: string; readonly record: RefRecord },
): Promise<RefRecord> {
  const { file, directory } = refPaths(store, ref);
  await checkApart(store, ref, staged.record.layerId);
  const existing = await linkRef(store, ref, staged, file);
  if (existing === undefined && ref.kind !== 'grading') {
    // Marked meanwhile: of the two, this one goes.
    await checkApart(store, ref, staged.record.layerId).catch(async (thrown: unknown) => {
      await unlink(file);
      throw thrown;
    });
  }
  crashPoint('publish.after-ref-link');
  await syncDirectory(directory);
  crashPoint('publish.after-ref-fsync');
  return existing ?? staged.record;
}

/** See grading-mark.ts. The mark comes before the look at the other names, as theirs look for it last. */
async function checkApart(store: LayerStore, ref: LayerRef, layerId: Digest): Promise<void> {
  if (ref.kind !== 'grading') {
    if (await isGrading(store, layerId)) throw bothKinds(ref, 'one of kind grading');
    return;
  }
  if (await isGrading(store, layerId)) return;
  const isOther = (record: RefRecord) => parseLayerRef(record.ref).kind !== 'grading';
  const before = (await refsOfLayer(store, layerId)).find(isOther);
  if (before !== undefined) throw bothKinds(ref, before.ref);
  await markGrading(store, layerId);
  const meanwhile = (await refsOfLayer(store, layerId)).find(isOther);
  if (meanwhile !== undefined) throw bothKinds(ref, meanwhile.ref);
}

async function linkRef(
  store: LayerStore,
  ref: LayerRef,
  staged: { readonly path: string; readonly record: RefRecord },
  file: string,
): Promise<RefRecord | undefined> {
  for (let attempt = 0; attempt < 8; attempt += 1) {
    try {
      await link(staged.path, file);
      return undefined;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw linkError(thrown);
    }
    const existing = await checkRefIsFree(store, ref, staged.record);
    if (existing !== undefined) return existing;
  }
  throw new DsecError('conflict', `${formatLayerRef(ref)} is being created and removed at once`);
}

/** Refs are created by link(2), which some FUSE and FAT file systems lack; they call that EPERM. */
function linkError(thrown: unknown): DsecError {
  const code = (thrown as NodeJS.ErrnoException).code ?? '';
  if (!['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP'].includes(code)) return asDsecError(thrown);
  const message = 'the file system of the store has no hard links; refs need them';
  return new DsecError('unsupported', message, { cause: thrown });
}

async function listVersions(store: LayerStore, kind: LayerKind, name: string): Promise<string[]> {
  const { directory } = refPaths(store, { kind, name, version: '' });
  const isVersion = (version: string) => isRefText(`${kind}/${name}:${version}`);
  return sortVersions(await listDirectory(directory, isVersion));
}

async function listNames(store: LayerStore, kind: LayerKind): Promise<string[]> {
  const { kindDirectory } = refPaths(store, { kind, name: '', version: '' });
  const isName = (name: string) => isRefText(`${kind}/${name}:0.0.0`);
  return (await listDirectory(kindDirectory, isName)).sort();
}

/** Names that are not ours (an editor's backup, a file system's own) are passed over. */
async function listDirectory(path: string, isOurs: (name: string) => boolean): Promise<string[]> {
  const names: string[] = [];
  try {
    for await (const entry of await opendir(path)) {
      if (!isOurs(entry.name)) continue;
      if (names.push(entry.name) > NAMES_MAX) {
        throw new DsecError('too-large', `${path} holds more than ${NAMES_MAX} names`);
      }
    }
  } catch (thrown) {
    const error = asDsecError(thrown);
    // A file among the directories is not ours either.
    const isNone = error.code === 'not-found' || (thrown as { code?: unknown }).code === 'ENOTDIR';
    if (!isNone) throw error;
  }
  return names;
}

function isRefText(text: string): boolean {
  try {
    return isLayerKind(parseLayerRef(text).kind);
  } catch {
    return false;
  }
}
