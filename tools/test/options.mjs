// @ts-check

export const USAGE = `usage: node tools/test.mjs [--only SUITE,…] [--long] [--write-floors] [--list]

Runs every test suite and says what passed, failed and was skipped, and why.

  --only unit,fuzz   only these suites
  --long             full counts instead of reduced ones (DSEC_TEST_LONG=1)
  --write-floors     raises the numbers in tests/floors.json to what has passed
  --list             prints the suites and ends
`;

/** A call that makes no sense; the message says why. */
export class UsageError extends Error {}

/**
 * @typedef {object} Options
 * @property {readonly string[] | undefined} only
 * @property {boolean} long
 * @property {boolean} writeFloors
 * @property {boolean} list
 * @property {boolean} help
 */

/**
 * @param {readonly string[]} args
 * @param {readonly string[]} known Names of the suites.
 * @returns {Options}
 */
export function parseOptions(args, known) {
  /** @type {Options} */
  let options = { only: undefined, long: false, writeFloors: false, list: false, help: false };
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === '--only') options = { ...options, only: suiteNames(rest.shift() ?? '', known) };
    else if (arg.startsWith('--only='))
      options = { ...options, only: suiteNames(arg.slice(7), known) };
    else if (arg === '--long') options = { ...options, long: true };
    else if (arg === '--write-floors') options = { ...options, writeFloors: true };
    else if (arg === '--list') options = { ...options, list: true };
    else if (arg === '--help' || arg === '-h') options = { ...options, help: true };
    else throw new UsageError(`unknown option ${arg}`);
  }
  return options;
}

/** @param {string} text @param {readonly string[]} known */
function suiteNames(text, known) {
  const names = text.split(',').filter(Boolean);
  const unknown = names.filter((name) => !known.includes(name));
  if (names.length === 0 || unknown.length > 0) {
    throw new UsageError(
      `--only takes some of ${known.join(', ')}${unknown.length > 0 ? `, not ${unknown.join(', ')}` : ''}`,
    );
  }
  return names;
}
