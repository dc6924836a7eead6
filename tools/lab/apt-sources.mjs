// @ts-check
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseDeb822, parseOneLine } from '../bootstrap/sources.mjs';

/**
 * Sources for the lab's own apt, derived from those that the machine is configured with, so that its
 * mirrors and keys are kept: every suite of the distribution, and its backports where asked. Third-party
 * archives are left out.
 *
 * @param {readonly { path: string, text: string }[]} files The machine's `sources.list` and
 *   `sources.list.d/*`.
 * @param {string} codename `bookworm`, `noble`, …
 * @param {boolean} withBackports
 * @returns {string} deb822 text; empty when the archive of `codename` is not configured.
 */
export function deriveSources(files, codename, withBackports) {
  const sources = files
    .flatMap((file) =>
      file.path.endsWith('.sources') ? parseDeb822(file.text) : parseOneLine(file.text),
    )
    .map((source) => ({ ...source, suites: source.suites.filter((name) => isOf(name, codename)) }))
    .filter((source) => source.suites.length > 0);
  const backports = `${codename}-backports`;
  const main = sources.find((source) => source.suites.includes(codename));
  if (main === undefined) return '';
  const lacksBackports = !sources.some((source) => source.suites.includes(backports));
  if (withBackports && lacksBackports) sources.push({ ...main, suites: [backports] });
  return sources.map(stanza).join('\n');
}

/** @returns {{ path: string, text: string }[]} The machine's own source files. */
export function readSourceFiles(etcApt = '/etc/apt') {
  const folder = join(etcApt, 'sources.list.d');
  const paths = (existsSync(folder) ? readdirSync(folder) : [])
    .filter((name) => /\.(list|sources)$/.test(name))
    .map((name) => join(folder, name));
  return [join(etcApt, 'sources.list'), ...paths]
    .filter((path) => existsSync(path))
    .map((path) => ({ path, text: readFileSync(path, 'utf8') }));
}

/**
 * @param {string} suite
 * @param {string} codename
 */
function isOf(suite, codename) {
  return suite === codename || suite.startsWith(`${codename}-`);
}

/** @param {import('../bootstrap/sources.mjs').AptSource} source */
function stanza({ uri, suites, components, options }) {
  const fields = [...options].map(([field, value]) => `${field}: ${value}\n`).join('');
  const place = `Types: deb\nURIs: ${uri}\nSuites: ${suites.join(' ')}\n`;
  return `${place}Components: ${components.join(' ')}\n${fields}`;
}
