/** Calls an edge over its unix socket, with a ticket for each request, as a caller of the public API. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import {
  formatTarget,
  isStreamRoute,
  ROUTES,
  type Route,
  SANDBOX_HEADER,
  type SandboxLimits,
  STREAM_HEADER,
  TICKET_HEADER,
} from '@dsec/protocol';
import { type EdgeId, newSandboxId, type SandboxId, type ShardId } from '@dsec/std';
import {
  type CallInput,
  type CallReply,
  callRoute,
  createHttpClient,
  type HttpClient,
  newStreamId,
  newTicketClaims,
  sha256Of,
  signTicket,
} from '@dsec/transport';
import type { LifeTimes } from '../lives.ts';
import { PRINCIPAL, PROJECT, type StdoutInput, TRUE, writeBlocks } from './edge-driver.ts';

export interface TicketKeys {
  readonly keyId: string;
  /** PEM. */
  readonly publicKey: string;
  readonly privateKey: ReturnType<typeof generateKeyPairSync>['privateKey'];
}

export function newTicketKeys(): TicketKeys {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  return { keyId: 'bench', publicKey: pem, privateKey };
}

export interface EdgeClientOptions {
  readonly socketPath: string;
  readonly edgeId: EdgeId;
  readonly shardId: ShardId;
  readonly layers: readonly string[];
  readonly limits: Partial<SandboxLimits>;
  readonly keys: TicketKeys;
}

export interface EdgeClient {
  live(): Promise<LifeTimes>;
  /** Milliseconds of one `true`. */
  trueMs(sandbox: SandboxId): Promise<number>;
  /** Starts a program that writes much and reads all of it; milliseconds until the last byte. */
  readStdoutMs(sandbox: SandboxId, input: StdoutInput): Promise<number>;
  close(): Promise<void>;
}

const TICKET_MS = 20_000;
const DEADLINE_MS = 120_000;

type Caller = <R extends Route>(
  route: R,
  sandbox: SandboxId,
  input: CallInput<R>,
) => Promise<CallReply<R>>;

/** Calls with a ticket for just that request. */
function createCaller(client: HttpClient, { edgeId, keys }: EdgeClientOptions): Caller {
  const holder = { edge: edgeId, project: PROJECT, principal: PRINCIPAL };
  return (route, sandbox, input) => {
    const { params = {}, query = {}, body } = input as Record<string, never>;
    const target = formatTarget(route, params as never, query as never);
    const streamId = isStreamRoute(route) ? newStreamId() : undefined;
    const request = {
      ...{ sandbox, operationClass: route.operationClass as never, method: route.method, target },
      ...{ streamId, bodyDigest: body === undefined ? undefined : sha256Of(JSON.stringify(body)) },
    };
    const claims = newTicketClaims(request, holder, TICKET_MS);
    const headers = {
      [TICKET_HEADER]: signTicket(claims, keys.privateKey, keys.keyId),
      ...(route === (ROUTES.createSandbox as Route) ? { [SANDBOX_HEADER]: sandbox } : {}),
      ...(streamId === undefined ? {} : { [STREAM_HEADER]: streamId }),
    };
    const key = route.effect === 'keyed' ? { idempotencyKey: randomBytes(16).toString('hex') } : {};
    return callRoute(client, route, input, { ...key, headers });
  };
}

export function createEdgeClient(options: EdgeClientOptions): EdgeClient {
  const { socketPath, edgeId, shardId } = options;
  const client = createHttpClient({
    ...{ baseUrl: 'http://localhost', socketPath, deadlineMs: DEADLINE_MS },
  });
  const call = createCaller(client, options);
  const start = (sandboxId: SandboxId, body: typeof TRUE) =>
    call(ROUTES.startExec, sandboxId, { params: { sandboxId }, body });
  const runTrue = async (sandbox: SandboxId) => {
    const { exec } = await start(sandbox, TRUE);
    if (exec.exit?.exitCode !== 0) throw new Error(`true: ${JSON.stringify(exec)}`);
  };
  return {
    async live() {
      const sandboxId = newSandboxId(shardId, edgeId);
      const started = performance.now();
      const { timings } = await call(ROUTES.createSandbox, sandboxId, {
        body: { layers: [...options.layers], limits: options.limits },
      });
      const readyMs = performance.now() - started;
      await runTrue(sandboxId);
      const firstCommandMs = performance.now() - started;
      await call(ROUTES.stopSandbox, sandboxId, { params: { sandboxId } });
      const stopMs = performance.now() - started - firstCommandMs;
      return { allocatedMs: timings.allocatedMs, readyMs, firstCommandMs, stopMs };
    },
    async trueMs(sandbox) {
      const started = performance.now();
      await runTrue(sandbox);
      return performance.now() - started;
    },
    async readStdoutMs(sandboxId, input) {
      const started = performance.now();
      const { waitMs: _, ...spec } = writeBlocks(input);
      const { exec } = await start(sandboxId, spec);
      const { body } = await call(ROUTES.readExecOutput, sandboxId, {
        params: { sandboxId, execId: exec.id },
        query: { follow: true },
      });
      let bytes = 0;
      for await (const piece of body) bytes += piece.byteLength;
      if (bytes !== input.bytes) throw new Error(`${bytes} of ${input.bytes} bytes came`);
      return performance.now() - started;
    },
    close: () => client.close(),
  };
}
