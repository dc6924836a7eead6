import type { Duplex } from 'node:stream';
import type { AgentFields, AgentStream, StreamFrame } from '@dsec/backend';
import { DsecError, SECOND_MS } from '@dsec/std';
import { broken, type FileAgent, fileError } from './file-agent.ts';
import { beginRawTransfer, RAW_BYTES_MIN, type RawTransfer } from './raw-transfer.ts';
import { createTransferGuard, type TransferGuard } from './transfer-guard.ts';

/** How long an agent may take to say that it has given up a write, or why it closed the raw stream. */
const ANSWER_MS = 5 * SECOND_MS;

/**
 * Writes a file of any length as fast as the agent takes it. The file appears when the body has ended; a body
 * that throws, a caller that gives up and an edge that dies leave the old one. `bytesExpected` only chooses
 * the way. Throws what the agent answers, or what the body throws.
 */
export async function writeFile(
  agent: FileAgent,
  fields: AgentFields<'file-write'>,
  body: AsyncIterable<Uint8Array>,
  bytesExpected: number | undefined,
  signal?: AbortSignal,
): Promise<void> {
  const guard = createTransferGuard(signal, agent.onUse);
  try {
    if (bytesExpected === undefined || bytesExpected >= RAW_BYTES_MIN) {
      const upload = await beginRawTransfer(agent, 'file-write', fields, guard);
      if (upload !== undefined) return await writeRaw(agent, upload, body, guard);
    }
    await writeFrames(agent, fields, body, guard);
  } catch (thrown) {
    throw fileError(thrown);
  } finally {
    guard.stop();
  }
}

async function writeFrames(
  { link }: FileAgent,
  fields: AgentFields<'file-write'>,
  body: AsyncIterable<Uint8Array>,
  guard: TransferGuard,
): Promise<void> {
  const stream = link.open();
  let isDone = false;
  try {
    await guard.step(stream.send('file-write', fields));
    for await (const chunk of body) await guard.step(stream.write(chunk, guard.signal));
    guard.signal.throwIfAborted();
    await guard.step(stream.endInput());
    checkDone(link, await guard.step(stream.receive(guard.signal)), stream.inputOffset);
    isDone = true;
  } finally {
    stream.leave({ cancel: !isDone });
  }
}

async function writeRaw(
  { link }: FileAgent,
  { stream, raw }: RawTransfer,
  body: AsyncIterable<Uint8Array>,
  guard: TransferGuard,
): Promise<void> {
  const answer = stream.receive();
  answer.catch(() => {});
  const sink = createRawSink(raw, guard);
  try {
    let sent = 0;
    for await (const chunk of body) {
      if (!(await sink.write(chunk))) break;
      sent += chunk.byteLength;
    }
    guard.signal.throwIfAborted();
    if (sink.isLost()) throw await refusal(answer);
    raw.end();
    checkDone(link, await guard.step(answer), sent);
  } catch (thrown) {
    // The end of a raw stream is the end of the file: the agent must have given up before it sees one.
    await giveUp(link, stream, answer);
    throw thrown;
  } finally {
    stream.leave();
    raw.destroy();
  }
}

/** The bytes of a raw stream, one chunk after another, at the pace of its other end. */
function createRawSink(raw: Duplex, guard: TransferGuard) {
  let wake: (() => void) | undefined;
  let lost = raw.destroyed;
  const settle = () => wake?.();
  const onLost = () => {
    lost = true;
    settle();
  };
  raw.on('drain', settle).on('error', onLost).on('close', onLost);
  // Nothing is read from it; without a reader its end would not be seen.
  raw.resume();
  return {
    isLost: () => lost,
    /** False when no more can be written. */
    async write(chunk: Uint8Array): Promise<boolean> {
      guard.signal.throwIfAborted();
      if (lost) return false;
      if (raw.write(chunk)) return true;
      const drained = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await guard.step(drained);
      return !lost;
    },
  };
}

/** Why the agent has closed a raw stream early. */
async function refusal(answer: Promise<StreamFrame>): Promise<unknown> {
  try {
    await withinTime(answer);
  } catch (thrown) {
    return thrown;
  }
  return new DsecError('unavailable', 'the sandbox closed the stream before the end of the file');
}

/** Cancels, and returns when the agent has said that it will not put the file in its place. */
async function giveUp(
  link: FileAgent['link'],
  stream: AgentStream,
  answer: Promise<StreamFrame>,
): Promise<void> {
  try {
    await withinTime(stream.send('cancel', {}).then(() => answer));
  } catch (thrown) {
    // Without the link the agent puts nothing in its place either.
    if (thrown === LATE) link.close(new DsecError('agent-lost', 'a write could not be given up'));
  }
}

const LATE = new DsecError('agent-lost', 'the agent does not answer');

async function withinTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(LATE), ANSWER_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function checkDone(link: FileAgent['link'], frame: StreamFrame, sent: number): void {
  if (frame.type !== 'done') throw broken(link, `${frame.type} on the stream of a file`);
  if (frame.fields.bytes === sent) return;
  throw broken(link, `${frame.fields.bytes} bytes of a file were taken, ${sent} were sent`);
}
