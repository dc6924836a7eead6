import { sandboxId } from '../names.ts';
import {
  DirectoryCreate,
  FileEntry,
  FileListQuery,
  FileMove,
  FilePage,
  FileReadQuery,
  FileRemoveQuery,
  FileStatQuery,
  FileWriteQuery,
} from './file.ts';
import {
  byteBody,
  byteReply,
  created,
  empty,
  jsonBody,
  noBody,
  none,
  ok,
  params,
  route,
} from './route.ts';

const inSandbox = { home: 'edge', params: params({ sandboxId }) } as const;
const read = { operationClass: 'files:read', effect: 'read', body: noBody, ...inSandbox } as const;
const write = { operationClass: 'files:write', ...inSandbox } as const;

export const FILE_ROUTES = {
  readFile: route({
    ...{ method: 'GET', path: '/v1/sandboxes/{sandboxId}/files/content', ...read },
    summary: 'Read or download a file of any size.',
    query: FileReadQuery,
    reply: byteReply(['dsec-offset', 'dsec-size-bytes']),
  }),
  writeFile: route({
    ...{ method: 'PUT', path: '/v1/sandboxes/{sandboxId}/files/content', ...write },
    summary: 'Write or upload a file of any size, as a whole.',
    effect: 'idempotent',
    query: FileWriteQuery,
    body: byteBody,
    reply: ok(FileEntry),
  }),
  statFile: route({
    ...{ method: 'GET', path: '/v1/sandboxes/{sandboxId}/files/stat', ...read },
    summary: 'Show what a path names.',
    query: FileStatQuery,
    reply: ok(FileEntry),
  }),
  listFiles: route({
    ...{ method: 'GET', path: '/v1/sandboxes/{sandboxId}/files', ...read },
    summary: 'List a directory, page by page.',
    query: FileListQuery,
    reply: ok(FilePage),
  }),
  makeDirectory: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/files/directory', ...write },
    summary: 'Make a directory; one that is there already is fine with `createParents`.',
    effect: 'keyed',
    query: none,
    body: jsonBody(DirectoryCreate),
    reply: created(FileEntry),
  }),
  moveFile: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/files/move', ...write },
    summary: 'Rename a file or directory.',
    effect: 'keyed',
    query: none,
    body: jsonBody(FileMove),
    reply: empty,
  }),
  removeFile: route({
    ...{ method: 'DELETE', path: '/v1/sandboxes/{sandboxId}/files', ...write },
    summary: 'Remove a file, or with `recursive` a directory and all below it.',
    effect: 'keyed',
    query: FileRemoveQuery,
    body: noBody,
    reply: empty,
  }),
} as const;
