/** A worker of a benchmark: opens what its first argument says, and answers until nobody asks any more. */
import { openEdgeWorker } from '../edge/edge-worker.ts';
import { openPeersWorker } from '../peers/peers-worker.ts';
import { openSdkWorker } from '../sdk/sdk-worker.ts';
import { type AnswerMessage, type CallMessage, type Commands, OPENED } from './messages.ts';

export interface OpenedWorker {
  readonly commands: Commands;
  /** Undoes everything; rejects with what is left. */
  close(): Promise<void>;
}

const ROLES: Readonly<
  Record<string, (options: never, signal: AbortSignal) => Promise<OpenedWorker>>
> = { edge: openEdgeWorker, peers: openPeersWorker, sdk: openSdkWorker };

const [role = '', options = '{}'] = process.argv.slice(2);
const open = ROLES[role];
if (open === undefined || process.send === undefined) {
  throw new Error('this is a part of npm run bench');
}
const gone = new AbortController();
process.once('disconnect', () => gone.abort(new Error('the benchmark was ended')));

const send = (message: AnswerMessage) => {
  if (process.connected) process.send?.(message);
};
const errorText = (thrown: unknown) =>
  thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
const answer = async (id: number, work: () => unknown) => {
  try {
    send({ id, value: await work() });
  } catch (thrown) {
    send({ id, error: errorText(thrown) });
  }
};

const worker = await open(JSON.parse(options) as never, gone.signal);
const busy = new Set<Promise<void>>();
process.on('message', ({ id, command, input }: CallMessage) => {
  const work = answer(id, () => worker.commands[command]?.(input));
  busy.add(work);
  void work.then(() => busy.delete(work));
});
send({ id: OPENED, value: undefined });
if (!gone.signal.aborted) {
  await new Promise((resolve) => gone.signal.addEventListener('abort', resolve, { once: true }));
}
await Promise.allSettled(busy);
try {
  await worker.close();
} catch (thrown) {
  process.stderr.write(`${errorText(thrown)}\n`);
  process.exitCode = 1;
}
