import type { FileEntry, FilePage, QueryOf, RouteOf } from '@dsec/protocol';
import type { SandboxId } from '@dsec/std';
import type { OperationContext } from '../operation.ts';
import { broken } from './file-agent.ts';
import { createFileChanges, type FileChanges, type FileChangesOptions } from './file-changes.ts';
import { entryOf, pathToWrite } from './file-names.ts';
import { askAgent, beginFileOperation, commonFields, modeOf, statFile } from './file-operation.ts';
import { readFile } from './read-file.ts';
import { writeFile } from './write-file.ts';

const PAGE_ENTRIES = 256;

export type FilesOptions = FileChangesOptions;

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
export interface Files extends FileChanges {
  read(
    id: SandboxId,
    query: QueryOf<RouteOf<'readFile'>>,
    context: OperationContext,
  ): Promise<FileContent>;
  /** See `writeFile`. `bytesExpected`: how long the body says that it is, if it does. */
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
}

export function createFiles(options: FilesOptions): Files {
  return {
    ...createFileChanges(options),

    async read(id, query, context) {
      const operation = await beginFileOperation(options, id, context);
      const common = commonFields(operation, query);
      const { sizeBytes } = await statFile(operation, common);
      const { offset = 0, lengthBytes } = query;
      const range = lengthBytes === undefined ? { offset } : { offset, lengthBytes };
      const expected = Math.min(lengthBytes ?? sizeBytes, Math.max(0, sizeBytes - offset));
      const body = readFile(operation, { ...common, ...range }, expected, context.signal);
      return { sizeBytes, offset, body };
    },

    async write(id, query, body, bytesExpected, context) {
      const operation = await beginFileOperation(options, id, context);
      const common = commonFields(operation, query, pathToWrite);
      const { createParents = false, exclusive = false } = query;
      const fields = { ...common, createParents, exclusive, ...modeOf(query) };
      await writeFile(operation, fields, body, bytesExpected, context.signal);
      return entryOf(await statFile(operation, common));
    },

    async stat(id, query, context) {
      const operation = await beginFileOperation(options, id, context);
      const common = commonFields(operation, query);
      return entryOf(await statFile(operation, common, query.followSymlinks));
    },

    async list(id, query, context) {
      const operation = await beginFileOperation(options, id, context);
      const { cursor: after, limit: entriesMax = PAGE_ENTRIES } = query;
      const cursor = after === undefined ? {} : { cursor: Buffer.from(after, 'base64url') };
      const fields = { ...commonFields(operation, query), ...cursor, entriesMax };
      const answer = await askAgent(operation, 'file-list', fields);
      if (answer.type !== 'file-entries') {
        throw broken(operation.link, `${answer.type} to file-list`);
      }
      const { entries, cursor: next } = answer.fields;
      if (entries.length > entriesMax) throw broken(operation.link, 'a page is too long');
      return {
        entries: entries.map(entryOf),
        ...(next === undefined ? {} : { cursor: Buffer.from(next).toString('base64url') }),
      };
    },
  };
}
