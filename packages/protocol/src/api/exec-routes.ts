import { execId, integer, sandboxId, sessionId } from '../names.ts';
import { AttachClientMessage, AttachQuery, AttachServerMessage } from './attach.ts';
import {
  Exec,
  ExecPage,
  ExecQuery,
  ExecSpec,
  ExecStarted,
  OutputQuery,
  PtySize,
  Session,
  SessionPage,
  SessionSpec,
  SignalRequest,
  StdinAccepted,
  StdinQuery,
  TimeoutRequest,
} from './exec.ts';
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
  socket,
} from './route.ts';
import { pageQuery } from './sandbox.ts';

const page = params(pageQuery);
const exec = { home: 'edge', operationClass: 'exec' } as const;
const inSandbox = { ...exec, params: params({ sandboxId }), query: none } as const;
const one = { ...exec, params: params({ sandboxId, execId }), query: none } as const;
const session = { ...exec, params: params({ sandboxId, sessionId }), query: none } as const;

export const EXEC_ROUTES = {
  startExec: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/execs', ...inSandbox },
    summary: 'Run a command, and with `waitMs` wait for its end and output.',
    effect: 'keyed',
    body: jsonBody(ExecSpec),
    reply: created(ExecStarted),
  }),
  listExecs: route({
    ...{ method: 'GET', path: '/v1/sandboxes/{sandboxId}/execs', ...inSandbox },
    summary: 'List the commands of a sandbox in the order of their start.',
    effect: 'read',
    query: page,
    body: noBody,
    reply: ok(ExecPage),
  }),
  getExec: route({
    ...{ method: 'GET', path: '/v1/sandboxes/{sandboxId}/execs/{execId}', ...one },
    summary: 'Show a command, or wait for its end.',
    effect: 'read',
    query: ExecQuery,
    body: noBody,
    reply: ok(Exec),
  }),
  readExecOutput: route({
    ...{ method: 'GET', path: '/v1/sandboxes/{sandboxId}/execs/{execId}/output', ...one },
    summary: 'Read output from an absolute offset, and with `follow` go on to its end.',
    effect: 'read',
    query: OutputQuery,
    body: noBody,
    reply: byteReply(['dsec-offset', 'dsec-end']),
  }),
  writeExecStdin: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/execs/{execId}/stdin', ...one },
    summary: 'Write to standard input at an absolute offset; a repetition writes nothing twice.',
    effect: 'idempotent',
    query: StdinQuery,
    body: byteBody,
    reply: ok(StdinAccepted),
  }),
  signalExec: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/execs/{execId}/signal', ...one },
    summary: 'Send a signal to a command.',
    effect: 'keyed',
    body: jsonBody(SignalRequest),
    reply: empty,
  }),
  resizeExec: route({
    ...{ method: 'PUT', path: '/v1/sandboxes/{sandboxId}/execs/{execId}/pty', ...one },
    summary: 'Set the size of the terminal of a command.',
    effect: 'idempotent',
    body: jsonBody(PtySize),
    reply: empty,
  }),
  setExecTimeout: route({
    ...{ method: 'PUT', path: '/v1/sandboxes/{sandboxId}/execs/{execId}/timeout', ...one },
    summary: 'Set or remove the limit on the running time of a command.',
    effect: 'idempotent',
    body: jsonBody(TimeoutRequest),
    reply: empty,
  }),
  attachExec: route({
    ...{ method: 'GET', path: '/v1/sandboxes/{sandboxId}/execs/{execId}/attach', ...one },
    summary: 'A WebSocket for input, output and terminal of a command, from any offset.',
    effect: 'idempotent',
    query: AttachQuery,
    body: noBody,
    reply: socket(AttachClientMessage, AttachServerMessage),
  }),
  openSession: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/sessions', ...inSandbox },
    summary: 'Open a persistent shell, which keeps its directory and variables between commands.',
    effect: 'keyed',
    body: jsonBody(SessionSpec),
    reply: created(Session),
  }),
  listSessions: route({
    ...{ method: 'GET', path: '/v1/sandboxes/{sandboxId}/sessions', ...inSandbox },
    summary: 'List the sessions of a sandbox.',
    effect: 'read',
    query: page,
    body: noBody,
    reply: ok(SessionPage),
  }),
  closeSession: route({
    ...{ method: 'DELETE', path: '/v1/sandboxes/{sandboxId}/sessions/{sessionId}', ...session },
    summary: 'End a session and every process that it has left.',
    effect: 'idempotent',
    body: noBody,
    reply: empty,
  }),
  connectPort: route({
    ...{ method: 'GET', path: '/v1/sandboxes/{sandboxId}/ports/{port}/connect' },
    ...{ home: 'edge', operationClass: 'ports', effect: 'idempotent' },
    summary:
      'A WebSocket whose binary messages are the bytes of a connection to a port inside; an empty one ends ' +
      'a direction.',
    params: params({ sandboxId, port: integer(1, 65_535) }),
    query: none,
    body: noBody,
    reply: socket(undefined, undefined),
  }),
} as const;
