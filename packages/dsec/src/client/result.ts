import type { ExecResult } from '@dsec/libdsec';
import { textOfBytes } from '@dsec/protocol';
import { printJson } from '../output.ts';

const SIGNAL_BASE = 128;

/** Prints how a command ended for programs, and returns the exit code that a shell would give it. */
export function printResult(result: ExecResult, more: object = {}): number {
  printJson({ ...more, ...resultJson(result) });
  return codeOfResult(result);
}

export function codeOfResult({ exitCode, signal }: ExecResult): number {
  return exitCode ?? SIGNAL_BASE + (signal ?? 0);
}

export function resultJson(result: ExecResult): object {
  const { execId, exitCode, signal, timedOut, oomKilled, truncated, durationMs } = result;
  const stdout = textOfBytes(result.stdoutBytes);
  const stderr = textOfBytes(result.stderrBytes);
  return {
    ...{ exec: execId, exitCode, signal, timedOut, oomKilled, truncated, durationMs },
    ...{ stdout: stdout.text, stdoutBase64: stdout.base64 },
    ...{ stderr: stderr.text, stderrBase64: stderr.base64 },
  };
}
