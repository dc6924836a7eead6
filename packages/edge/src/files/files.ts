import type { AgentFields, Backend, HostFrameType, StreamFrame } from '@dsec/backend';
import type { BodyOf, FileEntry, FilePage, QueryOf, RouteOf } from '@dsec/protocol';
import type { Random, SandboxId } from '@dsec/std';
import type { Agents } from '../exec/agents.ts';
import type { Idempotency } from '../journal/idempotency.ts';
import { type KeyedContext, type OperationContext, traceBytes } from '../operation.ts';
import type { SandboxEntry, Sandboxes } from '../sandboxes.ts';
import { broken, type FileAgent, fileError } from './file-agent.ts';
import { entryOf, pathOf } from './file-names.ts';
import { readFile } from './read-file.ts';
import { writeFile } from './write-file.ts';

const PAGE_ENTRIES = 256;

export interface FilesOptions {
  readonly sandboxes: Sandboxes;
  readonly agents: Pick<Agents, 'link'>;
  readonly backend: Pick<Backend, 'dial'>;
  readonly idempotency: Idempotency;
  readonly random: Random;
}

export interface FileContent {
  /** Size of the whole file when it was opened; what is read may be more, of a file that grows. */
  readonly sizeBytes: number;
  readonly offset: number;
  /** Ends with the file or the range. Throws when the file could not be read to there. */
  readonly body: AsyncGenerator<Uint8Array>;
}

/**
 * Files of sandboxes. Everything is done by the agent with the rights of the user asked for, or of the
 * sandbox's own (THREATS A8); here are names, bytes and their bounds. A paused sandbox is resumed.
 */
export interface Files {
  read(
    id: SandboxId,
    query: QueryOf<RouteOf<'readFile'>>,
    context: OperationContext,
  ): Promise<FileContent>;
  /** `bytesExpected`: how long the body says that it is, if it does. */
  write(
    id: SandboxId,
    query: QueryOf<RouteOf<'writeFile'>>,
    body: AsyncIterable<Uint8Array>,
    bytesExpected: number | undefined,
    context: OperationContext,
  ): Promise<FileEntry>;
  stat(
    id: SandboxId,
    query: QueryOf<RouteOf<'statFile'>>,
    context: OperationContext,
  ): Promise<FileEntry>;
  list(
    id: SandboxId,
    query: QueryOf<RouteOf<'listFiles'>>,
    context: OperationContext,
  ): Promise<FilePage>;
  makeDirectory(
    id: SandboxId,
    request: BodyOf<RouteOf<'makeDirectory'>>,
    context: KeyedContext,
  ): Promise<FileEntry>;
  move(id: SandboxId, request: BodyOf<RouteOf<'moveFile'>>, context: KeyedContext): Promise<void>;
  remove(
    id: SandboxId,
    query: QueryOf<RouteOf<'removeFile'>>,
    context: KeyedContext,
  ): Promise<void>;
}

/** One operation in one sandbox. */
interface Operation extends FileAgent {
  readonly entry: SandboxEntry;
  readonly trace: Uint8Array;
  readonly signal: AbortSignal;
}

export function createFiles(options: FilesOptions): Files {
  const begin = (id: SandboxId, context: OperationContext) => beginOperation(options, id, context);
  const once = (id: SandboxId, route: string, context: KeyedContext, effect: () => Promise<void>) =>
    runOnce(options.idempotency, { id, route, context }, effect);

  return {
    async read(id, query, context) {
      const operation = await begin(id, context);
      const { path, user, trace } = common(operation, query);
      const { sizeBytes } = await stat(operation, { path, user, followSymlinks: true });
      const { offset = 0, lengthBytes } = query;
      const range = lengthBytes === undefined ? {} : { lengthBytes };
      const expected = Math.min(lengthBytes ?? sizeBytes, Math.max(0, sizeBytes - offset));
      const fields = { path, user, offset, ...range, trace };
      return { sizeBytes, offset, body: readFile(operation, fields, expected, context.signal) };
    },

    async write(id, query, body, bytesExpected, context) {
      const operation = await begin(id, context);
      const { path, user, trace } = common(operation, query);
      const { createParents = false, exclusive = false } = query;
      const fields = { path, user, createParents, exclusive, ...modeOf(query), trace };
      await writeFile(operation, fields, body, bytesExpected, context.signal);
      return entryOf(await stat(operation, { path, user, followSymlinks: true }));
    },

    async stat(id, query, context) {
      const operation = await begin(id, context);
      const { path, user } = common(operation, query);
      const { followSymlinks = true } = query;
      return entryOf(await stat(operation, { path, user, followSymlinks }));
    },

    async list(id, query, context) {
      const operation = await begin(id, context);
      const after = query.cursor;
      const cursor = after === undefined ? {} : { cursor: Buffer.from(after, 'base64url') };
      const { limit: entriesMax = PAGE_ENTRIES } = query;
      const answer = await ask(operation, 'file-list', {
        ...common(operation, query),
        ...{ ...cursor, entriesMax },
      });
      if (answer.type !== 'file-entries')
        throw broken(operation.link, `${answer.type} to file-list`);
      const { entries, cursor: next } = answer.fields;
      if (entries.length > entriesMax) throw broken(operation.link, 'a page is too long');
      return {
        entries: entries.map(entryOf),
        ...(next === undefined ? {} : { cursor: Buffer.from(next).toString('base64url') }),
      };
    },

    async makeDirectory(id, request, context) {
      const operation = await begin(id, context);
      const fields = common(operation, request);
      const { createParents = false } = request;
      await once(id, 'makeDirectory', context, async () => {
        await change(operation, 'file-mkdir', { ...fields, createParents, ...modeOf(request) });
      });
      const { path, user } = fields;
      return entryOf(await stat(operation, { path, user, followSymlinks: true }));
    },

    async move(id, request, context) {
      const operation = await begin(id, context);
      const { source, sourceBase64, target, targetBase64, replace = false } = request;
      const { cwd } = operation.entry.defaults;
      const fields = {
        source: pathOf({ text: source, base64: sourceBase64 }, 'source', cwd),
        target: pathOf({ text: target, base64: targetBase64 }, 'target', cwd),
        ...{ user: userOf(operation, request), replace, trace: operation.trace },
      };
      await once(id, 'moveFile', context, () => change(operation, 'file-move', fields));
    },

    async remove(id, query, context) {
      const operation = await begin(id, context);
      const { recursive = false } = query;
      const fields = { ...common(operation, query), recursive };
      await once(id, 'removeFile', context, () => change(operation, 'file-remove', fields));
    },
  };
}

async function beginOperation(
  { sandboxes, agents, backend, random }: FilesOptions,
  id: SandboxId,
  { signal, traceparent }: OperationContext,
): Promise<Operation> {
  const entry = await sandboxes.requireRunning(id, { signal });
  return {
    entry,
    link: await agents.link(entry.key, signal),
    dial: (dialSignal) => backend.dial(entry.key, dialSignal),
    random,
    trace: traceBytes(traceparent),
    signal,
    onUse: () => sandboxes.touch(entry),
  };
}

/**
 * The effect, unless a request with this key has had it. A key is remembered when the effect is known: where
 * the edge dies in between, a repetition has it again and says what it finds.
 */
async function runOnce(
  idempotency: Idempotency,
  { id, route, context }: { id: SandboxId; route: string; context: KeyedContext },
  effect: () => Promise<void>,
): Promise<void> {
  const { caller, idempotencyKey: key, requestDigest } = context;
  await idempotency.run({ caller, route, sandbox: id, key }, requestDigest, async () => {
    await effect();
    return () => id;
  });
}

interface Named {
  readonly path?: string;
  readonly pathBase64?: string;
  readonly user?: string;
}

function common(operation: Operation, named: Named) {
  const { cwd } = operation.entry.defaults;
  const path = pathOf({ text: named.path, base64: named.pathBase64 }, 'path', cwd);
  return { path, user: userOf(operation, named), trace: operation.trace };
}

function userOf({ entry }: Operation, { user }: Named): string {
  return user ?? entry.defaults.user;
}

function modeOf({ mode }: { readonly mode?: number }): { readonly mode?: number } {
  return mode === undefined ? {} : { mode };
}

async function stat(
  operation: Operation,
  asked: { path: Uint8Array; user: string; followSymlinks: boolean },
) {
  const answer = await ask(operation, 'file-stat', { ...asked, trace: operation.trace });
  if (answer.type === 'file-attributes') return answer.fields;
  throw broken(operation.link, `${answer.type} to file-stat`);
}

async function change<T extends HostFrameType>(
  operation: Operation,
  type: T,
  fields: AgentFields<T>,
): Promise<void> {
  const answer = await ask(operation, type, fields);
  if (answer.type !== 'done') throw broken(operation.link, `${answer.type} to ${type}`);
}

async function ask<T extends HostFrameType>(
  { link, signal }: Operation,
  type: T,
  fields: AgentFields<T>,
): Promise<StreamFrame> {
  try {
    return await link.request(type, fields, signal);
  } catch (thrown) {
    throw fileError(thrown);
  }
}
