/** One command in many sandboxes that are made in one burst. */
import {
  type Client,
  type ExecResult,
  type Sandbox,
  SandboxFailure,
  type SandboxOptions,
} from '@dsec/libdsec';
import {
  asDsecError,
  type DsecError,
  escapeForTerminal,
  formatDuration,
  toErrorBody,
} from '@dsec/std';
import { createCountProgress, printJson, printWarning, renderTable } from '../output.ts';
import type { CommandOptions } from './command-options.ts';
import { codeOfResult, resultJson } from './result.ts';

export interface ManyJob {
  readonly create: SandboxOptions;
  readonly command: readonly string[] | undefined;
  readonly options: CommandOptions;
  readonly count: number;
  readonly isKept: boolean;
  readonly json: boolean;
}

interface Outcome {
  readonly index: number;
  readonly sandbox?: string;
  readonly result?: ExecResult;
  readonly error?: DsecError;
}

/** What is kept of one until the end: its output has been shown by then. */
interface Ending {
  readonly index: number;
  readonly sandbox: string;
  readonly exitCode: number;
  readonly how: string;
  readonly took: string;
}

/** Commands that run at a time; sandboxes that are ready wait for their turn. */
const RUNNING_MAX = 64;
/** Kept of each output: here all of them are held in memory for a moment. */
const OUTPUT_BYTES = 1 << 20;
const SHOWN_FAILURES_MAX = 20;

/** Resolves with 0 when every command exited with 0, else with the code of the first that did not. */
export async function runMany(client: Client, job: ManyJob, signal: AbortSignal): Promise<number> {
  const progress = createCountProgress('run', job.count);
  const endings: Ending[] = [];
  const working = new Set<Promise<void>>();
  let made = 0;
  const settle = (outcome: Outcome) => {
    endings.push(endingOf(outcome));
    report(outcome, job.json, progress.interrupt);
    progress.advance(endings.filter(isFailure).length);
  };
  try {
    for await (const ready of client.createMany(job.count, { ...job.create, signal })) {
      const index = made;
      made += 1;
      if (ready instanceof SandboxFailure) {
        settle({ index, error: asDsecError(ready.error) });
        continue;
      }
      const work = lifeOf(ready, job, signal).then((end) => settle({ ...end, index }));
      const tracked = work.finally(() => working.delete(tracked));
      working.add(tracked);
      if (working.size >= RUNNING_MAX) await Promise.race(working);
    }
  } finally {
    await Promise.allSettled(working);
    progress.finish();
  }
  signal.throwIfAborted();
  return conclude(endings, job.json);
}

async function lifeOf(sandbox: Sandbox, job: ManyJob, signal: AbortSignal) {
  const { command, options, isKept } = job;
  try {
    if (command === undefined) return { sandbox: sandbox.id };
    const limits = { ...options, maxOutputBytes: OUTPUT_BYTES, signal };
    return { sandbox: sandbox.id, result: await sandbox.exec(command, limits) };
  } catch (thrown) {
    return { sandbox: sandbox.id, error: asDsecError(thrown) };
  } finally {
    // One that cannot be stopped now ends by its time to live.
    if (!isKept) await sandbox.stop().catch(() => undefined);
  }
}

const isFailure = ({ exitCode }: Ending) => exitCode !== 0;

function endingOf({ index, sandbox = '-', result, error }: Outcome): Ending {
  if (error !== undefined) {
    const how = `${error.code}: ${error.message}`;
    return { index, sandbox, exitCode: error.exitCode, how, took: '' };
  }
  const exitCode = result === undefined ? 0 : codeOfResult(result);
  const took = result === undefined ? '' : formatDuration(result.durationMs);
  return { index, sandbox, exitCode, how: `exit code ${exitCode}`, took };
}

function report(outcome: Outcome, json: boolean, aside: (write: () => void) => void): void {
  const { index, sandbox, result, error } = outcome;
  if (json) {
    const end = error === undefined ? {} : { error: toErrorBody(error) };
    printJson({ index, sandbox, ...(result === undefined ? {} : resultJson(result)), ...end });
    return;
  }
  const lines = [
    ...linesOf(result?.stdout).map((line) => [process.stdout, line] as const),
    ...linesOf(result?.stderr).map((line) => [process.stderr, line] as const),
  ];
  if (lines.length === 0) return;
  aside(() => {
    for (const [sink, line] of lines) sink.write(`${index}: ${escapeForTerminal(line)}\n`);
  });
}

function linesOf(text = ''): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

function conclude(endings: readonly Ending[], json: boolean): number {
  const failures = endings.filter(isFailure).sort((a, b) => a.index - b.index);
  if (!json) process.stderr.write(`${summary(endings.length, failures)}\n`);
  return failures[0]?.exitCode ?? 0;
}

function summary(count: number, failures: readonly Ending[]): string {
  const total = `${count - failures.length} of ${count} exited with 0`;
  if (failures.length === 0) return total;
  const shown = failures.slice(0, SHOWN_FAILURES_MAX);
  if (failures.length > shown.length) printWarning(`${failures.length - shown.length} more failed`);
  const rows = shown.map(({ index, sandbox, how, took }) => [String(index), sandbox, how, took]);
  return `${renderTable(['INDEX', 'SANDBOX', 'END', 'TIME'], rows)}\n${total}`;
}
