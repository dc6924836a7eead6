import {
  type Layer,
  type LayerImportEvent,
  type LayerRef,
  type ReplyOf,
  ROUTES,
  type RouteOf,
} from '@dsec/protocol';
import { fromErrorBody, HOUR_MS } from '@dsec/std';
import { bodyOf, type Pieces } from './byte-input.ts';
import { clientErrorOf, ProtocolError } from './errors.ts';
import { readLocal, sendAgain } from './local-file.ts';
import { itemsOf, type ListOptions, present } from './pages.ts';
import type { CallSettings, Server } from './server.ts';

/** What the reading of a whole layer has found. */
export type LayerReport = ReplyOf<RouteOf<'verifyLayer'>>;
export type LayerKind = 'base' | 'workspace' | 'toolkit' | 'diff' | 'tools' | 'grading';

export interface ImportOptions {
  readonly format?: 'tar' | 'oci-archive' | 'docker-archive' | undefined;
  /** Told what has been read so far. */
  readonly onProgress?: ((progress: LayerImportEvent) => void) | undefined;
  /** Seconds until the first answer; absent: an hour. */
  readonly timeout?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface RefListOptions extends ListOptions {
  readonly kind?: LayerKind | undefined;
  readonly name?: string | undefined;
}

/** The layer store of the server. */
export class Layers {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  /**
   * Makes a layer of an archive, given as the path of a local file or as its bytes, and names it. The same
   * content is the same layer. Throws `import-invalid`, `import-limit`, `already-exists`.
   */
  async importLayer(
    source: string | Uint8Array | Pieces,
    kind: LayerKind,
    name: string,
    version: string,
    options: ImportOptions = {},
  ): Promise<Layer> {
    const { format = 'tar', timeout, signal } = options;
    const query = { format, ref: `${kind}/${name}:${version}` };
    const timeoutMs = timeout === undefined ? HOUR_MS : timeout * 1000;
    const send = async () => {
      const body = typeof source === 'string' ? readLocal(source) : bodyOf(source);
      const settings = { signal, timeoutMs };
      const lines = await this.#server.call(ROUTES.importLayer, { query, body }, settings);
      return await layerOf(lines, options);
    };
    const isRepeatable = typeof source === 'string' || source instanceof Uint8Array;
    return isRepeatable ? await sendAgain(this.#server.timeoutMs, signal, send) : await send();
  }

  /** All layers, by their ids. */
  list(options: ListOptions = {}): AsyncGenerator<Layer> {
    const { signal } = options;
    return itemsOf(
      options,
      (query) => this.#server.call(ROUTES.listLayers, { query }, { signal }),
      (page) => page.layers,
    );
  }

  get(layerId: string, options: CallSettings = {}): Promise<Layer> {
    return this.#server.call(ROUTES.getLayer, { params: { layerId } }, options);
  }

  /** Reads every byte of a layer and compares the digests. */
  verify(layerId: string, options: CallSettings = {}): Promise<LayerReport> {
    const settings = { timeoutMs: HOUR_MS, ...options };
    return this.#server.call(ROUTES.verifyLayer, { params: { layerId } }, settings);
  }

  /**
   * Removes a layer: every name of it, or none (`permission-denied`) when one is another project's. Sandboxes
   * that were made of it go on, so its data stays until a later collection; done again it does nothing.
   */
  async remove(layerId: string, options: CallSettings = {}): Promise<void> {
    await this.#server.call(ROUTES.removeLayer, { params: { layerId } }, options);
  }

  /** The names of layers. */
  refs(options: RefListOptions = {}): AsyncGenerator<LayerRef> {
    const { kind, name, signal } = options;
    const filter = present({ kind, name });
    return itemsOf(
      options,
      (page) =>
        this.#server.call(ROUTES.listLayerRefs, { query: { ...filter, ...page } }, { signal }),
      (page) => page.refs,
    );
  }

  /** Which layer a name means now; its version may float (`^1`, `~1.2`, `latest`). */
  resolve(selector: string, options: CallSettings = {}): Promise<LayerRef> {
    return this.#server.call(ROUTES.resolveLayerRef, { query: { selector } }, options);
  }

  /** Gives a layer a name. A name that means another layer is `already-exists`. */
  tag(
    kind: LayerKind,
    name: string,
    version: string,
    layerId: string,
    options: CallSettings = {},
  ): Promise<LayerRef> {
    const input = { params: { kind, name, version }, body: { layerId } };
    return this.#server.call(ROUTES.createLayerRef, input, options);
  }

  /** Removes a name; the layer stays. One that is gone already is fine. */
  async untag(
    kind: LayerKind,
    name: string,
    version: string,
    options: CallSettings = {},
  ): Promise<void> {
    await this.#server.call(ROUTES.removeLayerRef, { params: { kind, name, version } }, options);
  }
}

async function layerOf(
  lines: AsyncIterable<LayerImportEvent>,
  { onProgress }: ImportOptions,
): Promise<Layer> {
  for await (const line of lines) {
    if (line.error !== undefined) throw clientErrorOf(fromErrorBody(line.error));
    onProgress?.(line);
    if (line.layer !== undefined) return line.layer;
  }
  throw new ProtocolError('protocol', 'the import ended without a result');
}
