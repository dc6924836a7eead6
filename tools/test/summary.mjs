// @ts-check
import { countOf } from './record.mjs';

/** @typedef {import('./record.mjs').TestRecord} TestRecord */

/**
 * What a person wants to know at the end: a table, why tests were skipped, and which failed.
 *
 * @param {readonly { suite: { name: string }, records: readonly TestRecord[], durationMs: number }[]} results
 * @param {ReadonlyMap<string, number>} floors
 * @returns {string[]}
 */
export function summaryLines(results, floors) {
  const lines = ['', row(['suite', 'passed', 'failed', 'skipped', 'floor', 'seconds'])];
  for (const { suite, records, durationMs } of results) {
    const { passed, failed, skipped } = countOf(records);
    const floor = floors.get(suite.name) ?? '-';
    lines.push(row([suite.name, passed, failed, skipped, floor, (durationMs / 1000).toFixed(1)]));
  }
  const pick = (/** @type {TestRecord['state']} */ state) =>
    results.flatMap(({ suite, records }) =>
      records.filter((record) => record.state === state).map((record) => ({ suite, record })),
    );
  const skipped = pick('skipped').map(
    ({ suite, record }) => `  ${suite.name}: ${record.file} › ${record.name}: ${record.reason}`,
  );
  const failed = pick('failed').map(({ suite, record }) => {
    const [error = ''] = (record.errors[0] ?? '').split('\n');
    return `  ${suite.name}: ${record.file} › ${record.name}: ${error}`;
  });
  return [...lines, ...section('skipped:', skipped), ...section('failed:', failed), ''];
}

/** @param {string} title @param {readonly string[]} lines */
function section(title, lines) {
  return lines.length === 0 ? [] : ['', title, ...lines];
}

/** @param {readonly (string | number)[]} cells */
function row([first = '', ...rest]) {
  return `${String(first).padEnd(12)}${rest.map((cell) => String(cell).padStart(9)).join('')}`;
}
