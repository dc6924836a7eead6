import type { AgentFields, HostFrameType } from '@dsec/backend';
import type { BodyOf, FileEntry, QueryOf, RouteOf } from '@dsec/protocol';
import { MINUTE_MS, type SandboxId } from '@dsec/std';
import { crashPoint } from '../crash-point.ts';
import type { Idempotency } from '../journal/idempotency.ts';
import type { KeyedContext } from '../operation.ts';
import { broken, FILE_REFUSALS } from './file-agent.ts';
import { entryOf, pathToWrite } from './file-names.ts';
import {
  askAgent,
  beginFileOperation,
  commonFields,
  type FileOperation,
  type FileOperationParts,
  modeOf,
  statFile,
  userOf,
} from './file-operation.ts';

/** Longer than the removal of the largest tree takes. */
const CHANGE_MS = 15 * MINUTE_MS;

export interface FileChangesOptions extends FileOperationParts {
  readonly idempotency: Idempotency;
}

/** Changes that are no longer the same when they are done twice. */
export interface FileChanges {
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

export function createFileChanges(options: FileChangesOptions): FileChanges {
  /**
   * Has the agent do it, unless a request with this key has. A repetition may wait for it, so that it goes
   * on when its caller goes. The agent knows no keys, so that one whose answer got lost stays undecided.
   */
  const change = async <T extends HostFrameType>(
    route: string,
    { entry, link }: FileOperation,
    { caller, idempotencyKey: key, requestDigest, signal: callerSignal }: KeyedContext,
    [type, fields]: readonly [T, AgentFields<T>],
  ) => {
    const scope = { caller, route, sandbox: entry.id, key };
    await options.idempotency.attempt(scope, requestDigest, FILE_REFUSALS, async () => {
      crashPoint('change.after-intent');
      const signal = key === undefined ? callerSignal : undefined;
      const answer = await askAgent({ link, signal }, type, fields, CHANGE_MS);
      if (answer.type !== 'done') throw broken(link, `${answer.type} to ${type}`);
      crashPoint('change.after-answer');
    });
  };

  return {
    async makeDirectory(id, request, context) {
      const operation = await beginFileOperation(options, id, context);
      const common = commonFields(operation, request, pathToWrite);
      const { createParents = false } = request;
      const fields = { ...common, createParents, ...modeOf(request) };
      await change('makeDirectory', operation, context, ['file-mkdir', fields]);
      return entryOf(await statFile(operation, common));
    },
    async move(id, request, context) {
      const operation = await beginFileOperation(options, id, context);
      const { source, sourceBase64, target, targetBase64, replace = false } = request;
      const { cwd } = operation.entry.defaults;
      const fields = {
        source: pathToWrite({ text: source, base64: sourceBase64 }, 'source', cwd),
        target: pathToWrite({ text: target, base64: targetBase64 }, 'target', cwd),
        ...{ user: userOf(operation, request), replace, trace: operation.trace },
      };
      await change('moveFile', operation, context, ['file-move', fields]);
    },
    async remove(id, query, context) {
      const operation = await beginFileOperation(options, id, context);
      const { recursive = false } = query;
      const fields = { ...commonFields(operation, query, pathToWrite), recursive };
      await change('removeFile', operation, context, ['file-remove', fields]);
    },
  };
}
