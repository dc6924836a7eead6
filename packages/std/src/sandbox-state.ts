import { DsecError } from './errors.ts';

export const SANDBOX_STATES = [
  'creating',
  'running',
  'pausing',
  'paused',
  'resuming',
  'snapshotting',
  'stopping',
  'stopped',
  'failed',
] as const;

export type SandboxState = (typeof SANDBOX_STATES)[number];

/** Why a sandbox is `stopped` or `failed`. */
export const END_REASONS = [
  'stopped',
  'ttl',
  'oom',
  'disk',
  'killed',
  'agent',
  'edge-restart',
  'backend-failed',
  'host-lost',
  'protocol',
] as const;

export type EndReason = (typeof END_REASONS)[number];

/** Legal edges. `failed` can be reached from every state that is not an end. */
const EDGES: Readonly<Record<SandboxState, readonly SandboxState[]>> = {
  creating: ['running', 'stopping'],
  running: ['pausing', 'snapshotting', 'stopping'],
  pausing: ['paused', 'running', 'stopping'],
  paused: ['resuming', 'snapshotting', 'stopping'],
  resuming: ['running', 'paused', 'stopping'],
  snapshotting: ['running', 'paused', 'stopping'],
  stopping: ['stopped'],
  stopped: [],
  failed: [],
};

export function isEndState(state: SandboxState): boolean {
  return state === 'stopped' || state === 'failed';
}

export function canTransition(from: SandboxState, to: SandboxState): boolean {
  if (to === 'failed') return !isEndState(from);
  return EDGES[from].includes(to);
}

/** Returns `to`, or throws `state-conflict` naming what is possible instead. */
export function transition(from: SandboxState, to: SandboxState): SandboxState {
  if (canTransition(from, to)) return to;
  const possible = isEndState(from)
    ? 'nothing: it is an end state'
    : [...EDGES[from], 'failed'].join(', ');
  throw new DsecError(
    'state-conflict',
    `a sandbox cannot go from ${from} to ${to}; possible: ${possible}`,
    {
      details: { from, to },
    },
  );
}
