// @ts-check
import { BootstrapFailure } from './failure.mjs';

export const USAGE = `usage: node tools/bootstrap.mjs [--test] [--check]

Brings this machine to a state in which DSec is built. Safe to run at any time; quick when nothing is to do.

  --test    also what the tests need: a fuzzing compiler, QEMU, the EROFS oracle, Python modules
  --check   change nothing; say what is missing; exit with 1 if something is
  --help    this text

exit codes: 0 ready, 1 something is missing (--check), 2 usage, 3 unfit host, 4 not root,
            5 distribution packages, 6 offline, 7 npm or Python modules, 8 build,
            9 another bootstrap holds the lock, 130 interrupted
`;

/**
 * @typedef {object} Options
 * @property {boolean} test
 * @property {boolean} check
 * @property {boolean} help
 */

/**
 * @param {readonly string[]} args
 * @returns {Options}
 */
export function parseOptions(args) {
  const options = { test: false, check: false, help: false };
  for (const arg of args) {
    if (arg === '--test') options.test = true;
    else if (arg === '--check') options.check = true;
    else if (arg === '--help' || arg === '-h') options.help = true;
    else throw new BootstrapFailure('usage', `unknown option ${arg}`, USAGE);
  }
  return options;
}
