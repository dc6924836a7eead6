/** The bytes of a file of any size, taken up again where a connection broke off, unless it was changed. */
import { type FileEntry, type QueryOf, ROUTES, type RouteOf } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import { ConflictError, clientErrorOf } from './errors.ts';
import { createPatience } from './patience.ts';
import type { Server } from './server.ts';

export interface ContentRequest {
  readonly sandboxId: string;
  /** Path, user, and which part of it. */
  readonly query: QueryOf<RouteOf<'readFile'>>;
}

/** Up to so many bytes are read before the first is handed on, so that a repetition needs no comparison. */
const WHOLE_BYTES_MAX = MIB;

export async function* readContent(
  server: Server,
  request: ContentRequest,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const { sandboxId, query } = request;
  const { offset = 0, lengthBytes = Infinity } = query;
  const params = { sandboxId };
  const patience = createPatience(server.timeoutMs);
  let at = offset;
  let before: Promise<FileEntry> | undefined;
  for (;;) {
    const left = offset + lengthBytes - at;
    const part = { ...query, offset: at, ...(left === Infinity ? {} : { lengthBytes: left }) };
    try {
      const settings = { signal };
      const { headers, body } = await server.call(
        ROUTES.readFile,
        { params, query: part },
        settings,
      );
      patience.opened();
      const sizeBytes = Number(headers['dsec-size-bytes'] ?? Infinity);
      if (at === offset && Math.min(left, sizeBytes - at) <= WHOLE_BYTES_MAX) {
        yield* await readAll(body);
        return;
      }
      if (before === undefined) {
        before = statOf(server, request, signal);
        before.catch(() => {});
      } else {
        checkSame(await before, await statOf(server, request, signal));
      }
      for await (const bytes of body) {
        at += bytes.byteLength;
        yield bytes;
        patience.progressed();
      }
      return;
    } catch (thrown) {
      await patience.pause(clientErrorOf(thrown), signal);
    }
  }
}

async function readAll(body: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for await (const bytes of body) pieces.push(bytes);
  return pieces;
}

function statOf(server: Server, { sandboxId, query }: ContentRequest, signal?: AbortSignal) {
  const { offset: _, lengthBytes: __, ...named } = query;
  return server.call(ROUTES.statFile, { params: { sandboxId }, query: named }, { signal });
}

function checkSame(one: FileEntry, other: FileEntry): void {
  const isSame =
    one.sizeBytes === other.sizeBytes &&
    one.mtimeSeconds === other.mtimeSeconds &&
    one.mtimeNanoseconds === other.mtimeNanoseconds;
  if (!isSame) throw new ConflictError('conflict', 'the file was changed while it was read');
}
