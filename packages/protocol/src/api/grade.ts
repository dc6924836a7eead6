import { HOUR_MS, MIB } from '@dsec/std';
import Type, { type Static } from 'typebox';
import { byteCount, count, durationMs, integer, listOfMax, record, words } from '../names.ts';
import { ErrorBody } from './error-body.ts';
import { ARGUMENT_LENGTH_MAX } from './exec.ts';
import { LayerSelectorText } from './layer.ts';
import { DirectoryText, EnvVariables, SandboxLimits, UserText } from './sandbox.ts';

/** Tests of one run, over all commands. */
export const GRADE_TESTS_MAX = 20_000;
export const GRADE_COMMANDS_MAX = 256;
export const SOLUTION_ENTRIES_MAX = 100_000;
export const SOLUTION_BYTES_MAX = 4096 * MIB;
const LEFT_SHOWN_MAX = 200;
const OUTPUT_LENGTH_MAX = 65_536;

const testName = Type.String({
  minLength: 1,
  maxLength: 512,
  pattern: '^[^\\u0000-\\u001f\\u007f]+$',
  description: 'Name of a test, without control characters.',
});

export const GradeCommand = record(
  'GradeCommand',
  {
    argv: listOfMax(
      Type.String({ maxLength: ARGUMENT_LENGTH_MAX, pattern: '^[^\\u0000]*$' }),
      1024,
      1,
    ),
    cwd: Type.Optional(DirectoryText),
    env: Type.Optional(EnvVariables),
    user: Type.Optional(UserText),
    timeoutMs: Type.Optional(integer(1, 6 * HOUR_MS)),
    expect: listOfMax(testName, GRADE_TESTS_MAX, 1),
  },
  'A program of the grader that reports each test of `expect` once. It runs as user and group 65533 unless ' +
    '`user` says otherwise, and never has a capability.',
);
export type GradeCommand = Static<typeof GradeCommand>;

export const GradeRequest = record(
  'GradeRequest',
  {
    solutionPaths: listOfMax(DirectoryText, 64, 1),
    testPaths: Type.Optional(listOfMax(DirectoryText, 256)),
    layers: Type.Optional(listOfMax(LayerSelectorText, 16)),
    commands: listOfMax(GradeCommand, GRADE_COMMANDS_MAX, 1),
    limits: Type.Optional(SandboxLimits),
    timeoutMs: Type.Optional(durationMs(6 * HOUR_MS, 'For all of it; absent: 15 minutes.')),
    entriesMax: Type.Optional(integer(1, SOLUTION_ENTRIES_MAX, 'Taken; absent: 20,000.')),
    bytesMax: Type.Optional(integer(1, SOLUTION_BYTES_MAX, 'Taken; absent: 256 MiB.')),
    fullState: Type.Optional(
      Type.Boolean({
        description:
          'Take what runs by itself (conftest.py, *.pth and the like) and `testPaths` as well, and layers ' +
          'of kind diff: the result is not trusted.',
      }),
    ),
  },
  '`solutionPaths` are what a solver may hand in; `testPaths` below them are never taken. `layers` are of ' +
    'the kinds tools and grading, at /.dsec/NAME.',
);
export type GradeRequest = Static<typeof GradeRequest>;

export const TEST_OUTCOMES = ['passed', 'failed', 'skipped', 'error'] as const;
export const TestOutcome = words('TestOutcome', TEST_OUTCOMES);
export type TestOutcome = Static<typeof TestOutcome>;

/** Why something of a solution was not taken. */
export const LEFT_REASONS = [
  ...(['kind', 'name', 'test', 'hard-link', 'link-target', 'runs-by-itself', 'changed'] as const),
] as const;

export const GradeReport = record(
  'GradeReport',
  {
    trusted: Type.Boolean({ description: 'False with `fullState`.' }),
    total: count(),
    passed: count(),
    tests: listOfMax(
      record('GradedTest', { name: testName, outcome: TestOutcome }),
      GRADE_TESTS_MAX,
    ),
    taken: record('SolutionTaken', {
      files: count(),
      directories: count(),
      links: count(),
      bytes: byteCount(),
    }),
    left: listOfMax(
      record('SolutionLeft', {
        path: Type.String({ maxLength: 4096 }),
        reason: words('LeftReason', LEFT_REASONS),
      }),
      LEFT_SHOWN_MAX,
    ),
    leftCount: count('Of entries that were not taken; `left` shows the first.'),
    output: listOfMax(Type.String({ maxLength: OUTPUT_LENGTH_MAX }), GRADE_COMMANDS_MAX),
    durationMs: count(),
  },
  'Every expected test, as the runner told it. `output` is the end of what each command wrote.',
);
export type GradeReport = Static<typeof GradeReport>;

export const GRADE_STAGES = ['compose', 'collect', 'apply', 'test'] as const;

export const GradeEvent = record(
  'GradeEvent',
  {
    stage: words('GradeStage', GRADE_STAGES),
    report: Type.Optional(GradeReport),
    error: Type.Optional(ErrorBody),
  },
  'A line of the stream that a grade answers with. The last one has `report` or `error`.',
);
export type GradeEvent = Static<typeof GradeEvent>;
