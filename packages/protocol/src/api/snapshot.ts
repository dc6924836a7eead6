import Type, { type Static } from 'typebox';
import {
  byteCount,
  cursor,
  digest,
  instantMs,
  integer,
  jobId,
  listOfMax,
  name,
  projectId,
  real,
  record,
  sandboxId,
  snapshotId,
} from '../names.ts';
import { LayerRefText } from './layer.ts';
import {
  BATCH_COUNT_MAX,
  Labels,
  PAGE_LIMIT_MAX,
  pageQuery,
  SandboxLayer,
  SandboxLimits,
  Ttl,
} from './sandbox.ts';

export const SnapshotCreate = record('SnapshotCreate', {
  name: Type.Optional(name),
  memory: Type.Optional(
    Type.Boolean({ description: 'Memory and devices as well: virtual machines only.' }),
  ),
});

export const Snapshot = record(
  'Snapshot',
  {
    id: snapshotId,
    name: Type.Optional(name),
    sandbox: sandboxId,
    project: projectId,
    job: Type.Optional(jobId),
    layers: listOfMax(SandboxLayer, 64),
    memory: Type.Boolean(),
    frozenMs: real(0, 'How long the sandbox stood still.'),
    storedBytes: byteCount(),
    createdAtMs: instantMs(),
  },
  "A named state: the sandbox's layers and, on top of them, what it had changed.",
);
export type Snapshot = Static<typeof Snapshot>;

export const SnapshotListQuery = record('SnapshotListQuery', {
  ...pageQuery,
  sandbox: Type.Optional(sandboxId),
  job: Type.Optional(jobId),
});

export const SnapshotPage = record('SnapshotPage', {
  snapshots: listOfMax(Snapshot, PAGE_LIMIT_MAX),
  cursor: Type.Optional(cursor),
});

export const BranchCreate = record(
  'BranchCreate',
  {
    count: integer(1, BATCH_COUNT_MAX),
    labels: Type.Optional(Labels),
    job: Type.Optional(jobId),
    limits: Type.Optional(SandboxLimits),
    ttl: Type.Optional(Ttl),
  },
  'Several sandboxes from one snapshot. Absent fields are those of the sandbox that it was taken of.',
);

export const RollbackRequest = record('RollbackRequest', { snapshot: snapshotId });

export const PackDiffRequest = record('PackDiffRequest', {
  ref: Type.Optional(LayerRefText),
});

export const PackDiffResult = record('PackDiffResult', {
  layerId: digest,
  treeDigest: digest,
  ref: Type.Optional(LayerRefText),
  entries: integer(0, Number.MAX_SAFE_INTEGER),
  storedBytes: byteCount(),
  frozenMs: real(0, 'How long the sandbox stood still.'),
});
export type PackDiffResult = Static<typeof PackDiffResult>;
