import { DsecError, type ErrorCode } from '@dsec/std';
import { printError } from '../output.ts';

/** What is wrong with one of several layers that a command looked at. */
export interface LayerProblem {
  readonly ref: string;
  readonly code: ErrorCode;
  readonly message: string;
}

export function problemOf(ref: string, { code, message }: DsecError): LayerProblem {
  return { ref, code, message };
}

/**
 * Tells people of each problem on stderr (with `json` they stand in the document) and sets the exit code:
 * that of `data-loss` where data is lost, else that of the first.
 */
export function endWithProblems(problems: readonly LayerProblem[], json: boolean): void {
  const errors = problems.map(({ ref, code, message }) => {
    return new DsecError(code, code === 'not-found' ? message : `${ref} is damaged: ${message}`);
  });
  if (!json) for (const error of errors) printError(error, false);
  const worst = errors.find(({ code }) => code === 'data-loss') ?? errors[0];
  if (worst !== undefined) process.exitCode = worst.exitCode;
}
