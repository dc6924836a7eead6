import type { Backend } from '@dsec/backend';
import type {
  NetworkUpdate,
  Sandbox,
  SandboxCreate,
  Stage,
  StageSwitch,
  Ttl,
} from '@dsec/protocol';
import { DsecError, isEndState, type SandboxId } from '@dsec/std';
import type { WatchedPaths } from '../audit/watched-paths.ts';
import type { KeyedContext, OperationContext } from '../operation.ts';
import type { SandboxEntry, Sandboxes } from '../sandboxes.ts';
import { contextOf, type EdgeHandlers, keyedContextOf } from './handlers.ts';
import { listPage } from './sandbox-list.ts';
import { callerOfVisitor, entryOfVisitor } from './ticket-authorizer.ts';

/** What the routes need of the lifecycle. */
export interface SandboxLifecycle {
  /** Resolves when it is allocated or ready, as the request says. */
  create(
    request: SandboxCreate,
    context: KeyedContext & { readonly sandboxId?: SandboxId | undefined },
  ): Promise<SandboxEntry>;
  /** Each resolves when the sandbox is there; one that is there already is fine. */
  stop(entry: SandboxEntry, context: OperationContext): Promise<void>;
  pause(entry: SandboxEntry, context: OperationContext): Promise<void>;
  resume(entry: SandboxEntry, context: OperationContext): Promise<void>;
  renew(entry: SandboxEntry, ttl: Ttl, context: OperationContext): Promise<void>;
  setStage(
    entry: SandboxEntry,
    stage: Stage,
    mayLoosen: boolean,
    context: OperationContext,
  ): Promise<void>;
  /** Resolves when nothing is open but what the new rules open. */
  updateNetwork(
    entry: SandboxEntry,
    update: NetworkUpdate,
    context: OperationContext,
  ): Promise<void>;
}

export interface SandboxHandlersOptions {
  readonly sandboxes: Sandboxes;
  readonly lifecycle: SandboxLifecycle;
  readonly watchedPaths: Pick<WatchedPaths, 'check'>;
  readonly backend: Pick<Backend, 'stats'>;
}

type SandboxOperation =
  | 'createSandbox'
  | 'listSandboxes'
  | 'getSandbox'
  | 'stopSandbox'
  | 'pauseSandbox'
  | 'resumeSandbox'
  | 'renewSandbox'
  | 'setSandboxStage'
  | 'loosenSandboxStage'
  | 'updateNetwork';

export function createSandboxHandlers({
  sandboxes,
  lifecycle,
  watchedPaths,
  backend,
}: SandboxHandlersOptions): Pick<EdgeHandlers, SandboxOperation> {
  const changed =
    (change: (entry: SandboxEntry, context: OperationContext) => Promise<void>) =>
    async (_input: unknown, call: Parameters<EdgeHandlers['stopSandbox']>[1]) => {
      const entry = entryOfVisitor(call.principal);
      await change(entry, contextOf(call));
      return sandboxes.view(entry);
    };
  const switched =
    (mayLoosen: boolean) =>
    async (
      { body }: { readonly body: StageSwitch },
      call: Parameters<EdgeHandlers['stopSandbox']>[1],
    ) => {
      const entry = entryOfVisitor(call.principal);
      await lifecycle.setStage(entry, body.stage, mayLoosen, contextOf(call));
      return sandboxes.view(entry);
    };
  return {
    createSandbox: async ({ body }, call) =>
      sandboxes.view(
        await lifecycle.create(body, { ...keyedContextOf(call), sandboxId: call.principal.newId }),
      ),
    async listSandboxes({ query }, call) {
      const { project } = callerOfVisitor(call.principal);
      const { entries, cursor } = listPage(sandboxes.list(), query, project);
      const page = entries.map((entry) => sandboxes.view(entry));
      return { sandboxes: page, ...(cursor === undefined ? {} : { cursor }) };
    },
    async getSandbox({ query: { afterRevision, waitMs } }, call) {
      const entry = entryOfVisitor(call.principal);
      if (afterRevision !== undefined && waitMs !== undefined) {
        await sandboxes.waitForChange(entry, afterRevision, waitMs, call.signal);
      }
      return withUsage(sandboxes.view(entry), entry, backend);
    },
    stopSandbox: changed(async (entry, context) => {
      await watchedPaths.check(entry.id);
      await lifecycle.stop(entry, context);
    }),
    pauseSandbox: changed((entry, context) => lifecycle.pause(entry, context)),
    resumeSandbox: changed((entry, context) => lifecycle.resume(entry, context)),
    setSandboxStage: switched(false),
    loosenSandboxStage: switched(true),
    async renewSandbox({ body }, call) {
      const entry = entryOfVisitor(call.principal);
      await lifecycle.renew(entry, body, contextOf(call));
      return sandboxes.view(entry);
    },
    async updateNetwork({ body }, call) {
      const entry = entryOfVisitor(call.principal);
      await lifecycle.updateNetwork(entry, body, contextOf(call));
      return sandboxes.view(entry);
    },
  };
}

/** Looking does not resume a sandbox, and one that ends meanwhile is shown without its usage. */
async function withUsage(
  sandbox: Sandbox,
  entry: SandboxEntry,
  backend: Pick<Backend, 'stats'>,
): Promise<Sandbox> {
  if (isEndState(entry.state) || entry.runtime === undefined) return sandbox;
  try {
    return { ...sandbox, usage: await backend.stats(entry.key) };
  } catch (thrown) {
    if (thrown instanceof DsecError && thrown.code !== 'internal') return sandbox;
    throw thrown;
  }
}
