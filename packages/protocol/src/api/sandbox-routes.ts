import { sandboxId, snapshotId } from '../names.ts';
import { StageSwitch } from './policy.ts';
import { created, empty, jsonBody, lines, noBody, none, ok, params, route } from './route.ts';
import {
  NetworkUpdate,
  Sandbox,
  SandboxBatchCreate,
  SandboxBatchItem,
  SandboxCreate,
  SandboxListQuery,
  SandboxPage,
  SandboxQuery,
  Ttl,
} from './sandbox.ts';
import {
  BranchCreate,
  PackDiffRequest,
  PackDiffResult,
  RollbackRequest,
  Snapshot,
  SnapshotCreate,
  SnapshotListQuery,
  SnapshotPage,
} from './snapshot.ts';

const one = { params: params({ sandboxId }), query: none, home: 'edge' } as const;
const write = { operationClass: 'sandboxes:write' } as const;
const read = { operationClass: 'sandboxes:read', effect: 'read', body: noBody } as const;
const snapshotOne = { params: params({ snapshotId }), query: none, home: 'apiserver' } as const;

export const SANDBOX_ROUTES = {
  createSandbox: route({
    ...{ method: 'POST', path: '/v1/sandboxes', home: 'both', effect: 'keyed', ...write },
    summary: 'Create a sandbox, and wait until it is allocated or (default) ready.',
    params: none,
    query: none,
    body: jsonBody(SandboxCreate),
    reply: created(Sandbox),
  }),
  createSandboxes: route({
    ...{
      method: 'POST',
      path: '/v1/sandbox-batches',
      home: 'apiserver',
      effect: 'keyed',
      ...write,
    },
    summary: 'Create many sandboxes of one kind; each is told as it becomes ready.',
    params: none,
    query: none,
    body: jsonBody(SandboxBatchCreate),
    reply: lines(SandboxBatchItem),
  }),
  listSandboxes: route({
    ...{ method: 'GET', path: '/v1/sandboxes', home: 'both', ...read },
    summary: 'List sandboxes in the order of their creation.',
    params: none,
    query: SandboxListQuery,
    reply: ok(SandboxPage),
  }),
  getSandbox: route({
    ...{ method: 'GET', path: '/v1/sandboxes/{sandboxId}', ...one, ...read },
    summary: 'Show a sandbox, or wait for its next change.',
    query: SandboxQuery,
    reply: ok(Sandbox),
  }),
  stopSandbox: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/stop', ...one, ...write },
    summary: 'Stop a sandbox and remove everything it held. It stays listed as stopped.',
    effect: 'idempotent',
    body: noBody,
    reply: ok(Sandbox),
  }),
  pauseSandbox: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/pause', ...one, ...write },
    summary: 'Freeze a sandbox and take its memory back. The next operation resumes it.',
    effect: 'idempotent',
    body: noBody,
    reply: ok(Sandbox),
  }),
  resumeSandbox: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/resume', ...one, ...write },
    summary: 'Let a paused sandbox run on.',
    effect: 'idempotent',
    body: noBody,
    reply: ok(Sandbox),
  }),
  renewSandbox: route({
    ...{ method: 'PUT', path: '/v1/sandboxes/{sandboxId}/ttl', ...one, ...write },
    summary: 'Set what ends the sandbox by itself; times given count from now.',
    effect: 'idempotent',
    body: jsonBody(Ttl),
    reply: ok(Sandbox),
  }),
  updateNetwork: route({
    ...{ method: 'PUT', path: '/v1/sandboxes/{sandboxId}/network', ...one, ...write },
    summary: 'Replace what the sandbox may reach, by the version that is replaced.',
    effect: 'idempotent',
    body: jsonBody(NetworkUpdate),
    reply: ok(Sandbox),
  }),
  setSandboxStage: route({
    ...{ method: 'PUT', path: '/v1/sandboxes/{sandboxId}/policy/stage', ...one, ...write },
    summary: 'Switch to a stage of the policy that allows nothing more than the present one.',
    effect: 'idempotent',
    body: jsonBody(StageSwitch),
    reply: ok(Sandbox),
  }),
  loosenSandboxStage: route({
    ...{ method: 'PUT', path: '/v1/sandboxes/{sandboxId}/policy/loosened-stage', ...one },
    summary: 'Switch to any stage of the policy.',
    operationClass: 'policies:loosen',
    effect: 'idempotent',
    body: jsonBody(StageSwitch),
    reply: ok(Sandbox),
  }),
  rollbackSandbox: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/rollback', ...one, ...write },
    summary: 'Put a sandbox back to one of its snapshots.',
    effect: 'keyed',
    body: jsonBody(RollbackRequest),
    reply: ok(Sandbox),
  }),
  packDiff: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/pack-diff', ...one, ...write },
    summary: 'Turn what the sandbox has changed into a diff layer, while it runs.',
    effect: 'keyed',
    body: jsonBody(PackDiffRequest),
    reply: created(PackDiffResult),
  }),
  createSnapshot: route({
    ...{ method: 'POST', path: '/v1/sandboxes/{sandboxId}/snapshots', ...one, ...write },
    summary: 'Record the state of a sandbox so that others can start from it.',
    effect: 'keyed',
    body: jsonBody(SnapshotCreate),
    reply: created(Snapshot),
  }),
  listSnapshots: route({
    ...{ method: 'GET', path: '/v1/snapshots', home: 'apiserver', ...read },
    summary: 'List snapshots in the order of their creation.',
    params: none,
    query: SnapshotListQuery,
    reply: ok(SnapshotPage),
  }),
  getSnapshot: route({
    ...{ method: 'GET', path: '/v1/snapshots/{snapshotId}', ...snapshotOne, ...read },
    summary: 'Show a snapshot.',
    reply: ok(Snapshot),
  }),
  removeSnapshot: route({
    ...{ method: 'DELETE', path: '/v1/snapshots/{snapshotId}', ...snapshotOne, ...write },
    summary: 'Remove a snapshot. Sandboxes that started from it are not touched.',
    effect: 'idempotent',
    body: noBody,
    reply: empty,
  }),
  branchSnapshot: route({
    ...{ method: 'POST', path: '/v1/snapshots/{snapshotId}/branches', ...snapshotOne, ...write },
    summary: 'Start sandboxes from a snapshot; each is told as it becomes ready.',
    effect: 'keyed',
    body: jsonBody(BranchCreate),
    reply: lines(SandboxBatchItem),
  }),
} as const;
