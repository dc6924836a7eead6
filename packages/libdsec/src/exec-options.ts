import type { ExecSpec, PtySize } from '@dsec/protocol';
import { MIB, SECOND_MS } from '@dsec/std';
import { present } from './pages.ts';

/** What a command is: text for a shell, or a program and its arguments, which no shell looks at. */
export type CommandLine = string | readonly string[];

interface CommandOptions {
  readonly cwd?: string | undefined;
  /** Over the variables of the sandbox. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Name or number, or `user:group`. */
  readonly user?: string | undefined;
  /** Seconds that the command may run. Absent: without limit. */
  readonly timeout?: number | undefined;
  /** Kept of each output: its beginning and its end when there is more. Absent: 64 MiB. */
  readonly maxOutputBytes?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ExecOptions extends CommandOptions {
  /** Standard input; absent: none. */
  readonly stdin?: Uint8Array | string | undefined;
  /** Throw `CommandFailed` when the exit code is not 0. */
  readonly check?: boolean | undefined;
}

export interface StartOptions extends CommandOptions {
  /** Keep standard input open for `write`. */
  readonly stdin?: boolean | undefined;
  /** Run on a terminal of this size. */
  readonly pty?: PtySize | undefined;
}

/** Of a command in a session, whose directory, variables and user are the session's. */
export type SessionExecOptions = Pick<
  ExecOptions,
  'stdin' | 'check' | 'timeout' | 'maxOutputBytes' | 'signal'
>;
export type SessionStartOptions = Pick<
  StartOptions,
  'stdin' | 'timeout' | 'maxOutputBytes' | 'signal'
>;

const OUTPUT_BYTES_DEFAULT = 64 * MIB;

export function execSpecOf(
  command: CommandLine,
  options: Omit<ExecOptions, 'stdin'> & Omit<StartOptions, 'stdin'>,
  session?: string,
): ExecSpec {
  const { cwd, env, user, timeout, pty, maxOutputBytes = OUTPUT_BYTES_DEFAULT } = options;
  return present({
    ...(typeof command === 'string' ? { shell: command } : { argv: [...command] }),
    ...{ session, cwd, env, user, pty, outputBytesMax: maxOutputBytes },
    timeoutMs: timeout === undefined ? undefined : Math.max(1, Math.round(timeout * SECOND_MS)),
  });
}
