// @ts-check
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BootstrapFailure } from './failure.mjs';
import { digestOf, readStamp, writeStamp } from './stamp.mjs';
import { workspaceFolders } from './workspaces.mjs';

const INSTALL_TIMEOUT_MS = 1_200_000;
const LOAD_TIMEOUT_MS = 60_000;
const OFFLINE = /ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH/;

/** Modules with machine code, each with a line that shows that it works. */
const NATIVE_MODULES = [
  { name: 'koffi', proof: "require('koffi').load('libc.so.6').func('int getpid()')()" },
  { name: 'better-sqlite3', proof: "new (require('better-sqlite3'))(':memory:').close()" },
];

/** @type {import('./step.mjs').Step} */
export const modulesStep = {
  name: 'node modules',

  async missing({ root }) {
    if (readStamp(stampPath(root)) === digest(root)) return [];
    return existsSync(stampPath(root))
      ? ['the npm packages of the new package-lock.json']
      : ['the npm packages of package-lock.json'];
  },

  async bring(context) {
    const { root, report, run, host } = context;
    // node-gyp downloads headers of Node unless it is told where they are.
    const headers = process.env.npm_config_nodedir ?? host.nodeHeaders;
    const env = headers === undefined ? {} : { npm_config_nodedir: headers };
    const npm = (/** @type {string[]} */ args) =>
      run('npm', args, { cwd: root, env, timeoutMs: INSTALL_TIMEOUT_MS, onLine: report.progress });

    if (!isInstalledAsLocked(root)) {
      report.note(
        'npm ci (SQLite is compiled when no prebuilt binary can be had, which takes a minute or two)',
      );
      const result = await npm(['ci', '--no-audit', '--no-fund']);
      if (result.code !== 0) throw failureOf(result, 'npm ci');
    }
    for (const module of await brokenModules(context)) {
      report.note(`rebuilding ${module}`);
      const result = await npm(['rebuild', module, '--foreground-scripts']);
      if (result.code !== 0) throw failureOf(result, `npm rebuild ${module}`);
    }
    const broken = await brokenModules(context);
    if (broken.length > 0) {
      throw new BootstrapFailure(
        'modules',
        `installed, but cannot be loaded by Node ${host.node}: ${broken.join(', ')}`,
        `look at the output of: npm rebuild ${broken.join(' ')} --foreground-scripts`,
      );
    }
    writeStamp(stampPath(root), digest(root));
  },
};

/** @param {string} root */
const stampPath = (root) => join(root, 'node_modules/.cache/dsec/modules.stamp');

/** @param {string} root */
function digest(root) {
  const manifests = ['.', ...workspaceFolders(root)].map((folder) =>
    join(root, folder, 'package.json'),
  );
  return digestOf(
    [join(root, 'package-lock.json'), ...manifests],
    [process.versions.modules, process.arch],
  );
}

/**
 * Whether node_modules holds what the lock file says, by npm's own record of what it installed. So
 * modules that a developer brought with `npm install` are not thrown away.
 *
 * @param {string} root
 */
export function isInstalledAsLocked(root) {
  const packagesOf = (/** @type {string} */ path) =>
    existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')).packages ?? {}) : undefined;
  const wanted = packagesOf(join(root, 'package-lock.json'));
  const installed = packagesOf(join(root, 'node_modules/.package-lock.json'));
  if (wanted === undefined || installed === undefined) return false;
  const inModules = (/** @type {Record<string, any>} */ packages) =>
    Object.entries(packages).filter(([path]) => path.startsWith('node_modules/'));
  const isSame = (/** @type {any} */ a, /** @type {any} */ b) =>
    a?.version === b?.version && a?.integrity === b?.integrity && a?.resolved === b?.resolved;
  return (
    inModules(wanted).every(([path, entry]) =>
      installed[path] === undefined ? entry.optional === true : isSame(entry, installed[path]),
    ) &&
    inModules(installed).every(
      ([path]) => wanted[path] !== undefined && existsSync(join(root, path)),
    )
  );
}

/** @param {import('./step.mjs').Context} context */
async function brokenModules({ root, run }) {
  const broken = [];
  for (const { name, proof } of NATIVE_MODULES) {
    if (!existsSync(join(root, 'node_modules', name))) continue;
    const { code } = await run(process.execPath, ['-e', proof], {
      cwd: root,
      timeoutMs: LOAD_TIMEOUT_MS,
    });
    if (code !== 0) broken.push(name);
  }
  return broken;
}

/**
 * @param {import('./run.mjs').RunResult} result
 * @param {string} what
 */
function failureOf(result, what) {
  if (OFFLINE.test(result.tail)) {
    const remedy = /gyp ERR/.test(result.tail)
      ? `node-gyp needs the headers of Node ${process.versions.node}: install them to ` +
        `${dirname(dirname(process.execPath))}/include/node, or let this machine reach Node's downloads`
      : 'connect this machine to the registry (or set one with npm config) and start again';
    return new BootstrapFailure(
      'offline',
      `${what} is cut off from the network:\n${result.tail}`,
      remedy,
    );
  }
  const how = result.timedOut
    ? `did not end within ${INSTALL_TIMEOUT_MS / 60_000} minutes`
    : `ended with ${result.code}`;
  return new BootstrapFailure(
    'modules',
    `${what} ${how}:\n${result.tail}`,
    'mend what the output names and start again',
  );
}
