// @ts-check
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

export const FLOORS_FILE = 'tests/floors.json';

/**
 * The least number of tests that must pass, per suite. A checked-in number shows a suite that silently
 * runs fewer tests than it used to.
 *
 * @param {string} path
 * @returns {Map<string, number>}
 */
export function readFloors(path) {
  return new Map(existsSync(path) ? Object.entries(JSON.parse(readFileSync(path, 'utf8'))) : []);
}

/**
 * @param {string} suite
 * @param {number} passed
 * @param {ReadonlyMap<string, number>} floors
 * @returns {string | undefined} What is wrong.
 */
export function judgeFloor(suite, passed, floors) {
  const floor = floors.get(suite);
  if (floor === undefined) {
    return `${FLOORS_FILE} has no floor for ${suite}: add it with node tools/test.mjs --write-floors`;
  }
  if (passed >= floor) return undefined;
  return (
    `only ${passed} tests of ${suite} passed, ${FLOORS_FILE} asks for ${floor}: ` +
    'find out which no longer run; lower the number by hand only for tests that were removed on purpose'
  );
}

/**
 * Raises floors to what has passed; never lowers one.
 *
 * @param {string} path
 * @param {ReadonlyMap<string, number>} passed
 */
export function raiseFloors(path, passed) {
  const floors = readFloors(path);
  for (const [suite, count] of passed) floors.set(suite, Math.max(count, floors.get(suite) ?? 0));
  writeFileSync(path, `${JSON.stringify(Object.fromEntries([...floors].sort()), undefined, 2)}\n`);
}
