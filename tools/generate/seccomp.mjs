// @ts-check
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @typedef {object} SyscallRow
 * @property {string} name
 * @property {number | undefined} x64
 * @property {number | undefined} arm64
 * @property {string} verdict
 */

const VERDICTS = ['allow', 'eperm', 'enosys', 'rule'];

/**
 * The rows of native/seccomp/syscalls.txt. Throws at the first line that is not one, or that repeats a name
 * or number.
 *
 * @param {string} text
 * @returns {SyscallRow[]}
 */
export function parseSyscalls(text) {
  const seen = new Set();
  return text.split('\n').flatMap((line, index) => {
    if (line === '' || line.startsWith('#')) return [];
    const where = `syscalls.txt:${index + 1}`;
    const [name = '', x64 = '', arm64 = '', verdict = '', ...rest] = line.split(/\s+/);
    if (rest.length > 0 || !VERDICTS.includes(verdict)) throw new Error(`${where}: ${line}`);
    for (const key of [
      name,
      x64 === '-' ? name : `x64 ${x64}`,
      arm64 === '-' ? name : `arm64 ${arm64}`,
    ]) {
      if (key !== name && seen.has(key)) throw new Error(`${where}: ${key} is there twice`);
      seen.add(key);
    }
    return [{ name, x64: numberOf(x64, where), arm64: numberOf(arm64, where), verdict }];
  });
}

/** @param {string} text @param {string} where */
function numberOf(text, where) {
  if (text === '-') return undefined;
  if (!/^\d+$/.test(text)) throw new Error(`${where}: ${text} is no number`);
  return Number(text);
}

/**
 * The table as TypeScript.
 *
 * @param {string} root
 */
export function renderSyscallTable(root) {
  const rows = parseSyscalls(readFileSync(join(root, 'native/seccomp/syscalls.txt'), 'utf8'));
  const lines = rows.map(
    ({ name, x64, arm64, verdict }) => `  ['${name}', ${x64 ?? -1}, ${arm64 ?? -1}, '${verdict}'],`,
  );
  return `/* Generated from native/seccomp/syscalls.txt by \`npm run generate\`. Do not edit. */

/** Name, number on x86_64, number on aarch64 (-1: none), what a sandbox is told. */
export type SyscallRow = readonly [
  name: string,
  x64: number,
  arm64: number,
  verdict: 'allow' | 'eperm' | 'enosys' | 'rule',
];

export const SYSCALLS: readonly SyscallRow[] = [
${lines.join('\n')}
];
`;
}
