import type { AgentFields, StreamFrame } from '@dsec/backend';
import { broken, type FileAgent, fileError } from './file-agent.ts';
import { beginRawTransfer, RAW_BYTES_MIN, type RawTransfer } from './raw-transfer.ts';
import { createTransferGuard, type TransferGuard } from './transfer-guard.ts';

/**
 * The bytes of a file, read as fast as they are taken and never kept. `bytesExpected` only chooses the way.
 * Throws what the agent answers, before the first byte or in the middle, and `protocol` when the bytes are
 * not as many as it says.
 */
export async function* readFile(
  agent: FileAgent,
  fields: AgentFields<'file-read'>,
  bytesExpected: number,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const guard = createTransferGuard(signal, agent.onUse);
  try {
    if (bytesExpected >= RAW_BYTES_MIN) {
      const download = await beginRawTransfer(agent, 'file-read', fields, guard);
      if (download !== undefined) return yield* readRaw(agent, fields, download, guard);
    }
    yield* readFrames(agent, fields, guard);
  } catch (thrown) {
    throw fileError(thrown);
  } finally {
    guard.stop();
  }
}

async function* readFrames(
  { link }: FileAgent,
  fields: AgentFields<'file-read'>,
  guard: TransferGuard,
): AsyncGenerator<Uint8Array> {
  const stream = link.open();
  let received = 0;
  let isDone = false;
  try {
    await guard.step(stream.send('file-read', fields));
    while (!isDone) {
      const frame = await guard.step(stream.receive(guard.signal));
      if (frame.type === 'stdout') {
        received += frame.data.byteLength;
        checkLength(link, fields, received);
        if (frame.data.byteLength > 0) yield frame.data;
      } else {
        checkDone(link, frame, received);
        isDone = true;
      }
    }
  } finally {
    stream.leave({ cancel: !isDone });
  }
}

async function* readRaw(
  { link }: FileAgent,
  fields: AgentFields<'file-read'>,
  { stream, raw }: RawTransfer,
  guard: TransferGuard,
): AsyncGenerator<Uint8Array> {
  const answer = stream.receive(guard.signal);
  answer.catch(() => {});
  let received = 0;
  let isDone = false;
  try {
    const chunks = (raw as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    // Its end, and even its loss, says nothing: the answer does.
    const next = () => chunks.next().catch(() => ({ done: true, value: undefined }) as const);
    for (let chunk = await guard.step(next()); !chunk.done; chunk = await guard.step(next())) {
      received += chunk.value.byteLength;
      checkLength(link, fields, received);
      yield chunk.value;
    }
    checkDone(link, await guard.step(answer), received);
    isDone = true;
  } finally {
    stream.leave({ cancel: !isDone });
    raw.destroy();
  }
}

function checkLength(
  link: FileAgent['link'],
  { lengthBytes }: AgentFields<'file-read'>,
  received: number,
): void {
  if (lengthBytes === undefined || received <= lengthBytes) return;
  throw broken(link, `${received} bytes of a file where ${lengthBytes} were asked for`);
}

function checkDone(link: FileAgent['link'], frame: StreamFrame, received: number): void {
  if (frame.type !== 'done') throw broken(link, `${frame.type} on the stream of a file`);
  if (frame.fields.bytes === received) return;
  throw broken(link, `${received} bytes of a file came, ${frame.fields.bytes} were sent`);
}
