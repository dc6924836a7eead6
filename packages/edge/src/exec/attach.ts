/**
 * The WebSocket of an attached command (attach.ts of the protocol): output from any offset while the client
 * acknowledges, stdin while the sandbox takes it. Any number of clients may be attached; each is as slow as
 * it likes and loses only its own output, which is announced.
 */
import {
  ATTACH_DATA_BYTES_MAX,
  ATTACH_WINDOW_BYTES,
  AttachClientMessage,
  type AttachServerMessage,
  check,
  decodeAttachData,
  encodeAttachData,
} from '@dsec/protocol';
import { asDsecError, assertNever, DsecError, type ExecId, toErrorBody } from '@dsec/std';
import type { WebSocketChannel } from '@dsec/transport';
import type { ExecTable } from '../journal/exec-table.ts';
import type { SandboxEntry, Sandboxes } from '../sandboxes.ts';
import { type Command, type OutputChannel, sendSignal, whenAttached } from './command.ts';
import { confirmInput, type InputPiece, writeInput } from './command-input.ts';
import type { Commands, FoundCommand } from './commands.ts';
import type { AttachQuery } from './exec-shapes.ts';
import { viewOfCommand, viewOfRow } from './exec-view.ts';
import type { Spool } from './spool.ts';
import { createWakers, type Wakers } from './wakers.ts';

export interface AttachOptions {
  readonly commands: Commands;
  readonly table: ExecTable;
  readonly sandboxes: Sandboxes;
}

/** Signals and sizes of one client that wait for the sandbox. */
const CONTROLS_MAX = 64;

/** One attached client. */
interface Client {
  readonly options: AttachOptions;
  readonly entry: SandboxEntry;
  readonly channel: WebSocketChannel;
  readonly found: FoundCommand;
  readonly signal: AbortSignal;
  readonly sent: Record<OutputChannel, number>;
  readonly acked: Record<OutputChannel, number>;
  /** Woken by acknowledgements and by stdin that came. */
  readonly changes: Wakers;
  readonly input: { pieces: InputPiece[]; bytes: number };
  controls: { count: number; last: Promise<unknown> };
}

/**
 * Serves a client until the command has ended and everything was sent, or the client leaves. An error is
 * told, then thrown.
 */
export async function attachExec(
  options: AttachOptions,
  entry: SandboxEntry,
  id: ExecId,
  query: AttachQuery,
  channel: WebSocketChannel,
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const release = options.sandboxes.hold(entry);
  try {
    const found = options.commands.find(entry, id);
    const spools = options.commands.spools(found);
    const { stdoutOffset = 0, stderrOffset = 0 } = query;
    const client: Client = {
      ...{ options, entry, channel, found, changes: createWakers() },
      signal: AbortSignal.any([signal, stop.signal]),
      sent: { stdout: stdoutOffset, stderr: stderrOffset },
      acked: { stdout: stdoutOffset, stderr: stderrOffset },
      input: { pieces: [], bytes: 0 },
      controls: { count: 0, last: Promise.resolve() },
    };
    const stdinOffset = found.alive?.input.offset ?? 0;
    await tell(client, { type: 'attached', exec: viewOf(found), stdinOffset });
    const output = Promise.all([
      pumpOutput(client, 'stdout', spools.stdout),
      pumpOutput(client, 'stderr', spools.stderr),
    ]).then(() => tellExit(client));
    const left = takeMessages(client);
    await Promise.race([output, left, pumpInput(client)]);
  } catch (thrown) {
    const error = asDsecError(thrown);
    await send(channel, { type: 'error', error: toErrorBody(error) }).catch(() => {});
    throw error;
  } finally {
    release();
    stop.abort(new DsecError('cancelled', 'the client has left'));
  }
}

function viewOf({ alive, row }: FoundCommand) {
  return alive === undefined ? viewOfRow(row) : viewOfCommand(alive);
}

const send = (channel: WebSocketChannel, message: AttachServerMessage, signal?: AbortSignal) =>
  channel.send(JSON.stringify(message), signal);

const tell = ({ channel, signal }: Client, message: AttachServerMessage) =>
  send(channel, message, signal);

/** Sends one output to its end, never more than a window beyond what the client has acknowledged. */
async function pumpOutput(client: Client, channel: OutputChannel, spool: Spool): Promise<void> {
  const { sent, acked, signal } = client;
  for (;;) {
    await spool.waitBeyond(sent[channel], signal);
    const piece = spool.read(sent[channel], ATTACH_DATA_BYTES_MAX);
    if (piece.offset > sent[channel]) {
      const gap = {
        type: 'gap',
        channel,
        offset: sent[channel],
        nextOffset: piece.offset,
      } as const;
      await tell(client, gap);
      sent[channel] = piece.offset;
      acked[channel] = Math.max(acked[channel], piece.offset);
    }
    if (piece.data.byteLength > 0) {
      sent[channel] += piece.data.byteLength;
      await client.channel.send(encodeAttachData({ channel, ...piece }), signal);
    } else if (spool.ended) break;
    while (sent[channel] - acked[channel] > ATTACH_WINDOW_BYTES - ATTACH_DATA_BYTES_MAX) {
      await client.changes.wait(signal);
    }
  }
  await tell(client, { type: 'end', channel, offset: spool.totalBytes });
}

async function tellExit(client: Client): Promise<void> {
  const { alive } = client.found;
  while (alive !== undefined && alive.outcome === undefined) {
    await alive.changes.wait(client.signal);
  }
  await tell(client, { type: 'exit', exec: viewOf(client.found) });
}

/** Resolves when the client has left. */
async function takeMessages(client: Client): Promise<void> {
  for await (const message of client.channel.messages()) {
    if (typeof message === 'string') takeControl(client, parse(message));
    else {
      const { channel, offset, data } = decodeAttachData(message);
      if (channel !== 'stdin') throw new DsecError('protocol', `a client does not send ${channel}`);
      takeInput(client, { offset, data, end: false });
    }
  }
}

function parse(text: string): AttachClientMessage {
  try {
    return check(AttachClientMessage, JSON.parse(text), 'message');
  } catch (cause) {
    throw new DsecError('protocol', 'attach: a message that is none', { cause });
  }
}

function takeControl(client: Client, message: AttachClientMessage): void {
  switch (message.type) {
    case 'ack': {
      const { channel, offset } = message;
      if (offset > client.sent[channel]) throw new DsecError('protocol', 'an ack of unsent bytes');
      client.acked[channel] = Math.max(client.acked[channel], offset);
      client.changes.wakeAll();
      return;
    }
    case 'stdin-end':
      takeInput(client, { offset: message.offset, data: new Uint8Array(0), end: true });
      return;
    case 'resize': {
      const { rows, columns } = message;
      steer(client, (command) => sendResize(client, command, rows, columns));
      return;
    }
    case 'signal': {
      const { signal, scope } = message;
      steer(client, (command) => sendSignal(command, { signal, scope }, client.signal));
      return;
    }
    default:
      assertNever(message);
  }
}

async function sendResize(client: Client, command: Command, rows: number, columns: number) {
  if (command.row.spec.pty === undefined) return;
  const { stream } = await whenAttached(command, client.signal);
  await stream.send('resize', { rows, columns });
}

/** One after the other, beside the messages, so that acknowledgements never wait behind them. */
function steer(client: Client, act: (command: Command) => Promise<void>): void {
  const { alive } = client.found;
  if (alive === undefined) return;
  const { controls } = client;
  if (controls.count >= CONTROLS_MAX) throw new DsecError('overloaded', 'too many signals wait');
  controls.count += 1;
  const { options, entry, signal } = client;
  controls.last = controls.last
    .then(() => options.sandboxes.requireRunning(entry.id, { signal }))
    .then(() => act(alive))
    // The command has ended, or the client; both are told elsewhere.
    .catch(() => {})
    .finally(() => {
      controls.count -= 1;
    });
}

function takeInput({ input, changes }: Client, piece: InputPiece): void {
  input.bytes += piece.data.byteLength;
  if (input.bytes > ATTACH_WINDOW_BYTES) {
    throw new DsecError('protocol', 'more stdin than a window was sent without waiting for acks');
  }
  input.pieces.push(piece);
  changes.wakeAll();
}

/** Hands stdin to the command and acknowledges what it has taken. Never resolves. */
async function pumpInput(client: Client): Promise<never> {
  const { input, changes, signal, options, entry, found } = client;
  for (;;) {
    const [...pieces] = input.pieces.splice(0);
    if (pieces.length === 0) {
      await changes.wait(signal);
      continue;
    }
    // What comes for a command that has ended is lost, as a pipe without reader would have it.
    if (found.alive === undefined || found.alive.outcome !== undefined) {
      for (const { data } of pieces) input.bytes -= data.byteLength;
      continue;
    }
    await options.sandboxes.requireRunning(entry.id, { signal });
    for (const piece of pieces) {
      await writeOrDrop(client, found.alive, piece);
      input.bytes -= piece.data.byteLength;
    }
    const offset = await confirmInput(found.alive, signal).catch(() => undefined);
    if (offset !== undefined) await tell(client, { type: 'stdin-ack', offset });
  }
}

async function writeOrDrop({ options, signal }: Client, command: Command, piece: InputPiece) {
  try {
    await writeInput(command, options.table, piece, signal);
  } catch (thrown) {
    const hasEnded = command.exit !== undefined || command.outcome !== undefined;
    if (!hasEnded) throw thrown;
  }
}
