/**
 * The commands of all sandboxes of an edge: those that have not ended are objects, the others are rows.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentLink } from '@dsec/backend';
import { type Clock, DsecError, type ExecId, MIB, type SandboxId } from '@dsec/std';
import { crashPoint } from '../crash-point.ts';
import type { Journal } from '../journal/database.ts';
import type { EventLog } from '../journal/event-log.ts';
import type { ExecOutcome, ExecRow, ExecTable } from '../journal/exec-table.ts';
import type { SandboxEntry, Sandboxes } from '../sandboxes.ts';
import type { Agents } from './agents.ts';
import type { Command } from './command.ts';
import { attachCommand, type LifeContext, loseCommand, startCommand } from './command-life.ts';
import { createExitAcks, forgetEnded } from './exit-acks.ts';
import { keptOnDisk, newSpool, openEndedSpool, openSpool, type Spool } from './spool.ts';
import {
  createSpoolBudget,
  SPOOL_LIMITS,
  type SpoolBudget,
  type SpoolLimits,
} from './spool-budget.ts';
import { createWakers } from './wakers.ts';

export interface CommandLimits extends SpoolLimits {
  /** Rows kept of one sandbox: the oldest that have ended go first. */
  readonly commandsMax: number;
  /** Kept of each output where the request does not say; and the most that it may say. */
  readonly keptBytesDefault: number;
  readonly keptBytesMax: number;
}

export const COMMAND_LIMITS: CommandLimits = {
  ...SPOOL_LIMITS,
  commandsMax: 10_000,
  keptBytesDefault: 4 * MIB,
  keptBytesMax: 1024 * MIB,
};

export interface CommandsOptions {
  readonly journal: Journal;
  readonly events: Pick<EventLog, 'append'>;
  readonly table: ExecTable;
  readonly sandboxes: Sandboxes;
  readonly agents: Agents;
  readonly clock: Clock;
  /** A directory of its own, which exists. */
  readonly spoolRoot: string;
  readonly oomKills: (entry: SandboxEntry) => Promise<number>;
  /** The shell of a session has ended, as one of its commands has shown. */
  readonly onSessionGone: (entry: SandboxEntry, session: string) => void;
  readonly limits?: Partial<CommandLimits>;
}

/** What is shown of a command: alive, or as its row says. */
export type FoundCommand =
  | { readonly alive: Command; readonly row?: undefined }
  | { readonly alive?: undefined; readonly row: ExecRow };

export interface Commands {
  readonly limits: CommandLimits;
  /** Makes room among what is kept. Throws `overloaded` when there is none. */
  admit(entry: SandboxEntry): void;
  /** Inside a transaction: writes the row. The command is sent when the transaction is committed. */
  begin(entry: SandboxEntry, row: ExecRow, link: AgentLink, trace: Uint8Array): void;
  /** Throws `not-found`. */
  find(entry: SandboxEntry, id: ExecId): FoundCommand;
  spools(found: FoundCommand): { readonly stdout: Spool; readonly stderr: Spool };
  /** Commands that have not ended. */
  activeCount(id: SandboxId): number;
  /** Once, when the sandboxes are known again: finds the commands that an earlier edge has left. */
  recover(): void;
}

/** What is known of all commands. */
interface Roll {
  readonly options: CommandsOptions;
  readonly limits: CommandLimits;
  readonly budget: SpoolBudget;
  readonly counts: ReturnType<typeof createRowCounts>;
  readonly active: Map<ExecId, Command>;
  readonly bySandbox: Map<SandboxId, Set<Command>>;
  readonly oomKillsSeen: Map<SandboxId, number>;
}

export function createCommands(options: CommandsOptions): Commands {
  const { journal, table } = options;
  const limits = { ...COMMAND_LIMITS, ...options.limits };
  const roll: Roll = {
    ...{ options, limits, budget: createSpoolBudget(limits), counts: createRowCounts(table) },
    ...{ active: new Map(), bySandbox: new Map(), oomKillsSeen: new Map() },
  };
  const context = contextOf(roll);
  registerHooks(roll, context);
  return {
    limits,
    admit: (entry) => admit(roll, entry),
    begin(entry, row, link, trace) {
      table.insert(row);
      journal.afterCommit(() => {
        crashPoint('exec.after-row');
        roll.counts.add(entry.id, 1);
        startCommand(context, addCommand(roll, entry, row, newSpool), link, trace);
      });
    },
    find(entry, id) {
      const alive = roll.active.get(id);
      if (alive?.entry.id === entry.id) return { alive };
      const row = table.find(entry.id, id);
      if (row !== undefined) return { row };
      throw new DsecError('not-found', `there is no command ${id} in the sandbox`);
    },
    spools({ alive, row }) {
      if (alive !== undefined) return alive;
      if (row.outcome !== undefined) return endedSpools(roll, row, row.outcome);
      throw new DsecError('unavailable', 'the command is being found again');
    },
    activeCount: (id) => roll.bySandbox.get(id)?.size ?? 0,
    recover: () => recover(roll, context),
  };
}

function contextOf({ options, active, bySandbox, oomKillsSeen }: Roll): LifeContext {
  const { agents, table, journal, events, clock, sandboxes } = options;
  return {
    ...{ agents, table, journal, events, clock, exitAcks: createExitAcks(clock) },
    async oomKills(entry) {
      const count = await options.oomKills(entry);
      oomKillsSeen.set(entry.id, count);
      return count;
    },
    onEnding({ entry }, { state }) {
      const isListed = sandboxes.find(entry.id) !== undefined;
      if (state === 'exited' && isListed) sandboxes.noteFirstCommand(entry);
    },
    onEnded({ row, entry, outcome }) {
      const command = active.get(row.id);
      active.delete(row.id);
      const others = bySandbox.get(entry.id);
      if (command !== undefined) others?.delete(command);
      if (others?.size === 0) bySandbox.delete(entry.id);
      command?.release();
      const { session } = row.spec;
      // A shell reports codes of its commands: a signal is its own end.
      const isShellGone =
        outcome?.error?.code === 'not-found' || outcome?.exit?.signal !== undefined;
      if (session !== undefined && isShellGone) options.onSessionGone(entry, session);
    },
  };
}

function registerHooks(roll: Roll, context: LifeContext): void {
  const { sandboxes, agents, table, spoolRoot } = roll.options;
  const commandsOf = (id: SandboxId) => [...(roll.bySandbox.get(id) ?? [])];
  agents.onLink((key, link) => forgetEnded(table, link, key.id));
  sandboxes.hook({
    running(entry) {
      for (const command of commandsOf(entry.id)) void attachCommand(context, command);
    },
    ended(entry) {
      for (const command of commandsOf(entry.id)) {
        // An exit that has come is being made durable.
        if (command.exit === undefined) loseCommand(context, command, endOf(entry));
      }
      agents.drop(entry.key);
    },
    forgotten(id) {
      table.removeAll(id);
      rmSync(join(spoolRoot, id), { recursive: true, force: true });
      roll.budget.forget(id);
      roll.counts.forget(id);
      roll.oomKillsSeen.delete(id);
    },
  });
}

function addCommand(
  roll: Roll,
  entry: SandboxEntry,
  row: ExecRow,
  open: typeof openSpool,
): Command {
  const stdout = open(spoolOptions(roll, row, 'out'));
  const stderr = open(spoolOptions(roll, row, 'err'));
  const command: Command = {
    row,
    entry,
    changes: createWakers(),
    stdout,
    stderr,
    // What has written something has run, also where nobody can ask the agent now.
    started: stdout.receivedBytes + stderr.receivedBytes > 0,
    attachment: undefined,
    attaching: false,
    exit: undefined,
    outcome: undefined,
    flushDue: false,
    retryDue: false,
    killRequested: false,
    input: { offset: 0, credit: 0, endSent: false, turn: Promise.resolve(), end: row.stdinEnd },
    release: roll.options.sandboxes.hold(entry),
    oomKillsBefore: roll.oomKillsSeen.get(entry.id) ?? 0,
  };
  roll.active.set(row.id, command);
  const others = roll.bySandbox.get(entry.id);
  if (others === undefined) roll.bySandbox.set(entry.id, new Set([command]));
  else others.add(command);
  return command;
}

function spoolOptions({ options, budget }: Roll, row: ExecRow, suffix: 'out' | 'err') {
  const path = join(options.spoolRoot, row.sandbox, `${row.id}.${suffix}`);
  return { path, sandbox: row.sandbox, keptBytesMax: row.keptBytesMax, budget };
}

function endedSpools(roll: Roll, row: ExecRow, { stdout, stderr }: ExecOutcome) {
  return {
    stdout: openEndedSpool(spoolOptions(roll, row, 'out'), stdout),
    stderr: openEndedSpool(spoolOptions(roll, row, 'err'), stderr),
  };
}

/** Gives up the output of a command that has ended; its totals stay. */
function dropOutput(roll: Roll, row: ExecRow): void {
  if (row.outcome === undefined) return;
  const spools = endedSpools(roll, row, row.outcome);
  spools.stdout.drop();
  spools.stderr.drop();
  const totals = { stdout: spools.stdout.totals(), stderr: spools.stderr.totals() };
  roll.options.table.replaceOutcome(row.id, { ...row.outcome, ...totals });
}

function admit(roll: Roll, entry: SandboxEntry): void {
  const { counts, limits, budget } = roll;
  const { table } = roll.options;
  if (counts.of(entry.id) >= limits.commandsMax) {
    const oldest = table.oldestEnded(entry.id);
    if (oldest === undefined) throw new DsecError('overloaded', 'too many commands run');
    dropOutput(roll, oldest);
    table.remove(oldest.id);
    counts.add(entry.id, -1);
  }
  while (budget.isOver(entry.id)) {
    const oldest = table.oldestWithOutput(entry.id);
    if (oldest === undefined) break;
    dropOutput(roll, oldest);
  }
  budget.admit(entry.id);
}

function recover(roll: Roll, context: LifeContext): void {
  const { table, sandboxes, spoolRoot } = roll.options;
  removeStrangers(spoolRoot, table, sandboxes);
  for (const { sandbox, outcome } of table.withOutput()) {
    if (outcome === undefined) continue;
    const bytes = keptOnDisk(outcome.stdout, 0) + keptOnDisk(outcome.stderr, 0);
    roll.budget.force(sandbox, bytes);
  }
  for (const row of table.open()) {
    const entry = sandboxes.get(row.sandbox);
    const command = addCommand(roll, entry, row, openSpool);
    if (isOver(entry, row)) loseCommand(context, command, endOf(entry));
    else void attachCommand(context, command);
  }
}

/** The life of the sandbox in which the command ran has ended. */
function isOver(entry: SandboxEntry, row: ExecRow): boolean {
  return entry.generation !== row.generation || entry.endedAtMs !== undefined;
}

function endOf(entry: SandboxEntry): DsecError {
  const reason = entry.endReason ?? 'unknown';
  return new DsecError('agent-lost', `the sandbox ended before the command (${reason})`, {
    details: { reason },
  });
}

/** Rows and spools of sandboxes that were forgotten when the edge died. */
function removeStrangers(spoolRoot: string, table: ExecTable, sandboxes: Sandboxes): void {
  for (const id of table.sandboxes()) {
    if (sandboxes.find(id) === undefined) table.removeAll(id);
  }
  for (const name of readdirSync(spoolRoot)) {
    if (sandboxes.find(name as SandboxId) !== undefined) continue;
    rmSync(join(spoolRoot, name), { recursive: true, force: true });
  }
}

/** How many rows each sandbox has, counted once. */
function createRowCounts(table: ExecTable) {
  const counts = new Map<SandboxId, number>();
  const of = (id: SandboxId) => {
    const known = counts.get(id) ?? table.count(id);
    counts.set(id, known);
    return known;
  };
  return {
    of,
    add: (id: SandboxId, change: number) => void counts.set(id, of(id) + change),
    forget: (id: SandboxId) => void counts.delete(id),
  };
}
