import type { AgentLink, SinkStream } from '@dsec/backend';
import type { Clock, ExecId, SandboxId } from '@dsec/std';
import { crashPoint } from '../crash-point.ts';
import type { ExecTable } from '../journal/exec-table.ts';

/**
 * What agents are told of commands whose end is durable: that they may forget them. It is in no hurry, and
 * wakes an agent: so it goes out for many commands at once, and for those of a sandbox that ends, never.
 */
export interface ExitAcks {
  add(stream: Pick<SinkStream, 'send'>, execId: ExecId): void;
}

const DELAY_MS = 20;
/** So many wait at most: agents remember a bounded number. */
const WAITING_MAX = 64;

export function createExitAcks(clock: Pick<Clock, 'sleep'>): ExitAcks {
  let waiting: (() => Promise<void>)[] = [];
  const tell = () => {
    const told = waiting;
    waiting = [];
    // What does not arrive is said by `forgetEnded`.
    for (const send of told) send().catch(() => {});
    if (told.length > 0) crashPoint('exec.after-ack');
  };
  return {
    add(stream, execId) {
      waiting.push(() => stream.send('exec-exit-ack', { execId }));
      if (waiting.length >= WAITING_MAX) tell();
      else if (waiting.length === 1) void clock.sleep(DELAY_MS).then(tell);
    },
  };
}

/** Commands whose end the agent may not have been told of when a link was lost or an edge died. */
const UNTOLD_MAX = 256;

/** Tells an agent, on a new link, which commands it may forget. It ignores what it does not know. */
export function forgetEnded(table: ExecTable, link: AgentLink, sandbox: SandboxId): void {
  const ended = table.newestEnded(sandbox, UNTOLD_MAX);
  if (ended.length === 0) return;
  const nobody = { frame: () => {}, failed: () => {}, inputCredit: () => {} };
  const stream = link.openSink(nobody);
  for (const execId of ended) void stream.send('exec-exit-ack', { execId }).catch(() => {});
  stream.leave();
}
