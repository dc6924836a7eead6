// @ts-check
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { BootstrapFailure } from './failure.mjs';
import { run } from './run.mjs';
import { deriveBackports } from './sources.mjs';

const LOCK_WAIT_MS = 300_000;
const LOCK_POLL_MS = 5_000;
const INSTALL_TIMEOUT_MS = 900_000;
const QUERY_TIMEOUT_MS = 60_000;
const BACKPORTS_FILE = '/etc/apt/sources.list.d/dsec-backports.sources';

const OFFLINE =
  /could not resolve|temporary failure|connection (failed|timed out|refused)|failed to fetch/i;
const LOCKED = /could not get lock|unable to (acquire|lock)/i;
const INTERRUPTED = /dpkg was interrupted|dpkg --configure -a/i;

/**
 * @typedef {object} Apt
 * @property {(names: readonly string[]) => Promise<Map<string, string>>} installed Name → version.
 * @property {(have: string, least: string) => Promise<boolean>} isAtLeast Compares as dpkg does.
 * @property {() => Promise<void>} update Reads the archives' lists, once per run.
 * @property {(codename: string) => Promise<void>} useBackports Makes the backports suite known to the
 *   next `update`.
 * @property {(args: readonly string[], what: string) => Promise<import('./run.mjs').RunResult>} get
 *   `apt-get …`.
 */

/**
 * apt and dpkg, with patience for locks and repair of an interrupted dpkg.
 *
 * @param {{ report: import('./report.mjs').Report }} context
 * @returns {Apt}
 */
export function createApt({ report }) {
  const get = createGet(report);
  let isFresh = false;

  return {
    get,
    async update() {
      if (isFresh) return;
      report.note('reading the lists of the package archives');
      await get(['update', '-q', '-o', 'APT::Update::Error-Mode=any'], 'apt-get update');
      isFresh = true;
    },
    async installed(names) {
      if (names.length === 0) return new Map();
      // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg's own placeholders
      const format = '${Package}\t${Version}\t${db:Status-Status}\n';
      const { stdout } = await run('dpkg-query', ['-W', '-f', format, ...names], {
        timeoutMs: QUERY_TIMEOUT_MS,
      });
      const rows = stdout.split('\n').map((line) => line.split('\t'));
      return new Map(
        rows.flatMap(([name = '', version = '', status]) =>
          status === 'installed' ? [[name, version]] : [],
        ),
      );
    },
    async isAtLeast(have, least) {
      const args = ['--compare-versions', have, 'ge', least];
      return (await run('dpkg', args, { timeoutMs: QUERY_TIMEOUT_MS })).code === 0;
    },
    async useBackports(codename) {
      if (addBackports(codename, report)) isFresh = false;
    },
  };
}

/**
 * @param {import('./report.mjs').Report} report
 * @returns {Apt['get']}
 */
function createGet(report) {
  const env = { DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' };
  const attempt = (/** @type {string} */ command, /** @type {readonly string[]} */ args) =>
    run(command, args, { env, timeoutMs: INSTALL_TIMEOUT_MS, onLine: report.progress });

  return async (args, what) => {
    const patience = ['-o', `DPkg::Lock::Timeout=${LOCK_WAIT_MS / 1000}`];
    const full = [...patience, '-o', 'Dpkg::Use-Pty=0', ...args];
    const untilMs = performance.now() + LOCK_WAIT_MS;
    let result = await attempt('apt-get', full);
    let isRepaired = false;
    while (result.code !== 0) {
      if (LOCKED.test(result.tail) && performance.now() < untilMs) {
        report.note('waiting for another package manager to finish');
        await delay(LOCK_POLL_MS);
      } else if (INTERRUPTED.test(result.tail) && !isRepaired) {
        report.note('finishing an installation that was interrupted earlier');
        await attempt('dpkg', ['--force-confold', '--configure', '-a']);
        isRepaired = true;
      } else {
        throw failureOf(result, what);
      }
      result = await attempt('apt-get', full);
    }
    return result;
  };
}

/**
 * Adds the backports suite to apt's sources; says whether that was needed.
 *
 * @param {string} codename
 * @param {import('./report.mjs').Report} report
 */
function addBackports(codename, report) {
  const { configured, text } = deriveBackports(readSources(), codename);
  if (configured) return false;
  if (text === undefined) {
    throw new BootstrapFailure(
      'packages',
      `the archive of ${codename} is not among apt's sources, so that of ${codename}-backports is not known`,
      `add ${codename}-backports to /etc/apt/sources.list.d and start again`,
    );
  }
  report.note(`adding ${codename}-backports to apt's sources (${BACKPORTS_FILE})`);
  writeFileSync(BACKPORTS_FILE, text);
  return true;
}

function readSources() {
  const folder = '/etc/apt/sources.list.d';
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const paths = names
    .filter((name) => /\.(list|sources)$/.test(name))
    .map((name) => join(folder, name));
  if (existsSync('/etc/apt/sources.list')) paths.unshift('/etc/apt/sources.list');
  return paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }));
}

/**
 * @param {import('./run.mjs').RunResult} result
 * @param {string} what
 */
function failureOf(result, what) {
  if (OFFLINE.test(result.tail)) {
    return new BootstrapFailure(
      'offline',
      `${what} could not reach the package archives:\n${result.tail}`,
      'connect this machine to the archives (or set a proxy or mirror in /etc/apt) and start again',
    );
  }
  const how = result.timedOut
    ? `did not end within ${INSTALL_TIMEOUT_MS / 1000} s`
    : `ended with ${result.code}`;
  return new BootstrapFailure(
    'packages',
    `${what} ${how}:\n${result.tail}`,
    'mend apt and start again',
  );
}
