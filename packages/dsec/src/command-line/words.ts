/** Words that the table repeats from elsewhere; a test compares them. It loads nothing, to stay quick. */

export const SANDBOX_STATE_WORDS = [
  ...['creating', 'running', 'pausing', 'paused', 'resuming', 'snapshotting', 'stopping'],
  ...['stopped', 'failed'],
] as const;

export const POLICY_STAGE_WORDS = ['build', 'solve', 'grade'] as const;

export const EVENT_TYPE_WORDS = [
  ...['sandbox-state', 'exec-exit', 'session-end', 'denied', 'lost'],
] as const;
