import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { asDsecError, DsecError } from '@dsec/std';
import type { NameRule } from '../rules/compiled.ts';
import type { FlowTarget } from './flows.ts';
import type { HttpConnection } from './http-connection.ts';
import { withoutHeader } from './request-target.ts';
import { type Upstreams, upstreamDenial } from './upstreams.ts';

export interface Outgoing {
  readonly request: IncomingMessage;
  readonly connection: HttpConnection;
  readonly target: FlowTarget;
  readonly path: string;
  readonly headers: readonly string[];
}

/** Sends a request out, with its body as it comes; resolves with the head of the answer. */
export async function sendOut(outgoing: Outgoing, upstreams: Upstreams): Promise<IncomingMessage> {
  const { request, connection } = outgoing;
  const headers = [...outgoing.headers, 'Connection', 'close'];
  const { out, failure } = await openRequest({ ...outgoing, headers }, upstreams);
  const answered = new Promise<IncomingMessage>((resolve) => {
    out.once('response', (answer) => {
      answer.on('error', () => undefined);
      answer.once('close', () => answer.socket.destroy());
      resolve(answer);
    });
  });
  request.on('data', (chunk: Buffer) => connection.flow.count('up', chunk.length));
  // Without a header that frames it a body would be read as another request.
  if (isFramed(headers)) request.pipe(out);
  else out.end();
  request.once('close', () => {
    if (!request.complete) out.destroy();
  });
  return Promise.race([answered, failure]);
}

const isFramed = (headers: readonly string[]) =>
  headers.some((name, i) => i % 2 === 0 && /^(content-length|transfer-encoding)$/i.test(name));

export interface OpenRequest {
  readonly out: ClientRequest;
  /** Rejects with `unavailable` when the request can have no answer any more. Need not be waited for. */
  readonly failure: Promise<never>;
}

/** A request on a connection of its own: nothing outside is shared by two requests of anybody. */
export async function openRequest(outgoing: Outgoing, upstreams: Upstreams): Promise<OpenRequest> {
  const { request, connection, target, path, headers } = outgoing;
  const credentials = injected(target.rule, connection, headers);
  const { flow, isTls } = connection;
  const opening = isTls ? upstreams.openTls(flow, target) : upstreams.openPlain(flow, target);
  const socket = await opening.catch((thrown) => {
    const error = asDsecError(thrown);
    if (error.code === 'permission-denied') {
      connection.deny(upstreamDenial(error), target.name, target.port);
    }
    throw error;
  });
  const out = httpRequest({
    ...{ method: request.method ?? 'GET', path, headers: credentials, setHost: false },
    // Without an agent Node takes this connection or none. Were it to make one, it would lead nowhere.
    ...{ createConnection: () => socket, host: 'no-host.invalid' },
  });
  // An error may come before anybody could wait for it, so it is caught where the request is made.
  const failure = new Promise<never>((_, reject) => {
    const fail = (cause?: unknown) =>
      reject(new DsecError('unavailable', `${target.name} did not answer`, { cause }));
    out.on('error', fail);
    out.once('close', () => fail());
  });
  failure.catch(() => undefined);
  return { out, failure };
}

/** The headers with the credential that the rule adds, instead of whatever stood there. */
function injected(
  { inject }: NameRule,
  connection: HttpConnection,
  headers: readonly string[],
): string[] {
  if (inject === undefined) return [...headers];
  const value = connection.secret(inject.secret);
  if (value === undefined || !/^[\x20-\x7e]+$/.test(value)) {
    throw new DsecError('unavailable', `the node has no usable secret ${inject.secret}`);
  }
  return [...withoutHeader(headers, inject.header), inject.header, value];
}
