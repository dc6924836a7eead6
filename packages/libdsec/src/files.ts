import { type FileEntry, ROUTES } from '@dsec/protocol';
import { HOUR_MS } from '@dsec/std';
import { type ByteSource, bodyOf, bytesOf, type Path, pathFields } from './byte-input.ts';
import { NotFoundError } from './errors.ts';
import { readContent } from './file-content.ts';
import { type OnProgress, readLocal, sendAgain, writeLocal } from './local-file.ts';
import { itemsOf, type ListOptions, present } from './pages.ts';
import type { Server } from './server.ts';

interface UserOptions {
  /** Whose rights are used; absent: the sandbox's own user. */
  readonly user?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface WriteOptions extends UserOptions {
  /** Permission bits, as `0o644`. */
  readonly mode?: number | undefined;
  /** Make the directories above it that are missing. Absent: true. */
  readonly createParents?: boolean | undefined;
  /** Refuse with `already-exists` instead of replacing. Not sent again where it may have arrived. */
  readonly exclusive?: boolean | undefined;
  /** Seconds for all of it; absent: an hour. */
  readonly timeout?: number | undefined;
}

export interface RangeOptions extends UserOptions {
  readonly offset?: number | undefined;
  /** Absent: to the end. */
  readonly length?: number | undefined;
}

export interface ProgressOptions {
  /** Told how many bytes have gone. */
  readonly onProgress?: OnProgress | undefined;
}

/**
 * The files of a sandbox. Paths are text, or bytes where a name is no UTF-8; relative ones start at the
 * sandbox's working directory. Every call throws `not-found`, `permission-denied` and what else the kernel
 * says inside.
 */
export class Files {
  readonly #server: Server;
  readonly #params: { readonly sandboxId: string };

  constructor(server: Server, sandboxId: string) {
    this.#server = server;
    this.#params = { sandboxId };
  }

  /** A whole file in memory. */
  async read(path: Path, options: RangeOptions = {}): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const bytes of this.stream(path, options)) pieces.push(bytes);
    return Buffer.concat(pieces);
  }

  /** A whole file as UTF-8. */
  async readText(path: Path, options: RangeOptions = {}): Promise<string> {
    return Buffer.from(await this.read(path, options)).toString('utf8');
  }

  /**
   * The bytes of a file of any size. A connection that is lost is made anew where it was; a file that was
   * changed meanwhile is `conflict`.
   */
  stream(path: Path, options: RangeOptions = {}): AsyncGenerator<Uint8Array> {
    const { user, offset, length, signal } = options;
    const query = present({ ...pathFields('path', path), user, offset, lengthBytes: length });
    return readContent(this.#server, { ...this.#params, query }, signal);
  }

  /**
   * Writes a whole file, which appears under its name when all bytes have come. Bytes, and what a function
   * gives, are sent again when the connection is lost; what is an iteration is taken piece by piece, once:
   * then that is `unavailable`.
   */
  async write(path: Path, data: ByteSource, options: WriteOptions = {}): Promise<FileEntry> {
    const { user, mode, createParents = true, exclusive, signal, timeout } = options;
    const fields = { user, mode, createParents, exclusive };
    const query = present({ ...pathFields('path', path), ...fields });
    const timeoutMs = timeout === undefined ? HOUR_MS : timeout * 1000;
    const send = (source: Exclude<ByteSource, () => unknown>) => {
      const input = { params: this.#params, query, body: bodyOf(source) };
      return this.#server.call(ROUTES.writeFile, input, { signal, timeoutMs });
    };
    if (typeof data === 'function') {
      return await sendAgain(this.#server.timeoutMs, signal, () => send(data()), exclusive);
    }
    const isWhole = typeof data === 'string' || data instanceof Uint8Array;
    if (exclusive !== true || !isWhole) return await send(data);
    return await this.write(path, () => [bytesOf(data)], options);
  }

  async stat(
    path: Path,
    options: UserOptions & { readonly followSymlinks?: boolean | undefined } = {},
  ): Promise<FileEntry> {
    const { user, followSymlinks, signal } = options;
    const query = present({ ...pathFields('path', path), user, followSymlinks });
    return await this.#server.call(ROUTES.statFile, { params: this.#params, query }, { signal });
  }

  /** The entries of a directory; what is made or removed meanwhile may or may not be seen. */
  list(path: Path, options: UserOptions & ListOptions = {}): AsyncGenerator<FileEntry> {
    const { user, signal } = options;
    const named = present({ ...pathFields('path', path), user });
    const read = (page: { limit: number; cursor?: string }) => {
      const input = { params: this.#params, query: { ...named, ...page } };
      return this.#server.call(ROUTES.listFiles, input, { signal });
    };
    return itemsOf(options, read, (page) => page.entries);
  }

  /** Makes a directory. With `createParents` also those above, and one that is there already is fine. */
  async mkdir(
    path: Path,
    options: UserOptions & { readonly mode?: number; readonly createParents?: boolean } = {},
  ): Promise<FileEntry> {
    const { user, mode, createParents, signal } = options;
    const body = present({ ...pathFields('path', path), user, mode, createParents });
    const input = { params: this.#params, body };
    return await this.#server.call(ROUTES.makeDirectory, input, { signal });
  }

  /** Renames. What is there already is `already-exists`, unless it is to be replaced. */
  async move(
    source: Path,
    target: Path,
    options: UserOptions & { readonly replace?: boolean } = {},
  ): Promise<void> {
    const { user, replace, signal } = options;
    const names = { ...pathFields('source', source), ...pathFields('target', target) };
    const input = { params: this.#params, body: present({ ...names, user, replace }) };
    await this.#server.call(ROUTES.moveFile, input, { signal });
  }

  /** Removes a file, or with `recursive` a directory and all below it. */
  async remove(
    path: Path,
    options: UserOptions & { readonly recursive?: boolean } = {},
  ): Promise<void> {
    const { user, recursive, signal } = options;
    const query = present({ ...pathFields('path', path), user, recursive });
    await this.#server.call(ROUTES.removeFile, { params: this.#params, query }, { signal });
  }

  /** Whether a path names something; a symlink that leads nowhere does. */
  async exists(path: Path, options: UserOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, { ...options, followSymlinks: false });
      return true;
    } catch (thrown) {
      if (thrown instanceof NotFoundError) return this.#isAlive(thrown, options);
      throw thrown;
    }
  }

  /** Copies a local file into the sandbox, with constant memory; again from its beginning if need be. */
  async upload(
    localPath: string,
    path: Path,
    options: WriteOptions & ProgressOptions = {},
  ): Promise<FileEntry> {
    return await this.write(path, () => readLocal(localPath, options.onProgress), options);
  }

  /** Copies a file out of the sandbox, with constant memory. The local file appears when it is whole. */
  async download(
    path: Path,
    localPath: string,
    options: RangeOptions & ProgressOptions = {},
  ): Promise<void> {
    await writeLocal(localPath, this.stream(path, options), options.onProgress);
  }

  /** A path that is not there is an answer; a sandbox that is not there is an error. */
  async #isAlive(missing: NotFoundError, { signal }: UserOptions): Promise<false> {
    const input = { params: this.#params, query: {} };
    const alive = await this.#server
      .call(ROUTES.getSandbox, input, { signal })
      .catch(() => undefined);
    if (alive === undefined) throw missing;
    return false;
  }
}
