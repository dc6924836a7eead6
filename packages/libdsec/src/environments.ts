import { type Environment, ROUTES } from '@dsec/protocol';
import { itemsOf, type ListOptions, present } from './pages.ts';
import type { CallSettings, Server } from './server.ts';

/** Named lists of layers. */
export class Environments {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  list(options: ListOptions = {}): AsyncGenerator<Environment> {
    const { signal } = options;
    return itemsOf(
      options,
      (query) => this.#server.call(ROUTES.listEnvironments, { query }, { signal }),
      (page) => page.environments,
    );
  }

  get(name: string, options: CallSettings = {}): Promise<Environment> {
    return this.#server.call(ROUTES.getEnvironment, { params: { name } }, options);
  }

  /**
   * Makes or replaces one. With `revision` only that one is replaced, with 0 none; otherwise `conflict`.
   * Layers are named from the base up; one that there is none of is `not-found`.
   */
  put(
    name: string,
    layers: readonly string[],
    options: CallSettings & { readonly revision?: number | undefined } = {},
  ): Promise<Environment> {
    const body = present({ layers: [...layers], revision: options.revision });
    return this.#server.call(ROUTES.putEnvironment, { params: { name }, body }, options);
  }

  /** Sandboxes that were made from it are not touched. One that is gone already is fine. */
  async remove(name: string, options: CallSettings = {}): Promise<void> {
    await this.#server.call(ROUTES.removeEnvironment, { params: { name } }, options);
  }
}
