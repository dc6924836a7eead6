/**
 * Places where a crash of an apiserver is interesting. The chaos suite kills one at each of them
 * (`tests/chaos/apiserver-crash.test.ts`) and fails when one was never reached.
 */
export const CRASH_POINTS = [
  'create.before-record',
  'create.before-flush',
  'create.after-record',
  'create.after-edge',
  'create.before-move',
  'create.after-move',
  'batch.after-record',
  'batch.after-one',
  'batch.after-move',
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
