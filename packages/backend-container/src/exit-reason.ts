import type { SandboxExit, SandboxKey } from '@dsec/backend';
import type { ExitedObject } from './launcher-client.ts';

const SIGKILL = 9;

type Ending = Pick<ExitedObject, 'exitCode' | 'signal' | 'oomKilled'>;

/**
 * Why a sandbox ended, from what the launcher saw of PID 1. A session that was killed for want of memory
 * is not the end of its sandbox, so `oomKilled` counts only when PID 1 was killed too.
 */
export function exitOf(key: SandboxKey, ending: Ending): SandboxExit {
  const { exitCode, signal, oomKilled } = ending;
  if (exitCode !== undefined) {
    return { key, reason: 'agent', detail: `the agent ended with exit code ${exitCode}` };
  }
  if (oomKilled && (signal === SIGKILL || signal === undefined)) {
    return { key, reason: 'oom', detail: 'the agent was killed at the memory limit' };
  }
  const how = signal === undefined ? 'while nobody watched it' : `by signal ${signal}`;
  return { key, reason: 'killed', detail: `the agent was ended ${how}` };
}

/** The end of one that was gone before anybody saw how. */
export const lostExit = (key: SandboxKey): SandboxExit => ({
  key,
  reason: 'killed',
  detail: 'the agent ended while nobody watched it',
});
