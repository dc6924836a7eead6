/**
 * Grading. The environment of the solver is composed afresh in a sandbox that only graders reach; of the
 * solver comes what its solution paths hold, as data; the grader's commands run without privileges under the
 * platform's runner. Nothing is kept: the sandbox ends with the request, or by its time to live when this
 * process dies over it.
 */
import type {
  ExecSpec,
  GradeCommand,
  GradeEvent,
  GradeReport,
  GradeRequest,
  Sandbox,
  SandboxCreate,
} from '@dsec/protocol';
import { ROUTES } from '@dsec/protocol';
import {
  asDsecError,
  type Clock,
  DsecError,
  MIB,
  MINUTE_MS,
  SECOND_MS,
  toErrorBody,
} from '@dsec/std';
import type { CreateSandbox } from '../create/create.ts';
import type { CreateContext } from '../create/send-create.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { checkSolution, collectSolution, type SolutionTally } from './collect.ts';
import { createSandboxAccess, type SandboxAccess } from './sandbox-access.ts';
import { type CommandRun, type GradedTest, verdictOf } from './verdict.ts';

export interface GradeParts {
  readonly fleet: Fleet;
  readonly create: CreateSandbox;
  readonly clock: Clock;
}

export type Grade = (
  sandboxId: string,
  request: GradeRequest,
  context: CreateContext,
) => AsyncGenerator<GradeEvent>;

/** Each holds a sandbox, and data of another one as it passes by. */
const GRADES_MAX = 64;
const TIMEOUT_MS = 15 * MINUTE_MS;
const ENTRIES_MAX = 20_000;
const BYTES_MAX = 256 * MIB;
/** After its time is up, for what is under way. */
const SPARE_MS = 2 * MINUTE_MS;
const STOP_MS = 30 * SECOND_MS;
const TOLD_BYTES_MAX = 16 * MIB;
const OUTPUT_BYTES_MAX = 65_536;
const RUNNER = '/.dsec/platform/runner';
const ROOT = '0:0';
const USER = '65533:65533';

/** See `gradeSandbox` in the route table. */
export function createGrade(parts: GradeParts): Grade {
  let running = 0;
  return async function* grade(sandboxId, request, context) {
    if (running >= GRADES_MAX) {
      throw new DsecError('overloaded', `${GRADES_MAX} solutions are being graded already`);
    }
    running += 1;
    const timeoutMs = request.timeoutMs ?? TIMEOUT_MS;
    const late = AbortSignal.timeout(timeoutMs);
    const signal = AbortSignal.any([context.signal, late]);
    let stage: GradeEvent['stage'] = 'compose';
    try {
      for await (const event of run(parts, sandboxId, request, { ...context, signal })) {
        ({ stage } = event);
        yield event;
      }
    } catch (thrown) {
      const error = late.aborted
        ? new DsecError('deadline-exceeded', `grading took more than ${timeoutMs} ms`)
        : asDsecError(thrown);
      yield { stage, error: toErrorBody(error) };
    } finally {
      running -= 1;
    }
  };
}

async function* run(
  parts: GradeParts,
  sandboxId: string,
  request: GradeRequest,
  context: CreateContext,
): AsyncGenerator<GradeEvent> {
  const { fleet, clock } = parts;
  const { identity, signal } = context;
  const startMs = clock.monotonicMs();
  const fullState = request.fullState ?? false;
  const { entriesMax = ENTRIES_MAX, bytesMax = BYTES_MAX, testPaths = [], solutionPaths } = request;
  const wanted = checkSolution({ solutionPaths, testPaths, fullState, entriesMax, bytesMax });
  const specs = request.commands.map(specOf);
  yield { stage: 'compose' };
  const link = fleet.linkOf(sandboxId);
  const input = { params: { sandboxId }, query: {} };
  const solver = await link.call(ROUTES.getSandbox, input, { holder: identity, signal });
  const fresh = await parts.create(createOf(solver, request), context);
  const freshLink = fleet.linkOf(fresh.id);
  try {
    checkSame(solver, fresh);
    const access = createSandboxAccess(freshLink, fresh.id, identity, signal);
    yield { stage: 'collect' };
    const solution = collectSolution(
      createSandboxAccess(link, sandboxId, identity, signal),
      wanted,
    );
    await apply(access, solution.records);
    yield { stage: 'test' };
    const runs: CommandRun[] = [];
    for (const [index, command] of request.commands.entries()) {
      runs.push(await runCommand(access, command, specs[index] ?? {}));
    }
    const tests = verdictOf(runs);
    const durationMs = Math.round(clock.monotonicMs() - startMs);
    const outcome = { tests, tally: solution.tally, runs };
    yield { stage: 'test', report: reportOf(outcome, !fullState, durationMs) };
  } finally {
    const ending = { holder: identity, signal: AbortSignal.timeout(STOP_MS) };
    // Where it cannot be stopped now, its time to live ends it.
    await freshLink
      .call(ROUTES.stopSandbox, { params: { sandboxId: fresh.id } }, ending)
      .catch(() => undefined);
  }
}

/** The environment of the solver without what a solver can have made. */
function createOf({ spec, layers }: Sandbox, request: GradeRequest): SandboxCreate {
  const isState = (ref: string) => ref.startsWith('diff/') && request.fullState !== true;
  const refs = layers.flatMap(({ ref }) => (ref === undefined || isState(ref) ? [] : [ref]));
  const { backend, env, job, isolation, requireProtections, allowDegraded } = spec;
  const given = { backend, env, job, isolation, requireProtections, allowDegraded };
  const limits = { ...spec.limits, ...request.limits };
  const lifetimeMs = (request.timeoutMs ?? TIMEOUT_MS) + SPARE_MS;
  return {
    ...(Object.fromEntries(
      Object.entries(given).filter(([, value]) => value !== undefined),
    ) as SandboxCreate),
    layers: [...refs, ...(request.layers ?? [])],
    ...{ limits, grading: true, user: ROOT, cwd: '/', waitFor: 'ready' },
    ttl: { lifetimeMs, graceMs: 0 },
  };
}

/** A name that means another layer by now would be another environment. */
function checkSame(solver: Sandbox, fresh: Sandbox): void {
  const before = new Map(solver.layers.map(({ ref, layerId }) => [ref, layerId]));
  const changed = fresh.layers.find(
    ({ ref, layerId }) => before.has(ref) && before.get(ref) !== layerId,
  );
  if (changed === undefined) return;
  throw new DsecError(
    'state-conflict',
    `${changed.ref} means another layer than when the sandbox was made`,
  );
}

async function apply(access: SandboxAccess, records: AsyncIterable<Uint8Array>): Promise<void> {
  const spec = { argv: [RUNNER, 'apply'], user: ROOT, cwd: '/' };
  const exec = await access.run(spec, records);
  const told = (await access.output(exec, 'stdout', OUTPUT_BYTES_MAX)).toString();
  if (exec.exit?.exitCode === 0 && told === 'applied\n') return;
  const why = (await access.output(exec, 'stderr', OUTPUT_BYTES_MAX)).toString().slice(-500).trim();
  throw new DsecError('grade-invalid', `the solution cannot be put in place: ${why}`);
}

function specOf(command: GradeCommand): ExecSpec {
  const { argv, cwd = '/', env = {}, timeoutMs, user = USER } = command;
  const [, uid, gid] = /^(\d{1,5}):(\d{1,5})$/.exec(user === 'root' ? ROOT : user) ?? [];
  if (uid === undefined || gid === undefined) {
    throw new DsecError('invalid-argument', 'user: of a command is root, or UID:GID as numbers', {
      details: { field: 'user' },
    });
  }
  return {
    argv: [RUNNER, 'run', uid, gid, ...argv],
    ...{ user: ROOT, cwd, env: { HOME: '/tmp', ...env }, outputBytesMax: TOLD_BYTES_MAX },
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

async function runCommand(
  access: SandboxAccess,
  command: GradeCommand,
  spec: ExecSpec,
): Promise<CommandRun> {
  const exec = await access.run(spec);
  const told = (await access.output(exec, 'stdout', TOLD_BYTES_MAX)).toString();
  const output = (await access.output(exec, 'stderr', OUTPUT_BYTES_MAX)).toString();
  return { command, exec, told, output: output.slice(-OUTPUT_BYTES_MAX) };
}

interface Outcome {
  readonly tests: readonly GradedTest[];
  readonly tally: SolutionTally;
  readonly runs: readonly CommandRun[];
}

function reportOf(
  { tests, tally, runs }: Outcome,
  trusted: boolean,
  durationMs: number,
): GradeReport {
  return {
    ...{ trusted, durationMs, total: tests.length },
    passed: tests.filter(({ outcome }) => outcome === 'passed').length,
    tests: [...tests],
    ...tally,
    output: runs.map(({ output }) => output),
  };
}
