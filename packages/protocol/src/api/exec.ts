import { DAY_MS } from '@dsec/std';
import Type, { type Static } from 'typebox';
import { SIGNAL_SCOPES } from '../aether-frames.ts';
import {
  byteCount,
  count,
  cursor,
  durationMs,
  execId,
  instantMs,
  integer,
  listOfMax,
  record,
  sandboxId,
  sessionId,
  waitMs,
  words,
} from '../names.ts';
import { base64 } from './byte-text.ts';
import { ErrorBody } from './error-body.ts';
import { DirectoryText, EnvVariables, PAGE_LIMIT_MAX, UserText } from './sandbox.ts';

/** Linux takes no longer single argument. */
export const ARGUMENT_LENGTH_MAX = 131_071;
/** Output that an edge keeps of one command and stream, at most. */
export const OUTPUT_BYTES_MAX = 16 * 2 ** 30;
/** Output that an answer holds inside its JSON, at most, for each stream. */
export const INLINE_OUTPUT_BYTES_MAX = 65_536;

const argument = Type.String({ maxLength: ARGUMENT_LENGTH_MAX, pattern: '^[^\\u0000]*$' });

export const PtySize = record('PtySize', {
  rows: integer(1, 65_535),
  columns: integer(1, 65_535),
});
export type PtySize = Static<typeof PtySize>;

export const ExecSpec = record(
  'ExecSpec',
  {
    argv: Type.Optional(listOfMax(argument, 4096, 1)),
    shell: Type.Optional(argument),
    session: Type.Optional(sessionId),
    cwd: Type.Optional(DirectoryText),
    env: Type.Optional(EnvVariables),
    user: Type.Optional(UserText),
    stdin: Type.Optional(
      Type.Boolean({ description: 'Keep standard input open for bytes that come later.' }),
    ),
    pty: Type.Optional(PtySize),
    timeoutMs: Type.Optional(
      integer(1, 365 * DAY_MS, 'Running time; the time of a paused sandbox does not count.'),
    ),
    outputBytesMax: Type.Optional(
      integer(
        0,
        OUTPUT_BYTES_MAX,
        'Kept of each stream: a head and the tail; the rest is counted.',
      ),
    ),
    waitMs,
  },
  "Either `argv`, or `shell`: text for `/bin/sh -c`, or for the session's shell.",
);
export type ExecSpec = Static<typeof ExecSpec>;

export const ExecStateWord = words('ExecState', [
  'starting',
  'running',
  'exited',
  /** It never ran: see `error`. */
  'failed',
  /** The agent was lost before the result came; an exit code is never made up. */
  'unknown',
]);

export const ExecExit = record(
  'ExecExit',
  {
    exitCode: Type.Optional(integer(0, 255)),
    signal: Type.Optional(integer(1, 64)),
    coreDumped: Type.Boolean(),
    timedOut: Type.Boolean(),
    oomKilled: Type.Boolean(),
    endedByPolicy: Type.Optional(
      Type.Boolean({
        description:
          'It was ended by a switch to another stage, which took away what it could have had open.',
      }),
    ),
    trusted: Type.Boolean({
      description: 'False in a session, where the sandbox itself reports the status.',
    }),
  },
  'Either `exitCode` or `signal`.',
);
export type ExecExit = Static<typeof ExecExit>;

export const OutputTotals = record(
  'OutputTotals',
  {
    totalBytes: byteCount(),
    headBytes: byteCount(),
    tailOffset: byteCount(),
    truncated: Type.Boolean(),
    ended: Type.Boolean({ description: 'No more bytes will come.' }),
  },
  'Offsets are absolute; kept are the bytes below `headBytes` and from `tailOffset` on.',
);
export type OutputTotals = Static<typeof OutputTotals>;

export const Exec = record('Exec', {
  id: execId,
  sandbox: sandboxId,
  sequence: count('Place in the sandbox among all operations.'),
  session: Type.Optional(sessionId),
  command: Type.String({ maxLength: 256, description: 'Beginning of the command, to show.' }),
  state: ExecStateWord,
  exit: Type.Optional(ExecExit),
  error: Type.Optional(ErrorBody),
  startedAtMs: instantMs(),
  endedAtMs: Type.Optional(instantMs()),
  runningMs: Type.Optional(count('Without the time that the sandbox was paused.')),
  cpuUs: Type.Optional(count()),
  memoryPeakBytes: Type.Optional(byteCount()),
  stdout: OutputTotals,
  stderr: OutputTotals,
});
export type Exec = Static<typeof Exec>;

export const OutputChunk = record(
  'OutputChunk',
  {
    offset: byteCount(),
    text: Type.String({ maxLength: INLINE_OUTPUT_BYTES_MAX }),
    base64: Type.Optional(base64(INLINE_OUTPUT_BYTES_MAX)),
  },
  'A stretch of output; `base64` where `text` is not exact.',
);

export const ExecStarted = record(
  'ExecStarted',
  {
    exec: Exec,
    stdout: Type.Optional(OutputChunk),
    stderr: Type.Optional(OutputChunk),
  },
  'With `waitMs` and a command that has ended in time, `stdout` and `stderr` hold the beginning of its ' +
    'output, which is all of it when `totalBytes` says so.',
);
export type ExecStarted = Static<typeof ExecStarted>;

export const ExecPage = record('ExecPage', {
  execs: listOfMax(Exec, PAGE_LIMIT_MAX),
  cursor: Type.Optional(cursor),
});

export const ExecQuery = record('ExecQuery', { waitMs });

export const OutputQuery = record('OutputQuery', {
  stream: Type.Optional(words('OutputStream', ['stdout', 'stderr'])),
  offset: Type.Optional(byteCount('First byte wanted; absent: 0.')),
  lengthBytes: Type.Optional(byteCount('Most bytes wanted; absent: as many as there are.')),
  follow: Type.Optional(
    Type.Boolean({ description: 'Go on with new output until the stream has ended.' }),
  ),
  waitMs,
});

export const StdinQuery = record('StdinQuery', {
  offset: byteCount('Absolute offset of the first byte; what was taken before is dropped.'),
  end: Type.Optional(Type.Boolean({ description: 'No more bytes come after these.' })),
});

export const StdinAccepted = record('StdinAccepted', { offset: byteCount('Taken so far.') });

/**
 * `leader`: the command's first process, or its terminal's foreground group. `tree`: every process it has
 * left.
 */
export const SignalScope = words('SignalScope', SIGNAL_SCOPES);

export const SignalRequest = record('SignalRequest', {
  signal: integer(1, 64),
  scope: Type.Optional(SignalScope),
});

export const TimeoutRequest = record('TimeoutRequest', {
  timeoutMs: Type.Optional(
    durationMs(365 * DAY_MS, 'From the start of the command; absent: none.'),
  ),
});

export const SessionSpec = record(
  'SessionSpec',
  {
    shell: Type.Optional(listOfMax(argument, 64, 1)),
    cwd: Type.Optional(DirectoryText),
    env: Type.Optional(EnvVariables),
    user: Type.Optional(UserText),
    pty: Type.Optional(PtySize),
  },
  "A persistent shell. What it says about its commands is the sandbox's own word: `trusted` is always false.",
);

export const Session = record('Session', {
  id: sessionId,
  sandbox: sandboxId,
  open: Type.Boolean(),
  trusted: Type.Literal(false),
  createdAtMs: instantMs(),
});
export type Session = Static<typeof Session>;

export const SessionPage = record('SessionPage', {
  sessions: listOfMax(Session, PAGE_LIMIT_MAX),
  cursor: Type.Optional(cursor),
});
