/** A layer of an archive that a caller sends. */
import { randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ImportSource,
  importLayer,
  type LayerProgress,
  type LayerStore,
  parseLayerRef,
  readManifest,
} from '@dsec/layers';
import type { LayerImportEvent, QueryOf, RouteOf } from '@dsec/protocol';
import { asDsecError, DsecError, toErrorBody } from '@dsec/std';
import { layerOf } from './layer-shapes.ts';

export interface ImportCall {
  readonly signal: AbortSignal;
  /** Whose the new name is. */
  readonly project: string;
}

export interface LayerImports {
  /**
   * Reads the archive whole, then tells how its import goes. Throws before that: `overloaded`,
   * `invalid-argument`, `cancelled`, `storage-full`. The upload is kept in a file without a name, so that
   * nothing is left of it whatever happens.
   */
  run(
    query: QueryOf<RouteOf<'importLayer'>>,
    body: AsyncIterable<Uint8Array>,
    call: ImportCall,
  ): AsyncIterable<LayerImportEvent>;
}

/** Each has a process that works hard. */
const IMPORTS_MAX = 4;

export function createLayerImports(store: LayerStore): LayerImports {
  let running = 0;
  return {
    async *run(query, body, { signal, project }) {
      const { ref } = query;
      if (ref === undefined) {
        throw new DsecError('invalid-argument', 'ref: name the new layer', {
          details: { field: 'ref' },
        });
      }
      if (running >= IMPORTS_MAX) {
        throw new DsecError('overloaded', `${IMPORTS_MAX} imports are under way already`);
      }
      running += 1;
      const file = await openNameless(join(store.root, 'tmp')).catch((thrown) => {
        running -= 1;
        throw asDsecError(thrown);
      });
      try {
        await receive(file, body);
        const owned = { signal, owner: project };
        yield* importFile(store, ref, sourceOf(query.format, file), owned);
      } finally {
        running -= 1;
        await file.close();
      }
    },
  };
}

async function openNameless(directory: string): Promise<FileHandle> {
  const path = join(directory, `.upload-${randomBytes(12).toString('hex')}`);
  const file = await open(path, 'wx+', 0o600);
  await unlink(path);
  return file;
}

async function receive(file: FileHandle, body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of body) {
    try {
      await file.writeFile(chunk);
    } catch (thrown) {
      throw asDsecError(thrown);
    }
  }
}

/** By the name that the kernel has for a file without one, so that a worker can open it anew. */
function sourceOf(
  format: 'tar' | 'oci-archive' | 'docker-archive',
  { fd }: FileHandle,
): ImportSource {
  const path = `/proc/${process.pid}/fd/${fd}`;
  if (format === 'tar') return { kind: 'tar', path };
  return { kind: format === 'oci-archive' ? 'oci-layout' : 'docker-archive', path };
}

async function* importFile(
  store: LayerStore,
  text: string,
  source: ImportSource,
  { signal, owner }: { readonly signal: AbortSignal; readonly owner: string },
): AsyncGenerator<LayerImportEvent> {
  const ref = parseLayerRef(text);
  const news = new EventEmitter();
  let progress: LayerProgress = { entries: 0, bytes: 0, bytesTotal: null };
  let outcome: LayerImportEvent | undefined;
  const work = importLayer({
    ...{ store, ...ref, source, signal, owner },
    onProgress(told) {
      progress = told;
      news.emit('news');
    },
  })
    .then(async ({ record }) => {
      const layer = layerOf(await readManifest(store, record.layerId));
      outcome = { entries: layer.entries, contentBytes: layer.contentBytes, layer };
    })
    .catch((thrown: unknown) => {
      const error = toErrorBody(asDsecError(thrown));
      outcome = { entries: progress.entries, contentBytes: progress.bytes, error };
    })
    .finally(() => news.emit('news'));
  for (;;) {
    if (outcome !== undefined) break;
    await once(news, 'news');
    if (outcome === undefined) {
      yield { entries: progress.entries, contentBytes: progress.bytes };
    }
  }
  await work;
  yield outcome;
}
