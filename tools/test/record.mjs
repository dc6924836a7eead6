// @ts-check

/**
 * @typedef {object} TestRecord One test of any suite.
 * @property {string} file Where it is, or the step that ran it.
 * @property {string} name
 * @property {'passed' | 'failed' | 'skipped'} state
 * @property {number} durationMs
 * @property {string | undefined} reason Why it was skipped.
 * @property {readonly string[]} errors
 */

/**
 * @typedef {{ kind: 'test' } & TestRecord
 *   | { kind: 'file', file: string, durationMs: number, errors: readonly string[] }
 *   | { kind: 'end', errors: readonly string[] }} TestEvent What the reporter of vitest tells.
 */

/** A test names what it needs in its title: `mounts a layer (needs root)`. */
const NEED = /\((needs [^)]+)\)/;

/**
 * Settles what a skip means: its reason, or a failure when nobody gave one.
 *
 * @param {TestRecord} record
 * @returns {TestRecord}
 */
export function explainSkip(record) {
  if (record.state !== 'skipped') return record;
  const reason = record.reason ?? NEED.exec(record.name)?.[1];
  if (reason !== undefined) return { ...record, reason };
  const error =
    'skipped without a reason: call context.skip(why), or end its title with "(needs …)"';
  return { ...record, state: 'failed', errors: [error] };
}

/**
 * @param {string} file
 * @param {string} name
 * @param {Partial<TestRecord> & Pick<TestRecord, 'state'>} rest
 * @returns {TestRecord}
 */
export function recordOf(file, name, rest) {
  return { file, name, durationMs: 0, reason: undefined, errors: [], ...rest };
}

/** @param {readonly TestRecord[]} records */
export function countOf(records) {
  const count = { passed: 0, failed: 0, skipped: 0 };
  for (const { state } of records) count[state] += 1;
  return count;
}
