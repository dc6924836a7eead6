/**
 * A command that has not ended: its row, its spools, and its stream to the agent, which may be lost and made
 * again. What happens to it is in `command-life.ts`.
 */
import type { AgentFields, AgentLink, SinkStream } from '@dsec/backend';
import type { ExecExitFields } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import type { ReceiveCredit } from '@dsec/transport';
import type { ExecOutcome, ExecRow } from '../journal/exec-table.ts';
import type { SandboxEntry } from '../sandboxes.ts';
import type { Spool } from './spool.ts';
import type { Wakers } from './wakers.ts';

export type OutputChannel = 'stdout' | 'stderr';

export interface Command {
  readonly row: ExecRow;
  readonly entry: SandboxEntry;
  readonly stdout: Spool;
  readonly stderr: Spool;
  /** Woken by everything that changes below. */
  readonly changes: Wakers;
  /** The agent has said that it runs, once at least. */
  started: boolean;
  /** Present while it is attached: sent and received on. */
  attachment: Attachment | undefined;
  /** The way to the agent is being made. */
  attaching: boolean;
  /** The agent's word of its end, before it is durable. */
  exit: ExecExitFields | undefined;
  /** Durable. */
  outcome: ExecOutcome | undefined;
  readonly input: InputState;
  /** What waits in the spools is written at the end of the turn. */
  flushDue: boolean;
  /** Something could not be stored, and is tried again after a while. */
  retryDue: boolean;
  /** Ends its use of the sandbox. */
  readonly release: () => void;
  /** Somebody had a SIGKILL sent to it: nothing else is needed to explain its end. */
  killRequested: boolean;
  /** Kills by the memory limit that were known when it started. */
  readonly oomKillsBefore: number;
}

export interface Attachment {
  readonly link: AgentLink;
  readonly stream: SinkStream;
  readonly credits: Record<OutputChannel, ReceiveCredit>;
  /** The agent has answered: the command's place in stdin is known. */
  ready: boolean;
}

export interface InputState {
  /** Bytes handed to the agent. */
  offset: number;
  credit: number;
  /** Where it ends, once somebody has said so; noted in the row. */
  end: number | undefined;
  /** The end was sent on this attachment. */
  endSent: boolean;
  /** Writers come one after the other. */
  turn: Promise<unknown>;
}

const SIGKILL = 9;

/** Sends a signal, in a sandbox that runs. */
export async function sendSignal(
  command: Command,
  fields: AgentFields<'signal'>,
  signal?: AbortSignal,
): Promise<void> {
  const { stream } = await whenAttached(command, signal);
  if (fields.signal === SIGKILL) command.killRequested = true;
  await stream.send('signal', fields);
}

/** Its attachment, once the agent has answered. Rejects with `state-conflict` when the command has ended. */
export async function whenAttached(command: Command, signal?: AbortSignal): Promise<Attachment> {
  for (;;) {
    if (command.outcome !== undefined || command.exit !== undefined) {
      throw new DsecError('state-conflict', 'the command has ended');
    }
    if (command.attachment?.ready) return command.attachment;
    await command.changes.wait(signal);
  }
}
