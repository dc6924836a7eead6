import { DAY_MS, END_REASONS, GIB, HOUR_MS, MIB, SANDBOX_STATES } from '@dsec/std';
import Type, { type Static } from 'typebox';
import { USER_BYTES_MAX } from '../aether-frames.ts';
import {
  byteCount,
  count,
  cursor,
  digest,
  durationMs,
  edgeId,
  instantMs,
  integer,
  jobId,
  labelValue,
  listOfMax,
  mapOf,
  name,
  principalId,
  projectId,
  record,
  sandboxId,
  waitMs,
  words,
} from '../names.ts';
import { ErrorBody } from './error-body.ts';
import { LayerSelectorText } from './layer.ts';
import { NetworkRule } from './network-rule.ts';
import { PolicyChoice, PolicyStageWord } from './policy.ts';

export const BACKENDS = ['fncall', 'container', 'microvm', 'fullvm'] as const;
export const Backend = words('Backend', BACKENDS);
export type Backend = Static<typeof Backend>;
export const SandboxStateWord = words('SandboxState', SANDBOX_STATES);
export const EndReasonWord = words('EndReason', END_REASONS);
/** Who may share a mounted layer, and with it the page cache. */
export const Isolation = words('Isolation', ['job', 'project', 'node']);

export const LABELS_MAX = 32;
export const Labels = mapOf(
  '^[a-z0-9][a-z0-9._-]{0,127}$',
  labelValue,
  LABELS_MAX,
  'Names of labels have a-z, 0-9, dot, underscore and hyphen, as team; first a-z or 0-9.',
);

export const ENV_VARIABLES_MAX = 256;
/** Variables for commands. All together must fit in 64 KiB, as `NAME=value` with a NUL each. */
export const EnvVariables = mapOf(
  '^[A-Za-z_][A-Za-z0-9_]{0,127}$',
  Type.String({
    maxLength: 32_000,
    pattern: '^[^\\u0000]*$',
    description: 'Any text without a NUL character.',
  }),
  ENV_VARIABLES_MAX,
  'Names of variables have letters, digits and underscores, as PATH; first no digit.',
);

export const UserText = Type.String({
  maxLength: USER_BYTES_MAX,
  pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$',
  description: 'Name or number of a user inside the sandbox, or user:group, as root or 1000:1000.',
});
export const DirectoryText = Type.String({
  pattern: '^/[^\\u0000]*$',
  maxLength: 4095,
  description: 'An absolute path inside the sandbox, as /workspace.',
});

export const SandboxLimits = record('SandboxLimits', {
  cpuMillicores: Type.Optional(integer(10, 1_024_000, '1000 is one processor.')),
  memoryBytes: Type.Optional(integer(8 * MIB, 4096 * GIB)),
  pidsMax: Type.Optional(integer(8, 4_194_304)),
  diskBytes: Type.Optional(integer(MIB, 65_536 * GIB, 'Of the writable layer.')),
  inodesMax: Type.Optional(integer(64, 2 ** 32, 'Of the writable layer.')),
  openFilesMax: Type.Optional(integer(16, 1_048_576, 'For each process.')),
});
export type SandboxLimits = Static<typeof SandboxLimits>;

export const Ttl = record(
  'Ttl',
  {
    idleMs: Type.Optional(durationMs(30 * DAY_MS, 'Without any operation.')),
    lifetimeMs: Type.Optional(durationMs(365 * DAY_MS, 'From when it is set on, running or not.')),
    graceMs: Type.Optional(
      durationMs(
        HOUR_MS * 24,
        'Kept after its time is up for scoring; no command starts any more.',
      ),
    ),
  },
  'What ends a sandbox by itself.',
);
export type Ttl = Static<typeof Ttl>;

export const NETWORK_RULES_MAX = 256;
const networkRules = listOfMax(NetworkRule, NETWORK_RULES_MAX);
const networkVersion = (description: string) => integer(1, 2 ** 32 - 1, description);

export const SandboxNetwork = record(
  'SandboxNetwork',
  {
    address: Type.String({ maxLength: 15, pattern: '^[0-9.]+$' }),
    version: networkVersion('Of the rules; grows with every change of them.'),
    rules: networkRules,
  },
  'Of a sandbox that was created with rules: its address on the node, and the rules in force.',
);
export type SandboxNetwork = Static<typeof SandboxNetwork>;

export const NetworkUpdate = record(
  'NetworkUpdate',
  {
    version: networkVersion(
      'Of the rules that are replaced: `conflict` where others are in force.',
    ),
    rules: networkRules,
  },
  'All rules from now on. What they do not open is shut when the answer comes, open connections included.',
);
export type NetworkUpdate = Static<typeof NetworkUpdate>;

const WATCH_PATHS_MAX = 16;
const specFields = {
  backend: Type.Optional(Backend),
  environment: Type.Optional(name),
  layers: Type.Optional(listOfMax(LayerSelectorText, 64, 1)),
  limits: Type.Optional(SandboxLimits),
  network: Type.Optional(networkRules),
  policy: Type.Optional(PolicyChoice),
  stage: Type.Optional(PolicyStageWord),
  env: Type.Optional(EnvVariables),
  user: Type.Optional(UserText),
  cwd: Type.Optional(DirectoryText),
  labels: Type.Optional(Labels),
  job: Type.Optional(jobId),
  ttl: Type.Optional(Ttl),
  isolation: Type.Optional(Isolation),
  grading: Type.Optional(
    Type.Boolean({
      description:
        'It may have layers of kind grading, and the tools of the platform at /.dsec. Only keys with the ' +
        'scope grading make it, run commands in it, and reach its files and ports.',
    }),
  ),
  /** What is changed at these paths, or below, becomes an event `tamper`. */
  watchPaths: Type.Optional(
    listOfMax(
      Type.String({ maxLength: 4095, pattern: '^/[^\\u0000]*[^\\u0000/]$' }),
      WATCH_PATHS_MAX,
      1,
    ),
  ),
  requireProtections: Type.Optional(listOfMax(name, 64)),
  allowDegraded: Type.Optional(
    Type.Boolean({ description: 'Start even where the node lacks a protection, and say so.' }),
  ),
};

export const SandboxSpec = record(
  'SandboxSpec',
  specFields,
  'Either a named `environment` or the `layers` themselves. What is absent gets its default once.',
);
export type SandboxSpec = Static<typeof SandboxSpec>;

export const SandboxCreate = record('SandboxCreate', {
  ...specFields,
  waitFor: Type.Optional(words('WaitFor', ['allocated', 'ready'])),
});
export type SandboxCreate = Static<typeof SandboxCreate>;

export const BATCH_COUNT_MAX = 10_000;
export const SandboxBatchCreate = record('SandboxBatchCreate', {
  count: integer(1, BATCH_COUNT_MAX),
  spec: SandboxSpec,
});
export type SandboxBatchCreate = Static<typeof SandboxBatchCreate>;

export const Protection = record('Protection', {
  name,
  state: words('ProtectionState', ['enforced', 'degraded', 'absent']),
  detail: Type.Optional(Type.String({ maxLength: 512 })),
});
export type Protection = Static<typeof Protection>;

const elapsedMs = (description: string) =>
  Type.Optional(Type.Number({ minimum: 0, maximum: 365 * DAY_MS, description }));

export const SandboxTimings = record(
  'SandboxTimings',
  {
    allocatedMs: elapsedMs('The edge had accepted.'),
    readyMs: elapsedMs('The agent inside had said hello.'),
    firstCommandMs: elapsedMs('The first exit code had come back.'),
  },
  'Milliseconds from the moment the edge (or the apiserver, in its answers) took the request.',
);

export const SandboxLayer = record('SandboxLayer', {
  ref: Type.Optional(LayerSelectorText),
  layerId: digest,
});

export const Sandbox = record('Sandbox', {
  id: sandboxId,
  state: SandboxStateWord,
  endReason: Type.Optional(EndReasonWord),
  error: Type.Optional(ErrorBody),
  revision: count('Grows with every change of this record.'),
  edge: edgeId,
  project: projectId,
  principal: principalId,
  spec: SandboxSpec,
  layers: listOfMax(SandboxLayer, 64),
  createdAtMs: instantMs(),
  endedAtMs: Type.Optional(instantMs()),
  expiresAtMs: Type.Optional(instantMs('By its lifetime or idle time, whichever is first.')),
  timings: SandboxTimings,
  protections: listOfMax(Protection, 64),
  stage: Type.Optional(PolicyStageWord),
  upperDriver: Type.Optional(name),
  network: Type.Optional(SandboxNetwork),
  usage: Type.Optional(
    record('SandboxUsage', {
      cpuUs: count('Processor time used.'),
      memoryBytes: byteCount(),
      memoryPeakBytes: byteCount(),
      diskBytes: byteCount(),
      inodes: count(),
      pids: count(),
    }),
  ),
});
export type Sandbox = Static<typeof Sandbox>;

export const SandboxBatchItem = record(
  'SandboxBatchItem',
  {
    index: integer(0, BATCH_COUNT_MAX - 1),
    sandbox: Type.Optional(Sandbox),
    error: Type.Optional(ErrorBody),
  },
  'A line of the answer to a batch: a sandbox that is ready, or why there is none.',
);
export type SandboxBatchItem = Static<typeof SandboxBatchItem>;

export const SandboxQuery = record('SandboxQuery', {
  afterRevision: Type.Optional(count('With `waitMs`: answer when the revision is higher.')),
  waitMs,
});

export const PAGE_LIMIT_MAX = 1000;
export const pageQuery = {
  limit: Type.Optional(integer(1, PAGE_LIMIT_MAX)),
  cursor: Type.Optional(cursor),
};

export const SandboxListQuery = record(
  'SandboxListQuery',
  {
    ...pageQuery,
    state: Type.Optional(listOfMax(SandboxStateWord, SANDBOX_STATES.length)),
    job: Type.Optional(jobId),
    label: Type.Optional(
      listOfMax(
        Type.String({
          maxLength: 257,
          pattern: '^[a-z0-9][a-z0-9._-]*=[A-Za-z0-9._/:@+-]*$',
          description: 'name=value of a label, as team=blue.',
        }),
        LABELS_MAX,
      ),
    ),
  },
  'In the order of creation, which new sandboxes do not disturb.',
);

export const SandboxPage = record('SandboxPage', {
  sandboxes: listOfMax(Sandbox, PAGE_LIMIT_MAX),
  cursor: Type.Optional(cursor),
});
export type SandboxPage = Static<typeof SandboxPage>;
