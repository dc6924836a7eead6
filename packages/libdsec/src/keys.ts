import {
  type BodyOf,
  type Key,
  type KeyCreated,
  type KeyLimits,
  ROUTES,
  type RouteOf,
} from '@dsec/protocol';
import { SecretLostError } from './errors.ts';
import { itemsOf, type ListOptions, present } from './pages.ts';
import type { CallSettings, Server } from './server.ts';

export type Scope = BodyOf<RouteOf<'createKey'>>['scopes'][number];

export interface KeyOptions extends CallSettings {
  readonly lifetimeMs?: number | undefined;
  readonly principal?: string | undefined;
  readonly project?: string | undefined;
  /**
   * With `sandbox`, a key for the agent in it: it makes sandboxes of its own within these limits, reaches
   * nothing else, and ends with that sandbox.
   */
  readonly limits?: KeyLimits | undefined;
  readonly sandbox?: string | undefined;
}

export interface KeyRotateOptions extends CallSettings {
  readonly graceMs?: number | undefined;
}

/** A key with its secret. */
export type NewKey = KeyCreated & { readonly secret: string };

/** An answer that was lost on its way was asked for again, and secrets are told once. */
function withSecret({ key, secret }: KeyCreated, done: string): NewKey {
  if (secret !== undefined) return { key, secret };
  const message = `the key ${key.id} was ${done}, but the answer with its secret was lost`;
  throw new SecretLostError('secret-lost', message, { details: { keyId: key.id } });
}

/** API keys. */
export class Keys {
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server;
  }

  /** Makes a key. Its `secret` is told this once; `SecretLostError` where that answer got lost. */
  async create(name: string, scopes: readonly Scope[], options: KeyOptions = {}): Promise<NewKey> {
    const { lifetimeMs, principal, project, limits, sandbox } = options;
    const own = { principal, project, limits, sandbox };
    const body = present({ name, scopes: [...scopes], lifetimeMs, ...own });
    return withSecret(await this.#server.call(ROUTES.createKey, { body }, options), 'made');
  }

  /**
   * Another secret for the key of this client, or for one that comes of it. The earlier ones are good for
   * `graceMs` more, an hour unless it is said; with 0 they end. `SecretLostError` as in `create`.
   */
  async rotate(keyId: string, options: KeyRotateOptions = {}): Promise<NewKey> {
    const { graceMs } = options;
    const input = { params: { keyId }, body: present({ graceMs }) };
    return withSecret(await this.#server.call(ROUTES.rotateKey, input, options), 'rotated');
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
