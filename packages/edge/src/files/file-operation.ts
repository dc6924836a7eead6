import type { AgentFields, AgentLink, Backend, HostFrameType, StreamFrame } from '@dsec/backend';
import type { FileAttributesFields } from '@dsec/protocol';
import { orAborted, type Random, type SandboxId } from '@dsec/std';
import { startDeadline } from '@dsec/transport';
import type { Agents } from '../exec/agents.ts';
import { type OperationContext, traceBytes } from '../operation.ts';
import type { SandboxEntry, Sandboxes } from '../sandboxes.ts';
import { broken, type FileAgent, fileError } from './file-agent.ts';
import { pathOf } from './file-names.ts';
import { STALL_MS } from './transfer-guard.ts';

export interface FileOperationParts {
  readonly sandboxes: Sandboxes;
  readonly agents: Pick<Agents, 'link'>;
  readonly backend: Pick<Backend, 'dial'>;
  readonly random: Random;
}

/** One operation in one sandbox, which runs. */
export interface FileOperation extends FileAgent {
  readonly entry: SandboxEntry;
  readonly trace: Uint8Array;
  readonly signal: AbortSignal;
}

export async function beginFileOperation(
  { sandboxes, agents, backend, random }: FileOperationParts,
  id: SandboxId,
  { signal, traceparent }: OperationContext,
): Promise<FileOperation> {
  const entry = await sandboxes.requireRunning(id, { signal });
  return {
    ...{ entry, random, signal },
    link: await agents.link(entry.key, signal),
    dial: (dialSignal) => backend.dial(entry.key, dialSignal),
    trace: traceBytes(traceparent),
    onUse: () => sandboxes.touch(entry),
  };
}

/** What every request about a file names. */
export interface NamedFile {
  readonly path?: string;
  readonly pathBase64?: string;
  readonly user?: string;
}

export function commonFields(
  operation: FileOperation,
  named: NamedFile,
  toPath: typeof pathOf = pathOf,
) {
  const { cwd } = operation.entry.defaults;
  const path = toPath({ text: named.path, base64: named.pathBase64 }, 'path', cwd);
  return { path, user: userOf(operation, named), trace: operation.trace };
}

/** Whose rights are used: those asked for, else the sandbox's own. */
export function userOf({ entry }: FileOperation, { user }: NamedFile): string {
  return user ?? entry.defaults.user;
}

export function modeOf({ mode }: { readonly mode?: number }): { readonly mode?: number } {
  return mode === undefined ? {} : { mode };
}

export async function statFile(
  operation: FileOperation,
  { path, user }: { readonly path: Uint8Array; readonly user: string },
  followSymlinks = true,
): Promise<FileAttributesFields> {
  const { trace } = operation;
  const answer = await askAgent(operation, 'file-stat', { path, user, followSymlinks, trace });
  if (answer.type === 'file-attributes') return answer.fields;
  throw broken(operation.link, `${answer.type} to file-stat`);
}

/** A request with one answer. Throws what the agent answers, as far as it can be believed. */
export async function askAgent<T extends HostFrameType>(
  { link, signal }: { readonly link: AgentLink; readonly signal: AbortSignal | undefined },
  type: T,
  fields: AgentFields<T>,
  timeoutMs: number = STALL_MS,
): Promise<StreamFrame> {
  const deadline = startDeadline(timeoutMs, signal);
  try {
    // An agent that reads nothing holds up the sending as well.
    return await orAborted(link.request(type, fields, deadline.signal), deadline.signal);
  } catch (thrown) {
    throw fileError(thrown);
  } finally {
    deadline.stop();
  }
}
