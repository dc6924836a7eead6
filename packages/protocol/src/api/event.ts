import Type, { type Static } from 'typebox';
import {
  count,
  cursor,
  edgeId,
  eventCursor,
  execId,
  instantMs,
  integer,
  jobId,
  listOfMax,
  principalId,
  projectId,
  record,
  sandboxId,
  sessionId,
  words,
} from '../names.ts';
import { ExecExit } from './exec.ts';
import { Backend, EndReasonWord, SandboxStateWord } from './sandbox.ts';

export const EVENT_TYPES = [
  ...(['sandbox-state', 'exec-exit', 'session-end', 'denied', 'tamper', 'lost'] as const),
] as const;
const EventType = words('EventType', EVENT_TYPES);

/** Every event has a cursor: a stream that starts at it goes on with the next one. */
const common = { cursor: eventCursor, atMs: instantMs() };
const about = {
  project: projectId,
  principal: principalId,
  job: Type.Optional(jobId),
  sandbox: sandboxId,
};

export const DeniedAt = words('DeniedAt', ['dns', 'egress', 'packet', 'call']);
/** Where something was changed that should stay as it was. */
export const TamperAt = words('TamperAt', ['watched-path']);
export const DeniedReason = Type.String({ pattern: '^[a-z0-9-]+$', maxLength: 64 });
/** A name, an address or a path, as far as it is known. Hostile text: of the sandbox's making. */
export const DeniedTarget = Type.String({ maxLength: 253 });

export const Event = Type.Union(
  [
    record('SandboxStateEvent', {
      ...common,
      ...about,
      type: Type.Literal('sandbox-state'),
      state: SandboxStateWord,
      endReason: Type.Optional(EndReasonWord),
      revision: count(),
    }),
    record('ExecExitEvent', {
      ...common,
      ...about,
      type: Type.Literal('exec-exit'),
      exec: execId,
      exit: Type.Optional(ExecExit),
    }),
    /** Its shell has ended, by itself or closed. The end of a sandbox ends its sessions without a word. */
    record('SessionEndEvent', {
      ...common,
      ...about,
      type: Type.Literal('session-end'),
      session: sessionId,
      endedByPolicy: Type.Optional(Type.Boolean()),
    }),
    /** What its rules do not let through. Many at a time are told as some, with the number of the others. */
    record('DeniedEvent', {
      ...common,
      ...about,
      type: Type.Literal('denied'),
      at: DeniedAt,
      reason: DeniedReason,
      target: Type.Optional(DeniedTarget),
      port: Type.Optional(integer(1, 65_535)),
      /** What the process calls itself, for a call: hostile text too. */
      process: Type.Optional(Type.String({ maxLength: 16 })),
      version: integer(1, 2 ** 32 - 1, 'Of the rules that were in force.'),
      suppressed: count('Others since the last event, which were only counted.'),
    }),
    /** What the caller wants to stay as it is was changed from inside. Told once for each change. */
    record('TamperEvent', {
      ...common,
      ...about,
      type: Type.Literal('tamper'),
      at: TamperAt,
      reason: DeniedReason,
      target: Type.Optional(DeniedTarget),
      suppressed: count('Others since the last event, which were only counted.'),
    }),
    /** Events that are no longer kept: who needs the state reads it, then goes on from this cursor. */
    record('LostEvent', { ...common, type: Type.Literal('lost') }),
  ],
  { title: 'Event' },
);
export type Event = Static<typeof Event>;

export const EventQuery = record('EventQuery', {
  cursor: Type.Optional(eventCursor),
  sandbox: Type.Optional(sandboxId),
  job: Type.Optional(jobId),
  type: Type.Optional(listOfMax(EventType, EVENT_TYPES.length)),
});

/** Share of time, in percent over ten seconds, in which some task waited (PSI). */
const pressure = Type.Optional(Type.Number({ minimum: 0, maximum: 100 }));

export const EdgeLoad = record('EdgeLoad', {
  admitting: Type.Boolean(),
  refusal: Type.Optional(Type.String({ maxLength: 256, description: 'Why it admits no more.' })),
  cpuCount: count(),
  memoryTotalBytes: count(),
  memoryAvailableBytes: count(),
  diskAvailableBytes: count(),
  pidsAvailable: count(),
  cpuPressurePct: pressure,
  memoryPressurePct: pressure,
  ioPressurePct: pressure,
});

export const EdgeSandbox = record('EdgeSandbox', {
  id: sandboxId,
  state: SandboxStateWord,
  endReason: Type.Optional(EndReasonWord),
  revision: count(),
  project: projectId,
  job: Type.Optional(jobId),
  createdAtMs: instantMs(),
});

export const EdgeStateQuery = record('EdgeStateQuery', {
  /** With the `epoch` of an earlier answer: only what changed after it. Otherwise everything. */
  sinceRevision: Type.Optional(count()),
  epoch: Type.Optional(count()),
  limit: Type.Optional(integer(1, 10_000)),
  cursor: Type.Optional(cursor),
});

export const EdgeState = record(
  'EdgeState',
  {
    edge: edgeId,
    epoch: count('Grows with every start of the edge.'),
    bootId: Type.String({ pattern: '^[0-9a-f-]{36}$', maxLength: 36 }),
    revision: count(),
    full: Type.Boolean(),
    events: eventCursor,
    load: EdgeLoad,
    backends: listOfMax(Backend, 4),
    sandboxes: listOfMax(EdgeSandbox, 10_000),
    cursor: Type.Optional(cursor),
  },
  'What an edge is and has. `revision` is that of the edge as a whole: every change raises it. `full`: ' +
    'sandboxes that are not listed do not exist. `events`: where the event stream goes on after this.',
);
export type EdgeState = Static<typeof EdgeState>;
