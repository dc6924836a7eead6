import type { AetherFrame, ExecStartFields } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import {
  type AgentContext,
  directoryOf,
  environmentOf,
  HELD,
  latin1,
  userOf,
} from './agent-context.ts';
import type { AgentLink } from './agent-link.ts';
import { createCommand, type SimCommand } from './command.ts';
import type { ProcessEnd, SimProcess } from './processes.ts';
import { type ProgramSetting, startBody, startProgram } from './program.ts';
import { createSessions, type Sessions, type SimSession } from './sessions.ts';
import { runShell, type ShellResult, type ShellState } from './shell.ts';

type FrameNamed<T extends AetherFrame['type']> = Extract<AetherFrame, { type: T }>;

/** Every command whose result was not acknowledged, by its id. */
export interface Commands {
  readonly sessions: Sessions;
  start(link: AgentLink, frame: FrameNamed<'exec-start'>): void;
  attach(link: AgentLink, frame: FrameNamed<'exec-attach'>): void;
  acknowledge(link: AgentLink, frame: FrameNamed<'exec-exit-ack'>): void;
}

const COMMANDS_MAX = 1024;

export function createCommands(context: AgentContext): Commands {
  const known = new Map<string, SimCommand>();
  const sessions = createSessions(context);
  return {
    sessions,
    start(link, { stream, fields }) {
      const before = known.get(fields.execId);
      if (before !== undefined) {
        before.repeat();
        return before.attach(link, stream, true);
      }
      const refusal = context.isHeld ? HELD : refusalOf(fields, known.size);
      if (refusal !== undefined) return link.putError(stream, refusal);
      const command = createCommand(context, fields);
      known.set(command.id, command);
      command.attach(link, stream, false);
      try {
        begin(context, sessions, command, fields);
      } catch (thrown) {
        command.failed(thrown);
      }
    },
    attach(link, { stream, fields }) {
      const command = known.get(fields.execId);
      if (command === undefined) {
        return link.putError(stream, new DsecError('not-found', 'no such command'));
      }
      if (!command.resume(fields.stdoutOffset, fields.stderrOffset)) {
        const lost = 'the output from that offset on is not here';
        return link.putError(stream, new DsecError('output-lost', lost));
      }
      command.attach(link, stream, true);
    },
    acknowledge(link, { stream, fields }) {
      const command = known.get(fields.execId);
      if (command === undefined) return;
      if (!command.isOver) {
        return link.putError(stream, new DsecError('state-conflict', 'the command has not ended'));
      }
      command.forget();
      known.delete(fields.execId);
    },
  };
}

function refusalOf(fields: ExecStartFields, count: number): DsecError | undefined {
  if ((fields.argv === undefined) === (fields.shell === undefined)) {
    return new DsecError('invalid-argument', 'a command has either arguments or shell text');
  }
  if (count < COMMANDS_MAX) return undefined;
  return new DsecError('overloaded', 'too many commands whose results were not acknowledged');
}

function begin(
  context: AgentContext,
  sessions: Sessions,
  command: SimCommand,
  fields: ExecStartFields,
): void {
  const { argv = [], shell, sessionId } = fields;
  const text = shell && latin1(shell);
  if (sessionId === undefined) {
    const leader = beginAlone(context, command, fields, text);
    command.started(leader, leader.ended);
  } else {
    const session = sessions.claim(sessionId);
    const { leader, ended } = beginInSession(command, session, text ?? quoted(argv));
    command.started(leader, ended);
  }
}

function beginAlone(
  context: AgentContext,
  command: SimCommand,
  fields: ExecStartFields,
  text: string | undefined,
): SimProcess {
  userOf(fields.user);
  const state: ShellState = {
    env: environmentOf(fields.env),
    cwd: directoryOf(context, fields.cwd),
  };
  const setting: ProgramSetting = { ...command.setting, ...state };
  if (text === undefined) return startFile(context, setting, (fields.argv ?? []).map(latin1));
  return startBody(setting, 'sh', [], async ({ system }) => {
    return (await runShell(setting, state, text, system)).exitCode;
  });
}

function beginInSession(command: SimCommand, session: SimSession, text: string) {
  const setting: ProgramSetting = { ...command.setting, ...session.state };
  let result: ShellResult | undefined;
  const leader = startBody(setting, 'sh', [], async ({ system }) => {
    result = await runShell(setting, session.state, text, system);
    return result.exitCode;
  });
  const ended = leader.ended.then((end): ProcessEnd => {
    session.release(result?.isOver === true || end.signal !== undefined, result?.endsInMs);
    return end;
  });
  return { leader, ended };
}

function quoted(argv: readonly Uint8Array[]): string {
  return argv.map((word) => `'${latin1(word)}'`).join(' ');
}

/** Finds a program as `execvpe` does. */
function startFile(
  { files }: AgentContext,
  setting: ProgramSetting,
  argv: readonly string[],
): SimProcess {
  const [path = ''] = argv;
  if (path.includes('/') && exists(() => files.stat(path, true))) {
    throw new DsecError('permission-denied', `the command ${path} is not executable`);
  }
  const isSearched = !path.includes('/') || /^\/(usr\/)?bin\/[^/]+$/.test(path);
  const process = isSearched ? startProgram(setting, argv) : undefined;
  if (process === undefined) {
    throw new DsecError('command-not-found', `the command ${path} does not exist`);
  }
  return process;
}

function exists(look: () => unknown): boolean {
  try {
    look();
    return true;
  } catch {
    return false;
  }
}
