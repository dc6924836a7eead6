/**
 * Places where a crash of an edge is interesting: before and after every step that outlives the process.
 * The chaos suite kills an edge at each of them (`tests/chaos/edge-crash.test.ts`) and fails when one was
 * never reached.
 */
export const CRASH_POINTS = [
  'create.before-intent',
  'create.after-intent',
  'create.after-backend',
  'create.after-network',
  'create.after-hello',
  'create.after-running',
  'stop.after-intent',
  'stop.after-backend',
  'stop.after-stopped',
  'end.after-failed',
  'end.after-cleanup',
  'pause.after-intent',
  'pause.after-backend',
  'pause.after-paused',
  'resume.after-intent',
  'resume.after-backend',
  'resume.after-running',
  'network.after-rules',
  'network.after-update',
  'stage.after-intent',
  'stage.after-quiesce',
  'stage.after-mounts',
  'stage.after-rules',
  'forget.after-row',
  'exec.after-row',
  'exec.before-start',
  'exec.after-start',
  'exec.after-spool',
  'exec.before-exit',
  'exec.after-exit',
  'exec.after-ack',
  'change.after-intent',
  'change.after-answer',
] as const;

export type CrashPoint = (typeof CRASH_POINTS)[number];

const [armed, nth = '1'] = (process.env.DSEC_CRASH_POINT ?? '').split(':');
let hitsLeft = Number(nth);

/**
 * Ends this process with SIGKILL when `DSEC_CRASH_POINT` names this place; `name:n` waits for its n-th
 * visit. Otherwise one comparison.
 */
export function crashPoint(name: CrashPoint): void {
  if (armed !== name) return;
  hitsLeft -= 1;
  if (hitsLeft === 0) process.kill(process.pid, 'SIGKILL');
}
