import {
  type ExecSpec,
  type ExecStartFields,
  type PtySize,
  WINDOW_BYTES_MAX,
} from '@dsec/protocol';
import { DsecError, type ExecId, KIB } from '@dsec/std';
import type { ProcessDefaults } from '../sandboxes.ts';
import type { SessionSpec } from './exec-shapes.ts';

/** Output that aether keeps unacknowledged for each channel, if there is so much: the most that it can. */
export const EXEC_WINDOW_BYTES = WINDOW_BYTES_MAX;
const ENVIRONMENT_BYTES_MAX = 64 * KIB;
/** All arguments together, with what a frame adds to each. */
const ARGUMENTS_BYTES_MAX = 160 * KIB;
const ARGUMENT_HEADER_BYTES = 8;
const COMMAND_LENGTH_MAX = 256;

/** A command with every default settled. Plain JSON, so that a restarted edge can send it. */
export interface SettledSpec {
  readonly argv?: readonly string[];
  readonly shell?: string;
  readonly session?: string;
  readonly cwd?: string;
  readonly env: readonly string[];
  readonly user?: string;
  readonly stdin: boolean;
  readonly pty?: PtySize;
  readonly timeoutMs?: number;
}

/** A session with every default settled. Plain JSON. */
export interface SettledSession {
  readonly argv?: readonly string[];
  readonly cwd: string;
  readonly env: readonly string[];
  readonly user: string;
  readonly pty?: { readonly rows: number; readonly columns: number };
}

/** The one place where a request gets its defaults. Throws `invalid-argument`. */
export function settleSpec(spec: ExecSpec, defaults: ProcessDefaults): SettledSpec {
  if ((spec.argv === undefined) === (spec.shell === undefined)) {
    throw invalid('argv', 'a command has exactly one of argv and shell');
  }
  const { argv, shell, session, pty, timeoutMs } = spec;
  if (argv !== undefined) checkArguments(argv);
  const own = {
    ...(argv === undefined ? {} : { argv }),
    ...(shell === undefined ? {} : { shell }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    // A terminal is open in both directions for as long as it is there.
    stdin: spec.stdin === true || pty !== undefined,
  };
  if (session !== undefined) {
    checkSessionCommand(spec);
    return { ...own, session, env: [] };
  }
  return {
    ...own,
    ...(pty === undefined ? {} : { pty }),
    cwd: spec.cwd ?? defaults.cwd,
    user: spec.user ?? defaults.user,
    env: environmentOf({ ...defaults.env, ...spec.env }),
  };
}

/** The same for a session. */
export function settleSession(spec: SessionSpec, defaults: ProcessDefaults): SettledSession {
  const { shell, pty } = spec;
  return {
    ...(shell === undefined ? {} : { argv: shell }),
    ...(pty === undefined ? {} : { pty }),
    cwd: spec.cwd ?? defaults.cwd,
    user: spec.user ?? defaults.user,
    env: environmentOf({ ...defaults.env, ...spec.env }),
  };
}

function checkArguments(argv: readonly string[]): void {
  const bytes = argv.reduce(
    (sum, word) => sum + Buffer.byteLength(word) + ARGUMENT_HEADER_BYTES,
    0,
  );
  if (bytes <= ARGUMENTS_BYTES_MAX) return;
  throw new DsecError('too-large', `the arguments take ${bytes} bytes, more than 160 KiB`, {
    details: { field: 'argv' },
  });
}

function checkSessionCommand(spec: ExecSpec): void {
  for (const field of ['argv', 'cwd', 'env', 'user', 'pty'] as const) {
    if (spec[field] === undefined) continue;
    throw invalid(field, `${field} is the session's; a command in it is shell text`);
  }
}

/** `NAME=value` each. */
export function environmentOf(env: Readonly<Record<string, string>>): string[] {
  const lines = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
  if (bytes <= ENVIRONMENT_BYTES_MAX) return lines;
  throw new DsecError('too-large', `the environment takes ${bytes} bytes, more than 64 KiB`, {
    details: { field: 'env' },
  });
}

/** As the agent is told. */
export function startFieldsOf(
  execId: ExecId,
  spec: SettledSpec,
  trace: Uint8Array | undefined,
): ExecStartFields {
  const { argv, shell, session, cwd, user, pty, timeoutMs } = spec;
  return {
    execId,
    ...(argv === undefined ? {} : { argv: argv.map((word) => Buffer.from(word)) }),
    ...(shell === undefined ? {} : { shell: Buffer.from(shell) }),
    ...(session === undefined ? {} : { sessionId: session }),
    ...(cwd === undefined ? {} : { cwd: Buffer.from(cwd) }),
    ...(user === undefined ? {} : { user }),
    ...(pty === undefined ? {} : { pty }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(trace === undefined ? {} : { trace }),
    env: spec.env.map((line) => Buffer.from(line)),
    stdinOpen: spec.stdin,
    windowBytes: EXEC_WINDOW_BYTES,
  };
}

/** The beginning of a command, to show. */
export function commandText(spec: SettledSpec): string {
  const text = spec.shell ?? (spec.argv ?? []).join(' ');
  return text.slice(0, COMMAND_LENGTH_MAX).replace(/[\ud800-\udbff]$/, '');
}

function invalid(field: string, problem: string): DsecError {
  return new DsecError('invalid-argument', problem, { details: { field } });
}
