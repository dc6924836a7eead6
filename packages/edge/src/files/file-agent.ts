import type { Duplex } from 'node:stream';
import type { AgentLink } from '@dsec/backend';
import { asDsecError, DsecError, type ErrorCode, type Random, REMEDIES } from '@dsec/std';

/** The way to the agent of one running sandbox, for one operation. */
export interface FileAgent {
  readonly link: AgentLink;
  /** Makes a further connection, for raw streams. */
  readonly dial: (signal?: AbortSignal) => Promise<Duplex>;
  readonly random: Random;
  /** The sandbox is in use. */
  readonly onUse: () => void;
}

/** What an agent answers that has changed nothing, or not all: a repetition may try again. */
export const FILE_REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'invalid-argument',
  'permission-denied',
  'not-found',
  'already-exists',
  'state-conflict',
  'storage-full',
  'too-large',
  'overloaded',
  'unsupported',
]);

/** What an operation on a file can end with. An agent that says anything else is not believed. */
const FILE_CODES: ReadonlySet<ErrorCode> = new Set([
  ...FILE_REFUSALS,
  ...(['unavailable', 'deadline-exceeded', 'cancelled', 'protocol', 'agent-lost'] as const),
]);

/**
 * What an operation on a file failed with, as the caller is told; by itself it is about the path.
 */
export function fileError(thrown: unknown): DsecError {
  const error = agentError(thrown);
  const { code, message, details } = error;
  // What has nothing of its own to say about a path stays what it is.
  if (details.about !== undefined || !Object.hasOwn(REMEDIES.path, code)) return error;
  return new DsecError(code, message, { cause: error, details: { about: 'path', ...details } });
}

/** The same of any request. `internal` is the agent's word for an errno without a code of its own, as EIO. */
export function agentError(thrown: unknown): DsecError {
  const error = asDsecError(thrown);
  if (FILE_CODES.has(error.code)) return error;
  const code = error.code === 'internal' ? 'unavailable' : 'protocol';
  return new DsecError(code, `the sandbox said: ${error.message}`, {
    cause: error,
    details: error.details,
  });
}

export function broken(link: AgentLink, problem: string): DsecError {
  const error = new DsecError('protocol', problem);
  link.close(error);
  return error;
}
