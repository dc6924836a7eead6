import type { Duplex } from 'node:stream';
import { type AgentFields, type AgentStream, openRaw, type StreamFrame } from '@dsec/backend';
import { NONCE_BYTES } from '@dsec/protocol';
import { DsecError, SECOND_MS } from '@dsec/std';
import { broken, type FileAgent, fileError } from './file-agent.ts';
import { RAW_BYTES_MIN } from './read-file.ts';
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
      const upload = await openUpload(agent, fields, guard);
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
    await stream.send('file-write', fields);
    for await (const chunk of body) await guard.step(stream.write(chunk, guard.signal));
    if (guard.signal.aborted) throw guard.signal.reason;
    await stream.endInput();
    checkDone(link, await guard.step(stream.receive(guard.signal)), stream.inputOffset);
    isDone = true;
  } finally {
    stream.leave({ cancel: !isDone });
  }
}

interface Upload {
  readonly stream: AgentStream;
  readonly raw: Duplex;
}

async function openUpload(
  { link, dial, random }: FileAgent,
  fields: AgentFields<'file-write'>,
  { signal }: TransferGuard,
): Promise<Upload | undefined> {
  const rawToken = random.bytes(NONCE_BYTES);
  const stream = link.open();
  try {
    await stream.send('file-write', { ...fields, rawToken });
    return { stream, raw: await openRaw(dial, rawToken, signal) };
  } catch (thrown) {
    stream.leave({ cancel: true });
    if (signal.aborted) throw thrown;
    return undefined;
  }
}

async function writeRaw(
  { link }: FileAgent,
  { stream, raw }: Upload,
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
    if (guard.signal.aborted) throw guard.signal.reason;
    if (sink.isLost()) throw await refusal(answer);
    raw.end();
    checkDone(link, await guard.step(orAborted(answer, guard.signal)), sent);
  } catch (thrown) {
    // The end of a raw stream is the end of the file: the agent must have given up before it sees one.
    await giveUp(link, stream, answer);
    throw thrown;
  } finally {
    stream.leave();
    sink.stop();
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
  guard.signal.addEventListener('abort', settle, { once: true });
  return {
    isLost: () => lost,
    /** False when no more can be written. */
    async write(chunk: Uint8Array): Promise<boolean> {
      if (lost || guard.signal.aborted) return false;
      if (raw.write(chunk)) return true;
      const drained = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await guard.step(drained);
      return !lost && !guard.signal.aborted;
    },
    stop() {
      guard.signal.removeEventListener('abort', settle);
      raw.off('close', onLost);
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
    await stream.send('cancel', {});
    await withinTime(answer);
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

function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

function checkDone(link: FileAgent['link'], frame: StreamFrame, sent: number): void {
  if (frame.type !== 'done') throw broken(link, `${frame.type} on the stream of a file`);
  if (frame.fields.bytes === sent) return;
  throw broken(link, `${frame.fields.bytes} bytes of a file were taken, ${sent} were sent`);
}
