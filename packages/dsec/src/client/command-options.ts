import type { StartOptions } from '@dsec/libdsec';
import { DsecError, GIB, MIB, SECOND_MS } from '@dsec/std';
import { type Flags, listFlag, textFlag } from '../command-line/invocation.ts';
import { parseDurationMs, parsePairs } from './quantities.ts';
import { terminalSize } from './terminal.ts';

/** Kept of each output, for a reader who is slower than the command. */
const OUTPUT_BYTES = GIB;
/** The same, where both are held in memory to be one document. */
export const DOCUMENT_OUTPUT_BYTES = 16 * MIB;

export type CommandOptions = Omit<StartOptions, 'stdin' | 'pty'>;

/** What the options of `dsec exec` say of the command. */
export function commandOptionsOf(flags: Flags): CommandOptions {
  const [cwd, user] = [textFlag(flags, 'cwd'), textFlag(flags, 'user')];
  const timeout = textFlag(flags, 'timeout');
  const variables = listFlag(flags, 'var');
  return {
    maxOutputBytes: OUTPUT_BYTES,
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
    ...(variables.length === 0 ? {} : { env: parsePairs(variables, '--var') }),
    ...timeoutOf(timeout),
  };
}

/** The SDK counts in seconds. */
export function timeoutOf(text: string | undefined): { timeout?: number } {
  return text === undefined ? {} : { timeout: parseDurationMs(text, '--timeout') / SECOND_MS };
}

/** A terminal of the size of ours, for a command that wants one. */
export function ptyOptions(): StartOptions {
  const { TERM } = process.env;
  return { stdin: true, pty: terminalSize(), ...(TERM ? { env: { TERM } } : {}) };
}

/** The words of a command, which must not be missing. */
export function commandOf(words: readonly string[]): readonly string[] {
  if (words.length > 0) return words;
  throw new DsecError('invalid-argument', 'the command is missing: put it after --');
}
