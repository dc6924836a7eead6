import { asDsecError, type Clock, SECOND_MS } from '@dsec/std';
import type { SessionRow } from '../journal/session-table.ts';
import type { SandboxEntry } from '../sandboxes.ts';
import type { Agents } from './agents.ts';

export interface SessionWatchOptions {
  readonly agents: Pick<Agents, 'link'>;
  readonly clock: Clock;
  /** The shell has ended. Called until it does not throw. */
  readonly onEnd: (entry: SandboxEntry, id: string) => void;
}

const RETRY_MS = SECOND_MS;

/**
 * Waits for the ends of shells that nobody uses. A lost link is made again, and another agent knows no
 * session; in a sandbox that does not run nothing is asked, until it runs again.
 */
export function createSessionWatch({ agents, clock, onEnd }: SessionWatchOptions) {
  const watched = new Set<string>();

  /** Whether the shell has ended. */
  const look = async (entry: SandboxEntry, id: string): Promise<boolean> => {
    const link = await agents.link(entry.key);
    try {
      await link.request('session-watch', { sessionId: id });
      return true;
    } catch (thrown) {
      if (asDsecError(thrown).code === 'not-found') return true;
      await Promise.race([link.closed, clock.sleep(RETRY_MS)]);
      return false;
    }
  };
  const follow = async (entry: SandboxEntry, id: string): Promise<void> => {
    while (entry.state === 'running') {
      if (!(await look(entry, id))) continue;
      try {
        return onEnd(entry, id);
      } catch {
        await clock.sleep(RETRY_MS);
      }
    }
  };
  return (entry: SandboxEntry, { id }: Pick<SessionRow, 'id'>): void => {
    if (watched.has(id)) return;
    watched.add(id);
    follow(entry, id)
      // The agent is lost, which ends the sandbox, or the edge closes.
      .catch(() => {})
      .finally(() => watched.delete(id));
  };
}
