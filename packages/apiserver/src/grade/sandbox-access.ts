/** What grading needs of one sandbox, by the routes of its edge; all that comes back is a stranger's data. */
import { Readable } from 'node:stream';
import type { Identity } from '@dsec/iam';
import {
  type Exec,
  type ExecSpec,
  type FileEntry,
  formatTarget,
  type ParamsOf,
  type QueryOf,
  ROUTES,
  type Route,
} from '@dsec/protocol';
import { DsecError, MIB } from '@dsec/std';
import type { EdgeLink } from '../fleet/edge-link.ts';
import { successOf } from '../fleet/edge-link.ts';

export interface SandboxAccess {
  /** Without following a link; undefined where there is nothing. */
  stat(path: string): Promise<FileEntry | undefined>;
  list(path: string): AsyncGenerator<FileEntry>;
  /** At most so many bytes from the beginning. */
  read(path: string, lengthBytes: number): Promise<AsyncIterable<Uint8Array>>;
  /** Runs a command to its end, with what it is given on standard input. */
  run(spec: ExecSpec, input?: AsyncIterable<Uint8Array>): Promise<Exec>;
  /** The end of what a command has written, at most so many bytes. */
  output(exec: Exec, stream: 'stdout' | 'stderr', bytesMax: number): Promise<Buffer>;
}

/** Nothing that the image says of users is asked. */
const ROOT = '0:0';
const PAGE = 1000;
const WAIT_MS = 30_000;

export function createSandboxAccess(
  link: EdgeLink,
  sandboxId: string,
  holder: Identity,
  signal: AbortSignal,
): SandboxAccess {
  const params = { sandboxId };
  const stream = <R extends Route>(
    route: R,
    into: ParamsOf<R>,
    query: QueryOf<R>,
    body?: Readable,
  ) => sendStream(link, { route, params: into, query, body, sandboxId }, holder, signal);
  const options = { holder, signal };
  const wait = async (exec: Exec): Promise<Exec> => {
    let current = exec;
    while (current.state === 'starting' || current.state === 'running') {
      const input = { params: { ...params, execId: exec.id }, query: { waitMs: WAIT_MS } };
      current = await link.call(ROUTES.getExec, input, options);
    }
    return current;
  };
  return {
    async stat(path) {
      try {
        const query = { path, user: ROOT, followSymlinks: false };
        return await link.call(ROUTES.statFile, { params, query }, options);
      } catch (thrown) {
        if ((thrown as DsecError).code === 'not-found') return undefined;
        throw thrown;
      }
    },
    async *list(path) {
      let cursor: string | undefined;
      do {
        const query = {
          path,
          user: ROOT,
          limit: PAGE,
          ...(cursor === undefined ? {} : { cursor }),
        };
        const page = await link.call(ROUTES.listFiles, { params, query }, options);
        yield* page.entries;
        ({ cursor } = page);
      } while (cursor !== undefined);
    },
    async read(path, lengthBytes) {
      const query = { path, user: ROOT, offset: 0, lengthBytes };
      return (await stream(ROUTES.readFile, params, query)).pieces();
    },
    async run(spec, input) {
      const body = { ...spec, ...(input === undefined ? {} : { stdin: true }) };
      const { exec } = await link.call(ROUTES.startExec, { params, body }, options);
      if (input !== undefined) {
        const query = { offset: 0, end: true };
        const source = Readable.from(input, { objectMode: false });
        const into = { ...params, execId: exec.id };
        const reply = await stream(ROUTES.writeExecStdin, into, query, source);
        await reply.read(MIB);
      }
      return wait(exec);
    },
    async output(exec, name, bytesMax) {
      const { totalBytes } = exec[name];
      const query = { stream: name, offset: Math.max(0, totalBytes - bytesMax) } as const;
      const reply = await stream(ROUTES.readExecOutput, { ...params, execId: exec.id }, query);
      return reply.read(bytesMax);
    },
  };
}

interface StreamRequest<R extends Route> {
  readonly route: R;
  readonly params: ParamsOf<R>;
  readonly query: QueryOf<R>;
  readonly body: Readable | undefined;
  readonly sandboxId: string;
}

async function sendStream<R extends Route>(
  link: EdgeLink,
  { route, params, query, body, sandboxId }: StreamRequest<R>,
  holder: Identity,
  signal: AbortSignal,
) {
  const { operationClass, method } = route;
  if (operationClass === 'none') throw new DsecError('internal', 'an open route needs no ticket');
  const target = formatTarget(route, params, query);
  const bound = { operationClass, method, target, sandbox: sandboxId, isStream: true };
  const type = body === undefined ? {} : { 'content-type': 'application/octet-stream' };
  const headers = { ...link.sign(bound, holder), ...type };
  const reply = await link.http.send({ method, target, headers, body, signal });
  return { ...(await successOf(reply)), pieces: () => reply.open() };
}
