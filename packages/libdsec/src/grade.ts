import {
  type GradeEvent,
  type GradeReport,
  type GradeRequest,
  ROUTES,
  type SandboxLimits,
} from '@dsec/protocol';
import { fromErrorBody, SECOND_MS } from '@dsec/std';
import { clientErrorOf, ProtocolError } from './errors.ts';
import { present } from './pages.ts';
import type { Server } from './server.ts';

/** A program of the grader; see the guide to grading for how it reports. */
export interface GradeCommandOptions {
  readonly argv: readonly string[];
  /** Each test that it has to report, once. */
  readonly expect: readonly string[];
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** `root` or `UID:GID`; absent: `65533:65533`. It has no capability, whoever it is. */
  readonly user?: string | undefined;
  /** Seconds. */
  readonly timeout?: number | undefined;
}

export interface GradeOptions {
  /** Where a solver may hand something in. */
  readonly solutionPaths: readonly string[];
  readonly commands: readonly GradeCommandOptions[];
  /** Below the solution paths; nothing there is taken from the solver. */
  readonly testPaths?: readonly string[] | undefined;
  /** Of the kinds `tools` and `grading`, at `/.dsec/<name>`. */
  readonly layers?: readonly string[] | undefined;
  readonly limits?: SandboxLimits | undefined;
  readonly entriesMax?: number | undefined;
  readonly bytesMax?: number | undefined;
  /** Also what acts on tests by itself, and tests: the result is not trusted. */
  readonly fullState?: boolean | undefined;
  /** Seconds for all of it. Absent: 900. */
  readonly timeout?: number | undefined;
  readonly onStage?: ((stage: GradeEvent['stage']) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** See `Sandbox.grade`. */
export async function gradeSandbox(
  server: Server,
  sandboxId: string,
  options: GradeOptions,
): Promise<GradeReport> {
  const { signal, onStage } = options;
  const input = { params: { sandboxId }, body: requestOf(options) };
  const lines = await server.call(ROUTES.gradeSandbox, input, { signal });
  for await (const { stage, report, error } of lines) {
    if (error !== undefined) throw clientErrorOf(fromErrorBody(error));
    if (report !== undefined) return report;
    onStage?.(stage);
  }
  throw new ProtocolError('protocol', 'grading ended without a result');
}

function requestOf(options: GradeOptions): GradeRequest {
  const { solutionPaths, commands, testPaths, layers, limits, timeout } = options;
  const { entriesMax, bytesMax, fullState } = options;
  return {
    solutionPaths: [...solutionPaths],
    commands: commands.map(({ argv, expect, cwd, env, user, timeout: seconds }) => ({
      ...{ argv: [...argv], expect: [...expect] },
      ...present({ cwd, env, user, timeoutMs: millisecondsOf(seconds) }),
    })),
    ...present({
      testPaths: testPaths && [...testPaths],
      layers: layers && [...layers],
      timeoutMs: millisecondsOf(timeout),
      ...{ limits, entriesMax, bytesMax, fullState },
    }),
  };
}

const millisecondsOf = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : Math.round(seconds * SECOND_MS);
