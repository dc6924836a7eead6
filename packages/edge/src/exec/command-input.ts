import { FRAME_DATA_BYTES_MAX } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import type { ExecTable } from '../journal/exec-table.ts';
import { type Attachment, type Command, whenAttached } from './command.ts';

export interface InputPiece {
  /** Of the first byte. What was taken before is dropped, so that a repetition writes nothing twice. */
  readonly offset: number;
  readonly data: Uint8Array;
  readonly end: boolean;
}

/**
 * Hands bytes of stdin to the agent as fast as the command reads. Rejects with `conflict` when bytes before
 * them are missing (`offset` in the details says from where on), `state-conflict` after the end of stdin or
 * of the command, and `unavailable` when the agent is lost on the way: then nobody knows how many arrived,
 * and the same call may be made again.
 */
export function writeInput(
  command: Command,
  table: ExecTable,
  piece: InputPiece,
  signal?: AbortSignal,
): Promise<void> {
  const turn = command.input.turn.then(() => writeNow(command, table, piece, signal));
  command.input.turn = turn.catch(() => {});
  return turn;
}

async function writeNow(
  command: Command,
  table: ExecTable,
  { offset, data, end }: InputPiece,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { input, row } = command;
  if (!row.spec.stdin) throw new DsecError('state-conflict', 'the command has no open stdin');
  const upTo = offset + data.byteLength;
  const hasEnded = command.exit !== undefined || command.outcome !== undefined;
  if (hasEnded && upTo <= Math.max(input.offset, input.end ?? 0)) return;
  const attachment = await whenAttached(command, signal);
  if (offset > input.offset) {
    throw new DsecError('conflict', `stdin was taken up to ${input.offset} only`, {
      details: { offset: input.offset },
    });
  }
  const isBehindEnd = input.end !== undefined && (upTo > input.end || (end && upTo < input.end));
  if (isBehindEnd) throw new DsecError('state-conflict', `stdin has ended at ${input.end}`);
  while (input.offset < upTo) {
    await waitForCredit(command, attachment, signal);
    const from = input.offset - offset;
    const bytes = Math.min(input.credit - input.offset, FRAME_DATA_BYTES_MAX, upTo - input.offset);
    const part = data.subarray(from, from + bytes);
    const at = input.offset;
    input.offset += bytes;
    await attachment.stream.writeAt(at, part, false);
  }
  if (!end) return;
  if (input.end === undefined) table.endStdin(row.id, upTo);
  input.end = upTo;
  sendInputEnd(command, attachment);
}

/** Says the end where all before it was handed on. The agent takes a repetition for what it is. */
export function sendInputEnd({ input }: Command, { stream }: Attachment): void {
  if (input.end !== input.offset || input.endSent) return;
  input.endSent = true;
  // Lost with the link; then the next attachment says it again.
  void stream.writeAt(input.offset, new Uint8Array(0), true).catch(() => {});
}

/** How far stdin was taken by the agent, as it says itself. */
export async function confirmInput(command: Command, signal?: AbortSignal): Promise<number> {
  if (command.outcome !== undefined || command.exit !== undefined) return command.input.offset;
  const { link } = await whenAttached(command, signal);
  const { offset } = command.input;
  await link.ping(signal);
  return offset;
}

async function waitForCredit(
  command: Command,
  attachment: Attachment,
  signal: AbortSignal | undefined,
): Promise<void> {
  while (command.input.credit <= command.input.offset) {
    await command.changes.wait(signal);
    if (command.exit !== undefined || command.outcome !== undefined) {
      throw new DsecError('state-conflict', 'the command has ended');
    }
    if (command.attachment === attachment) continue;
    throw new DsecError('unavailable', 'the agent was lost while stdin was written');
  }
}
