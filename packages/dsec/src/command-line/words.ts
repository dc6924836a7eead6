/** Words that the table repeats from elsewhere; a test compares them. It loads nothing, to stay quick. */

export const SANDBOX_STATE_WORDS = [
  ...['creating', 'running', 'pausing', 'paused', 'resuming', 'snapshotting', 'stopping'],
  ...['stopped', 'failed'],
] as const;

export const POLICY_STAGE_WORDS = ['build', 'solve', 'grade'] as const;

export const EVENT_TYPE_WORDS = [
  ...['sandbox-state', 'exec-exit', 'session-end', 'denied', 'tamper', 'lost'],
] as const;

export const OPERATION_CLASS_WORDS = [
  ...['sandboxes:read', 'sandboxes:write', 'exec', 'files:read', 'files:write', 'ports'],
  ...['layers:read', 'layers:write', 'grading', 'policies:loosen'],
  ...['keys', 'node'],
];
