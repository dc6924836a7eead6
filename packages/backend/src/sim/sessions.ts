import type { AetherFrame } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { type AgentContext, directoryOf, environmentOf, HELD, userOf } from './agent-context.ts';
import type { AgentLink } from './agent-link.ts';
import type { ShellState } from './shell.ts';

type FrameNamed<T extends AetherFrame['type']> = Extract<AetherFrame, { type: T }>;

export interface SimSession {
  readonly state: ShellState;
  /** Its command has ended; `isOver` when the shell has ended with it, or it ends by itself after a time. */
  release(isOver: boolean, endsInMs?: number): void;
}

/** Shells that live on between commands. */
export interface Sessions {
  open(link: AgentLink, frame: FrameNamed<'session-open'>): void;
  close(link: AgentLink, frame: FrameNamed<'session-close'>): void;
  watch(link: AgentLink, frame: FrameNamed<'session-watch'>): void;
  endAll(): void;
  /** Takes a session for one command. Throws `not-found`, or `state-conflict` while another one runs. */
  claim(id: string): SimSession;
}

interface Shell {
  readonly state: ShellState;
  isBusy: boolean;
  /** Who waits for its end. */
  watch: { readonly link: AgentLink; readonly stream: number } | undefined;
}

const SESSIONS_MAX = 64;

export function createSessions(context: AgentContext): Sessions {
  const shells = new Map<string, Shell>();

  const end = (id: string): boolean => {
    const watch = shells.get(id)?.watch;
    watch?.link.leave(watch.stream);
    watch?.link.put(watch.stream, { type: 'done', fields: {} });
    return shells.delete(id);
  };

  const open = ({ fields }: FrameNamed<'session-open'>) => {
    if (context.isHeld) throw HELD;
    if (shells.has(fields.sessionId)) {
      throw new DsecError('already-exists', 'the session exists');
    }
    if (shells.size >= SESSIONS_MAX) throw new DsecError('overloaded', 'too many sessions');
    userOf(fields.user);
    const state = { env: environmentOf(fields.env), cwd: directoryOf(context, fields.cwd) };
    shells.set(fields.sessionId, { state, isBusy: false, watch: undefined });
  };
  const close = ({ fields }: FrameNamed<'session-close'>) => {
    if (!end(fields.sessionId)) throw noSession();
  };
  const watch = (link: AgentLink, { stream, fields }: FrameNamed<'session-watch'>) => {
    const shell = shells.get(fields.sessionId);
    if (shell === undefined) return link.putError(stream, noSession());
    const before = shell.watch;
    before?.link.leave(before.stream);
    before?.link.putError(before.stream, new DsecError('conflict', 'watched on another stream'));
    const mine = { link, stream };
    const leave = () => {
      if (shell.watch === mine) shell.watch = undefined;
    };
    shell.watch = mine;
    link.open(stream, {
      produce: () => undefined,
      consume() {
        leave();
        link.leave(stream);
      },
      detached: leave,
    });
  };
  return {
    watch,
    open: (link, frame) => answer(link, frame.stream, () => open(frame)),
    close: (link, frame) => answer(link, frame.stream, () => close(frame)),
    endAll() {
      for (const id of [...shells.keys()]) end(id);
    },
    claim(id) {
      const shell = shells.get(id);
      if (shell === undefined) throw noSession();
      if (shell.isBusy) throw new DsecError('state-conflict', 'the session runs a command');
      shell.isBusy = true;
      return {
        state: shell.state,
        release(isOver, endsInMs) {
          shell.isBusy = false;
          if (isOver) end(id);
          else if (endsInMs !== undefined) void context.time.sleep(endsInMs).then(() => end(id));
        },
      };
    },
  };
}

const noSession = () => new DsecError('not-found', 'no such session');

function answer(link: AgentLink, stream: number, work: () => void): void {
  try {
    work();
    link.put(stream, { type: 'done', fields: {} });
  } catch (thrown) {
    link.putError(stream, thrown);
  }
}
