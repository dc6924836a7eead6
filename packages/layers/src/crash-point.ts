/**
 * Places where a crash of an import is interesting: before and after every step that outlives the
 * process. The chaos suite kills an import at each of them (`tests/chaos/layers-crash.test.ts`) and fails
 * when one was never reached.
 */
export const CRASH_POINTS = [
  'stage.before-owner',
  'stage.after-owner',
  'build.after-source',
  'build.after-blob',
  'build.after-files',
  'build.after-fsync',
  'publish.after-blob-rename',
  'publish.after-blob-fsync',
  'publish.after-layer-rename',
  'publish.after-layer-fsync',
  'publish.after-ref-link',
  'publish.after-ref-fsync',
] as const;

/** The same where an import replaces damaged files of a layer that is there already. */
export const REPAIR_CRASH_POINTS = [
  'repair.before-file',
  'repair.after-file',
  'repair.after-fsync',
] as const;

export type CrashPoint = (typeof CRASH_POINTS)[number] | (typeof REPAIR_CRASH_POINTS)[number];

const armed = process.env.DSEC_CRASH_POINT;
const scope = process.env.DSEC_CRASH_SCOPE;

/**
 * Ends this process with SIGKILL when `DSEC_CRASH_POINT` names this place; with `DSEC_CRASH_SCOPE=parent`
 * the process that started it goes first, so that nobody is left to clean up. Otherwise one comparison.
 */
export function crashPoint(name: CrashPoint): void {
  if (armed !== name) return;
  if (scope === 'parent') process.kill(process.ppid, 'SIGKILL');
  process.kill(process.pid, 'SIGKILL');
}
