/** From a request to a sandbox whose creation is under way: settled, admitted, and in the journal. */
import type { BackendReport } from '@dsec/backend';
import type { ResolvedEnvironment } from '@dsec/layers';
import type { SandboxCreate } from '@dsec/protocol';
import {
  DsecError,
  type EdgeId,
  newSandboxId,
  orAborted,
  parseSandboxId,
  type Random,
  type SandboxId,
  type ShardId,
} from '@dsec/std';
import { crashPoint } from '../crash-point.ts';
import type { Idempotency } from '../journal/idempotency.ts';
import type { SandboxRow } from '../journal/sandbox-table.ts';
import type { NodeNetwork } from '../network/network.ts';
import type { KeyedContext } from '../operation.ts';
import type { NodePolicies } from '../policy/node-policies.ts';
import {
  checkCreate,
  isNetworked,
  type NodePolicy,
  type SettledSandbox,
  settleSpec,
} from '../settle-spec.ts';
import { startCreation, throwIfNeverBorn } from './birth.ts';
import type { Deadlines } from './deadlines.ts';
import type { Ends } from './end.ts';
import type { LiveSandbox } from './live-sandbox.ts';
import { namesNetwork } from './network-rules.ts';
import type { LifecycleParts } from './parts.ts';

/** Names to layers. */
export interface EnvironmentSource {
  /** The layers of a named environment; `not-found`. */
  layersOf(name: string): Promise<readonly string[]>;
  resolve(refs: readonly string[]): Promise<ResolvedEnvironment>;
}

export interface CreationOptions {
  readonly edgeId: EdgeId;
  readonly shardId: ShardId;
  readonly random: Random;
  readonly idempotency: Idempotency;
  readonly environments: EnvironmentSource;
  readonly policy: NodePolicy;
  readonly report: BackendReport;
  readonly network: NodeNetwork;
  readonly policies: NodePolicies;
}

export interface CreateContext extends KeyedContext {
  /** Of the ticket, where an apiserver has chosen it. */
  readonly sandboxId?: SandboxId | undefined;
}

/** See `Lifecycle.create`. */
export function createCreation(
  parts: LifecycleParts,
  options: CreationOptions,
  followers: { readonly ends: Ends; readonly deadlines: Deadlines },
): (request: SandboxCreate, context: CreateContext) => Promise<LiveSandbox> {
  const { registry, clock } = parts;
  const begin = (settled: SettledSandbox, context: CreateContext, requestedMs: number) => {
    const { key } = settled.plan;
    parts.admission.check();
    const slot = parts.slots.next();
    const row = rowOf(settled, slot, context, parts, clock.monotonicMs() - requestedMs);
    const sandbox = registry.insert(row, slot);
    parts.slots.taken(slot);
    parts.journal.afterCommit(() => {
      crashPoint('create.after-intent');
      parts.admission.add(key.id);
      sandbox.requestedMonotonicMs = requestedMs;
      startCreation(sandbox, parts, followers);
    });
    return key.id;
  };
  return async (request, context) => {
    const requestedMs = clock.monotonicMs();
    const { caller, idempotencyKey: key, requestDigest } = context;
    const { id } = await options.idempotency.run(
      { caller, route: 'createSandbox', key },
      requestDigest,
      async () => {
        parts.closing.throwIfAborted();
        const settled = await settle(request, context, options);
        parts.admission.check();
        crashPoint('create.before-intent');
        return () => begin(settled, context, requestedMs);
      },
    );
    const sandbox = registry.get(id as SandboxId);
    if (request.waitFor !== 'allocated' && sandbox.state === 'creating') {
      await orAborted(sandbox.born ?? Promise.resolve(), context.signal);
    }
    throwIfNeverBorn(sandbox);
    return sandbox;
  };
}

async function settle(
  asked: SandboxCreate,
  context: CreateContext,
  options: CreationOptions,
): Promise<SettledSandbox> {
  const { environments, report: backend, policy } = options;
  const create = withPolicyNetwork(asked, options);
  checkCreate(create, backend, options.network);
  const refs = create.layers ?? (await environments.layersOf(create.environment ?? ''));
  const environment = await environments.resolve(refs);
  const id = sandboxIdOf(context.sandboxId, options);
  const { policies } = options;
  return settleSpec({ id, create, caller: context.caller, environment, backend, policy, policies });
}

/** The rules of its policy are those of its network, unless it names some itself. */
function withPolicyNetwork(create: SandboxCreate, { policies }: CreationOptions): SandboxCreate {
  if (create.policy === undefined) return create;
  const { stage, allowDegraded = false } = create;
  const asked = { choice: create.policy, stage, hasTools: create.grading === true, allowDegraded };
  const { network } = policies.settle(asked);
  if (create.network !== undefined && (network.length > 0 || namesNetwork(create.policy))) {
    throw new DsecError(
      'invalid-argument',
      'the policy has network rules already: name them once',
      {
        details: { field: 'network', other: 'policy.network' },
      },
    );
  }
  return network.length === 0 ? create : { ...create, network: [...network] };
}

function sandboxIdOf(given: SandboxId | undefined, options: CreationOptions): SandboxId {
  const { shardId, edgeId, random } = options;
  if (given === undefined) return newSandboxId(shardId, edgeId, random);
  const { shard, edge } = parseSandboxId(given);
  if (shard === shardId && edge === edgeId) return given;
  throw new DsecError('invalid-argument', `the sandbox id ${given} is of another edge`);
}

function rowOf(
  settled: SettledSandbox,
  slot: number,
  { caller }: CreateContext,
  { clock, journal, network }: LifecycleParts,
  allocatedMs: number,
): SandboxRow {
  const { spec, layers, plan, defaults, ttl } = settled;
  const { project, principal } = caller;
  const bootMs = clock.bootMs();
  const link = isNetworked(spec) ? { network: network.linkOf(slot) } : {};
  return {
    ...{ id: plan.key.id, bootId: journal.bootId, state: 'creating', revision: 1 },
    fixed: {
      ...{ project, principal, job: spec.job as SandboxRow['fixed']['job'], spec, layers },
      ...{ plan: { ...plan, slot, ...link }, defaults, createdAtMs: clock.wallMs() },
    },
    moving: {
      ...{ generation: plan.key.generation, ttl, timings: { allocatedMs } },
      lifetimeEndsBootMs: ttl.lifetimeMs === undefined ? undefined : bootMs + ttl.lifetimeMs,
    },
    ...{ sequenceReserved: 0, lastUsedBootMs: bootMs },
  };
}
