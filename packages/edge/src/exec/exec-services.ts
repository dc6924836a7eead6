import type { Clock, ExecId, Random, SandboxId } from '@dsec/std';
import type { WebSocketChannel } from '@dsec/transport';
import type { Journal } from '../journal/database.ts';
import type { EventLog } from '../journal/event-log.ts';
import { createExecTable } from '../journal/exec-table.ts';
import type { Idempotency } from '../journal/idempotency.ts';
import { createSessionTable } from '../journal/session-table.ts';
import type { OperationContext } from '../operation.ts';
import type { SandboxEntry, Sandboxes } from '../sandboxes.ts';
import type { Agents } from './agents.ts';
import { attachExec } from './attach.ts';
import { type CommandLimits, createCommands } from './commands.ts';
import type { AttachQuery, OutputQuery } from './exec-shapes.ts';
import { createExecs, type Execs } from './execs.ts';
import { type OutputReply, readOutput } from './output-reader.ts';
import { createSessions, type Sessions } from './sessions.ts';

export interface ExecServicesOptions {
  readonly journal: Journal;
  readonly events: Pick<EventLog, 'append'>;
  readonly idempotency: Idempotency;
  readonly sandboxes: Sandboxes;
  readonly agents: Agents;
  readonly clock: Clock;
  readonly random: Random;
  /** A directory of the edge's own, 0700, which exists. */
  readonly spoolRoot: string;
  /** Kills by the sandbox's memory limit so far; asked when a command ends by SIGKILL. */
  readonly oomKills: (entry: SandboxEntry) => Promise<number>;
  readonly limits?: Partial<CommandLimits>;
}

/** Commands and sessions of an edge, put together. */
export interface ExecServices {
  readonly execs: Execs;
  readonly sessions: Sessions;
  /** See `readOutput`. */
  readOutput(
    entry: SandboxEntry,
    id: ExecId,
    query: OutputQuery,
    context: OperationContext,
  ): Promise<OutputReply>;
  /** See `attachExec`. Resolves when it is over; the channel is the caller's to close. */
  attach(
    entry: SandboxEntry,
    id: ExecId,
    query: AttachQuery,
    channel: WebSocketChannel,
    signal: AbortSignal,
  ): Promise<void>;
  /** Commands of a sandbox that have not ended. */
  activeCount(id: SandboxId): number;
  /** Once, after the sandboxes were recovered: finds the commands that an earlier edge has left. */
  recover(): void;
}

/** Registers its hooks with `sandboxes`; tables are those of `EXEC_TABLE` and `SESSION_TABLE`. */
export function createExecServices(options: ExecServicesOptions): ExecServices {
  const { journal, sandboxes, clock } = options;
  const table = createExecTable(journal);
  const sessionTable = createSessionTable(journal);
  const sessions = createSessions({ ...options, table: sessionTable });
  const commands = createCommands({ ...options, table, onSessionGone: sessions.ended });
  sandboxes.hook({ forgotten: (id) => sessionTable.removeAll(id) });
  return {
    execs: createExecs({ ...options, table, commands, sessions: sessionTable }),
    sessions,
    readOutput: (...request) => readOutput(commands, clock, ...request),
    attach: (...request) => attachExec({ commands, table, sandboxes }, ...request),
    activeCount: commands.activeCount,
    recover() {
      for (const id of sessionTable.sandboxes()) {
        if (sandboxes.find(id) === undefined) sessionTable.removeAll(id);
      }
      commands.recover();
    },
  };
}
