// @ts-check

/** Exit codes of `tools/bootstrap.mjs`; one per kind of trouble, so that a script can tell them apart. */
export const EXIT = /** @type {const} */ ({
  ready: 0,
  missing: 1,
  usage: 2,
  host: 3,
  rights: 4,
  packages: 5,
  offline: 6,
  modules: 7,
  build: 8,
  locked: 9,
  interrupted: 130,
});

/** A failure that a person can act on: what happened, and the command or change that helps. */
export class BootstrapFailure extends Error {
  /**
   * @param {Exclude<keyof typeof EXIT, 'ready' | 'missing'>} kind
   * @param {string} message What happened.
   * @param {string} remedy What to run or change.
   */
  constructor(kind, message, remedy) {
    super(message);
    this.name = 'BootstrapFailure';
    this.kind = kind;
    this.exitCode = EXIT[kind];
    this.remedy = remedy;
  }
}
