// @ts-check
import { recordOf } from './record.mjs';

/** @typedef {import('./record.mjs').TestRecord} TestRecord */

/**
 * The tests of TAP output: `ok 1 - name`, `not ok 2 - name`, `ok 3 - name # SKIP why`.
 *
 * @param {string} text
 * @param {string} file
 * @returns {TestRecord[]}
 */
export function parseTap(text, file) {
  const records = [];
  for (const line of text.split('\n')) {
    const match = /^(not )?ok\b\s*\d*\s*-?\s*(.*?)(?:\s*#\s*SKIP\S*\s*(.*))?$/i.exec(line.trim());
    if (match === null) continue;
    const [, not, name = '', reason] = match;
    if (not !== undefined)
      records.push(recordOf(file, name, { state: 'failed', errors: [line.trim()] }));
    else if (reason !== undefined) {
      records.push(
        recordOf(file, name, { state: 'skipped', reason: reason === '' ? undefined : reason }),
      );
    } else records.push(recordOf(file, name, { state: 'passed' }));
  }
  return records;
}

/**
 * The tests of a JUnit file, as pytest writes it.
 *
 * @param {string} xml
 * @returns {TestRecord[]}
 */
export function parseJunit(xml) {
  const records = [];
  for (const match of xml.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const attributes = attributesOf(match[1] ?? '');
    const body = match[2] ?? '';
    const file = attributes.get('classname') ?? '';
    const name = attributes.get('name') ?? '';
    const durationMs = Number(attributes.get('time') ?? 0) * 1000;
    const fault = /<(failure|error)\b([^>]*)>([\s\S]*?)<\/\1>|<(failure|error)\b([^>]*)\/>/.exec(
      body,
    );
    const skip = /<skipped\b([^>]*)/.exec(body);
    if (fault !== null) {
      const message = attributesOf(fault[2] ?? fault[5] ?? '').get('message') ?? '';
      const errors = [`${message}\n${unescapeXml(fault[3] ?? '')}`.trim()];
      records.push(recordOf(file, name, { state: 'failed', durationMs, errors }));
    } else if (skip !== null) {
      const reason = attributesOf(skip[1] ?? '').get('message');
      records.push(recordOf(file, name, { state: 'skipped', durationMs, reason }));
    } else {
      records.push(recordOf(file, name, { state: 'passed', durationMs }));
    }
  }
  return records;
}

/** @param {string} text */
function attributesOf(text) {
  return new Map(
    [...text.matchAll(/([\w:-]+)="([^"]*)"/g)].map(([, name = '', value = '']) => [
      name,
      unescapeXml(value),
    ]),
  );
}

/** @param {string} text */
function unescapeXml(text) {
  const named = new Map(Object.entries({ lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }));
  return text.replace(/&(?:#(\d+)|#x([0-9a-fA-F]+)|(\w+));/g, (whole, decimal, hex, name) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    return named.get(name) ?? whole;
  });
}
