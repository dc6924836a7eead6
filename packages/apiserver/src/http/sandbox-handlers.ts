import { DsecError } from '@dsec/std';
import { type Call, sha256Of } from '@dsec/transport';
import type { Children } from '../agents/children.ts';
import { listOwn } from '../agents/list-own.ts';
import type { CreateBatch } from '../create/batch.ts';
import type { CreateSandbox } from '../create/create.ts';
import type { CreateContext } from '../create/send-create.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { listSandboxes } from '../list-sandboxes.ts';
import type { ApiHandlers } from './handlers.ts';
import { identityOf, type Visitor } from './key-authorizer.ts';

export interface SandboxHandlersOptions {
  readonly create: CreateSandbox;
  readonly batch: CreateBatch;
  readonly fleet: Fleet;
  readonly children: Pick<Children, 'list'>;
}

type SandboxOperation =
  | 'createSandbox'
  | 'createSandboxes'
  | 'listSandboxes'
  | 'listSnapshots'
  | 'getSnapshot'
  | 'removeSnapshot'
  | 'branchSnapshot';

export function createSandboxHandlers({
  create,
  batch,
  fleet,
  children,
}: SandboxHandlersOptions): Pick<ApiHandlers, SandboxOperation> {
  return {
    createSandbox: ({ body }, call) => create(body, contextOf(call)),
    createSandboxes: ({ body }, call) => batch(body, contextOf(call)),
    listSandboxes: ({ query }, call) => {
      const identity = identityOf(call.principal);
      const list = identity.limits === undefined ? listSandboxes : listOwn(children);
      return list(fleet, query, identity, call.signal);
    },
    listSnapshots: refuseSnapshots,
    getSnapshot: refuseSnapshots,
    removeSnapshot: refuseSnapshots,
    branchSnapshot: refuseSnapshots,
  };
}

function contextOf(call: Call<Visitor>): CreateContext {
  const { idempotencyKey, bodyDigest = sha256Of(''), requestId, traceparent, signal } = call;
  const identity = identityOf(call.principal);
  return { identity, idempotencyKey, bodyDigest, requestId, traceparent, signal };
}

async function refuseSnapshots(): Promise<never> {
  throw new DsecError('unsupported', 'no edge takes snapshots yet');
}
