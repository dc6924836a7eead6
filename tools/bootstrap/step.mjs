// @ts-check

/**
 * @typedef {object} Context What every step gets.
 * @property {string} root The repository.
 * @property {import('./host.mjs').Host} host
 * @property {import('./options.mjs').Options} options
 * @property {import('./report.mjs').Report} report
 * @property {import('./apt.mjs').Apt} apt
 * @property {(command: string, args: readonly string[], options: import('./run.mjs').RunOptions) =>
 *   Promise<import('./run.mjs').RunResult>} run Runs a command that keeps the bootstrap's lock until it
 *   ends.
 */

/**
 * @typedef {object} Step One thing that must be there. A step only looks at the world, never at what an
 *   earlier run meant to do, so that it can be repeated after a run that was killed anywhere.
 * @property {string} name
 * @property {(context: Context) => Promise<string[]>} missing What is not there, in words. Changes nothing.
 * @property {(context: Context, missing: readonly string[]) => Promise<void>} bring Brings all of it, or
 *   throws.
 * @property {(context: Context) => Promise<string>} [summary] What is there, for the report; absent means
 *   `ready`.
 */

export {};
