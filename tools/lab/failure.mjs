// @ts-check

/** Exit codes of the lab's commands beside those of the command that runs in the guest. */
export const EXIT = /** @type {const} */ ({
  usage: 64,
  died: 70,
  boot: 71,
  unavailable: 75,
  timeout: 124,
  interrupted: 130,
});

/** The lab cannot run on this machine: a reason that a person can act on. Suites count it as skipped. */
export class LabUnavailable extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = 'LabUnavailable';
    this.exitCode = EXIT.unavailable;
  }
}

/** The guest came to an end without an exit code of its job. */
export class GuestFailure extends Error {
  /**
   * @param {'boot' | 'died' | 'timeout'} kind `boot`: before the job started; `died`: after.
   * @param {string} message
   */
  constructor(kind, message) {
    super(message);
    this.name = 'GuestFailure';
    this.kind = kind;
    this.exitCode = EXIT[kind];
  }
}
