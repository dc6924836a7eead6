import type { AgentFields, AgentStream, StreamFrame } from '@dsec/backend';
import { asDsecError } from '@dsec/std';
import { broken, type FileAgent, fileError } from './file-agent.ts';
import { beginRawTransfer, RAW_BYTES_MIN, type RawTransfer } from './raw-transfer.ts';
import { createTransferGuard, type TransferGuard } from './transfer-guard.ts';

/** Where the bytes of a file go. */
interface Sink {
  readonly stream: AgentStream;
  write(bytes: Uint8Array): Promise<void>;
  /** Says that all have been written, and how many. */
  end(bytes: number): Promise<void>;
  close(): void;
}

/**
 * Writes a file of any length as fast as the agent takes it. The file appears when the body has ended; a body
 * that throws, a caller that gives up and an edge that dies leave the old one. `bytesExpected`, absent where
 * nobody knows, only chooses the way. Throws what the agent answers, or what the body throws.
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
    const isLarge = bytesExpected === undefined || bytesExpected >= RAW_BYTES_MIN;
    const raw = isLarge ? await beginRawTransfer(agent, 'file-write', fields, guard) : undefined;
    const sink = raw === undefined ? await framedSink(agent, fields, guard) : rawSink(raw);
    await writeTo(agent, sink, body, guard);
  } catch (thrown) {
    throw fileError(thrown);
  } finally {
    guard.stop();
  }
}

/** However the stream ends before the end was said: the agent then gives the file up. */
async function writeTo(
  { link }: FileAgent,
  sink: Sink,
  body: AsyncIterable<Uint8Array>,
  guard: TransferGuard,
): Promise<void> {
  const { stream } = sink;
  let sent = 0;
  let hasEnded = false;
  let isDone = false;
  const answer = stream.receive(guard.signal);
  answer.then(
    ({ type }) => hasEnded || guard.fail(broken(link, `${type} before the end of a file`)),
    (thrown) => guard.fail(asDsecError(thrown)),
  );
  try {
    for await (const chunk of body) {
      await guard.step(sink.write(chunk));
      sent += chunk.byteLength;
    }
    guard.signal.throwIfAborted();
    hasEnded = true;
    await guard.step(sink.end(sent));
    checkDone(link, await guard.step(answer), sent);
    isDone = true;
  } finally {
    stream.leave({ cancel: !isDone });
    sink.close();
  }
}

async function framedSink(
  { link }: FileAgent,
  fields: AgentFields<'file-write'>,
  guard: TransferGuard,
): Promise<Sink> {
  const stream = link.open();
  try {
    await guard.step(stream.send('file-write', fields));
  } catch (thrown) {
    stream.leave({ cancel: true });
    throw thrown;
  }
  return {
    stream,
    write: (bytes) => stream.write(bytes, guard.signal),
    end: () => stream.endInput(),
    close: () => {},
  };
}

/** The bytes go over a connection of their own, and on the stream how many there were (THREATS A7). */
function rawSink({ stream, raw }: RawTransfer): Sink {
  return {
    stream,
    async write(bytes) {
      // Where the agent has closed it nothing drains any more, and the stream says why.
      if (!raw.write(bytes)) await new Promise((resolve) => raw.once('drain', resolve));
    },
    end(bytes) {
      raw.end();
      return stream.endInput(bytes);
    },
    close: () => void raw.destroy(),
  };
}

function checkDone(link: FileAgent['link'], frame: StreamFrame, sent: number): void {
  if (frame.type !== 'done') throw broken(link, `${frame.type} on the stream of a file`);
  if (frame.fields.bytes === sent) return;
  throw broken(link, `${frame.fields.bytes} bytes of a file were taken, ${sent} were sent`);
}
