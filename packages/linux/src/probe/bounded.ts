import { spawn } from 'node:child_process';
import { asDsecError } from '@dsec/std';

/** How a child ended. `late`: it was killed at its limit. */
export type ChildResult =
  | {
      readonly kind: 'exit';
      readonly code: number;
      readonly stdout: string;
      readonly stderr: string;
    }
  | { readonly kind: 'late'; readonly limitMs: number; readonly stdout: string }
  | { readonly kind: 'failed'; readonly why: string };

const OUTPUT_BYTES_MAX = 256 * 1024;

/**
 * Runs a program to its end or its limit; never rejects. The first output ends the first limit and starts the
 * second, so that a program can say that it has started. A child that does not die of SIGKILL (stuck in the
 * kernel) is left behind without waiting for it, since the report must come in any case.
 */
export function runChild(
  file: string,
  args: readonly string[],
  limitMs: number,
  limitAfterOutputMs = limitMs,
): Promise<ChildResult> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        if (output[name].length < OUTPUT_BYTES_MAX) output[name] += text;
      });
    }
    const killAfter = (ms: number) =>
      setTimeout(() => {
        child.kill('SIGKILL');
        child.stdout.destroy();
        child.stderr.destroy();
        child.unref();
        resolve({ kind: 'late', limitMs: ms, stdout: output.stdout });
      }, ms);
    let timer = killAfter(limitMs);
    child.stdout.once('data', () => {
      clearTimeout(timer);
      timer = killAfter(limitAfterOutputMs);
    });
    child.once('error', (error) => {
      clearTimeout(timer);
      resolve({ kind: 'failed', why: error.message });
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      if (code === null) resolve({ kind: 'failed', why: `ended by ${signal}` });
      else resolve({ kind: 'exit', code, ...output });
    });
  });
}

/** Why a child gave no answer, in one line. */
export function childFailure(result: ChildResult): string {
  if (result.kind === 'late') return `no answer within ${result.limitMs} ms`;
  if (result.kind === 'failed') return result.why;
  const lastLine = result.stderr.trim().split('\n').at(-1) ?? '';
  return lastLine === '' ? `exit code ${result.code}` : lastLine;
}

/** The result of `work`, or `fallback` where it throws or takes longer than the limit. Never rejects. */
export async function bounded<T>(
  work: (signal: AbortSignal) => Promise<T>,
  limitMs: number,
  fallback: (why: string) => T,
): Promise<T> {
  const signal = AbortSignal.timeout(limitMs);
  const late = new Promise<T>((resolve) => {
    signal.addEventListener('abort', () => resolve(fallback(`no answer within ${limitMs} ms`)));
  });
  try {
    return await Promise.race([work(signal), late]);
  } catch (thrown) {
    return fallback(asDsecError(thrown).message);
  }
}
