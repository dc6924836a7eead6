import type { AgentFields, StreamFrame } from '@dsec/backend';
import { broken, type FileAgent, fileError } from './file-agent.ts';
import { createTransferGuard } from './transfer-guard.ts';

/**
 * Writes a file of any length as fast as the agent takes it. The file appears when the body has ended; a body
 * that throws, a caller that gives up and an edge that dies leave the old one. Throws what the agent answers,
 * or what the body throws.
 *
 * The bytes go in frames, never on a raw stream: there the end of the connection is the end of the file, and
 * the kernel ends it before the link when the edge is killed, so that a part would pass for the whole.
 */
export async function writeFile(
  agent: FileAgent,
  fields: AgentFields<'file-write'>,
  body: AsyncIterable<Uint8Array>,
  signal?: AbortSignal,
): Promise<void> {
  const { link } = agent;
  const guard = createTransferGuard(signal, agent.onUse);
  const stream = link.open();
  let hasEnded = false;
  let isDone = false;
  const answer = stream.receive(guard.signal);
  answer.then(
    ({ type }) => hasEnded || guard.fail(broken(link, `${type} before the end of a file`)),
    () => {},
  );
  try {
    await guard.step(stream.send('file-write', fields));
    for await (const chunk of body) await guard.step(stream.write(chunk, guard.signal));
    guard.signal.throwIfAborted();
    hasEnded = true;
    await guard.step(stream.endInput());
    checkDone(link, await guard.step(answer), stream.inputOffset);
    isDone = true;
  } catch (thrown) {
    throw fileError(thrown);
  } finally {
    stream.leave({ cancel: !isDone });
    guard.stop();
  }
}

function checkDone(link: FileAgent['link'], frame: StreamFrame, sent: number): void {
  if (frame.type !== 'done') throw broken(link, `${frame.type} on the stream of a file`);
  if (frame.fields.bytes === sent) return;
  throw broken(link, `${frame.fields.bytes} bytes of a file were taken, ${sent} were sent`);
}
