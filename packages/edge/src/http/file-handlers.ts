import type { SandboxId } from '@dsec/std';
import type { Call } from '@dsec/transport';
import type { Files } from '../files/files.ts';
import type { Ports } from '../ports/ports.ts';
import { contextOf, type EdgeHandlers, keyedContextOf } from './handlers.ts';
import { entryOfVisitor, type Visitor } from './ticket-authorizer.ts';

type FileOperation =
  | 'readFile'
  | 'writeFile'
  | 'statFile'
  | 'listFiles'
  | 'makeDirectory'
  | 'moveFile'
  | 'removeFile'
  | 'connectPort';

export function createFileHandlers(files: Files, ports: Ports): Pick<EdgeHandlers, FileOperation> {
  return {
    async readFile({ query }, call) {
      const content = await files.read(sandboxOf(call), query, contextOf(call));
      const headers = {
        'dsec-offset': String(content.offset),
        'dsec-size-bytes': String(content.sizeBytes),
      };
      return { headers, body: content.body };
    },
    writeFile: ({ query, body }, call) =>
      files.write(sandboxOf(call), query, body, lengthOf(call), contextOf(call)),
    statFile: ({ query }, call) => files.stat(sandboxOf(call), query, contextOf(call)),
    listFiles: ({ query }, call) => files.list(sandboxOf(call), query, contextOf(call)),
    makeDirectory: ({ body }, call) =>
      files.makeDirectory(sandboxOf(call), body, keyedContextOf(call)),
    async moveFile({ body }, call) {
      await files.move(sandboxOf(call), body, keyedContextOf(call));
      return undefined;
    },
    async removeFile({ query }, call) {
      await files.remove(sandboxOf(call), query, keyedContextOf(call));
      return undefined;
    },
    connectPort: ({ params: { port } }, call, channel) =>
      ports.connect(sandboxOf(call), port, channel, contextOf(call)),
  };
}

function sandboxOf(call: Call<Visitor>): SandboxId {
  return entryOfVisitor(call.principal).id;
}

/** What the body says of its own length; the parser of HTTP has checked the form. */
function lengthOf({ headers }: Call<Visitor>): number | undefined {
  const length = headers['content-length'];
  return length === undefined ? undefined : Number(length);
}
