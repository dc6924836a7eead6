import type { AetherFrame } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { type AgentContext, directoryOf, environmentOf, userOf } from './agent-context.ts';
import type { AgentLink } from './agent-link.ts';
import type { ShellState } from './shell.ts';

type FrameNamed<T extends AetherFrame['type']> = Extract<AetherFrame, { type: T }>;

export interface SimSession {
  readonly state: ShellState;
  /** Its command has ended; `isOver` when the shell has ended with it. */
  release(isOver: boolean): void;
}

/** Shells that live on between commands. */
export interface Sessions {
  open(link: AgentLink, frame: FrameNamed<'session-open'>): void;
  close(link: AgentLink, frame: FrameNamed<'session-close'>): void;
  /** Takes a session for one command. Throws `not-found`, or `state-conflict` while another one runs. */
  claim(id: string): SimSession;
}

const SESSIONS_MAX = 64;

export function createSessions(context: AgentContext): Sessions {
  const shells = new Map<string, { readonly state: ShellState; isBusy: boolean }>();

  const open = ({ fields }: FrameNamed<'session-open'>) => {
    if (shells.has(fields.sessionId)) {
      throw new DsecError('already-exists', 'the session exists');
    }
    if (shells.size >= SESSIONS_MAX) throw new DsecError('overloaded', 'too many sessions');
    userOf(fields.user);
    const state = { env: environmentOf(fields.env), cwd: directoryOf(context, fields.cwd) };
    shells.set(fields.sessionId, { state, isBusy: false });
  };
  const close = ({ fields }: FrameNamed<'session-close'>) => {
    if (!shells.delete(fields.sessionId)) throw new DsecError('not-found', 'no such session');
  };
  return {
    open: (link, frame) => answer(link, frame.stream, () => open(frame)),
    close: (link, frame) => answer(link, frame.stream, () => close(frame)),
    claim(id) {
      const shell = shells.get(id);
      if (shell === undefined) throw new DsecError('not-found', 'no such session');
      if (shell.isBusy) throw new DsecError('state-conflict', 'the session runs a command');
      shell.isBusy = true;
      return {
        state: shell.state,
        release(isOver) {
          shell.isBusy = false;
          if (isOver) shells.delete(id);
        },
      };
    },
  };
}

function answer(link: AgentLink, stream: number, work: () => void): void {
  try {
    work();
    link.put(stream, { type: 'done', fields: {} });
  } catch (thrown) {
    link.putError(stream, thrown);
  }
}
