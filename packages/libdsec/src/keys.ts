import { type BodyOf, type Key, type KeyCreated, ROUTES, type RouteOf } from '@dsec/protocol';
import { itemsOf, type ListOptions, present } from './pages.ts';
import type { CallSettings, Server } from './server.ts';

export type Scope = BodyOf<RouteOf<'createKey'>>['scopes'][number];

export interface KeyOptions extends CallSettings {
  readonly lifetimeMs?: number | undefined;
  readonly principal?: string | undefined;
  readonly project?: string | undefined;
}

/** API keys. */
export class Keys {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  /** Makes a key. Its `secret` is told this once. */
  create(name: string, scopes: readonly Scope[], options: KeyOptions = {}): Promise<KeyCreated> {
    const { lifetimeMs, principal, project } = options;
    const body = present({ name, scopes: [...scopes], lifetimeMs, principal, project });
    return this.#server.call(ROUTES.createKey, { body }, options);
  }

  list(options: ListOptions = {}): AsyncGenerator<Key> {
    const { signal } = options;
    return itemsOf(
      options,
      (query) => this.#server.call(ROUTES.listKeys, { query }, { signal }),
      (page) => page.keys,
    );
  }

  /** Makes a key invalid at once. */
  async revoke(keyId: string, options: CallSettings = {}): Promise<void> {
    await this.#server.call(ROUTES.revokeKey, { params: { keyId } }, options);
  }
}
