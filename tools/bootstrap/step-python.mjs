// @ts-check
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BootstrapFailure } from './failure.mjs';
import { digestOf, readStamp, writeStamp } from './stamp.mjs';

/** @typedef {import('./step.mjs').Context} Context */

const TIMEOUT_MS = 600_000;
/** The distribution's, so that what is tested does not depend on what else a developer has in PATH. */
const PYTHON = '/usr/bin/python3';
const RUNTIME = 'python/requirements.txt';
const DEVELOPMENT = 'python/requirements-dev.txt';

/**
 * The environment in which `import libdsec` works: its packages, and a pointer to its sources.
 *
 * @type {import('./step.mjs').Step}
 */
export const pythonStep = {
  name: 'python',

  async missing(context) {
    const isReady = readStamp(stampPath(context.root)) === (await digest(context));
    return isReady ? [] : ['the Python environment .venv'];
  },

  async bring(context) {
    const { root, run, report } = context;
    report.note('making .venv');
    const made = await run(python(), ['-m', 'venv', '--clear', '.venv'], {
      cwd: root,
      timeoutMs: TIMEOUT_MS,
    });
    if (made.code !== 0) throw failureOf('python3 -m venv', made.tail);
    await pipInstall(context, RUNTIME);
    await linkSources(context);
    writeStamp(stampPath(root), await digest(context));
  },
};

/**
 * What the tests and the generator need beside that.
 *
 * @type {import('./step.mjs').Step}
 */
export const pythonTestStep = {
  name: 'python tests',

  async missing(context) {
    const isReady = readStamp(testStampPath(context.root)) === (await digest(context, DEVELOPMENT));
    return isReady ? [] : ['the Python packages of the tests'];
  },

  async bring(context) {
    await pipInstall(context, DEVELOPMENT);
    writeStamp(testStampPath(context.root), await digest(context, DEVELOPMENT));
  },
};

const python = () => (existsSync(PYTHON) ? PYTHON : 'python3');
/** @param {string} root */
const stampPath = (root) => join(root, '.venv/dsec.stamp');
/** In the environment, so that it goes when that is made anew. @param {string} root */
const testStampPath = (root) => join(root, '.venv/dsec-test.stamp');

/** @param {Context} context @param {string} requirements */
async function pipInstall({ root, run, report }, requirements) {
  report.note(`pip install -r ${requirements}`);
  const options = ['install', '--disable-pip-version-check', '-r', requirements];
  const { code, tail } = await run(join(root, '.venv/bin/python'), ['-m', 'pip', ...options], {
    cwd: root,
    timeoutMs: TIMEOUT_MS,
    onLine: report.progress,
  });
  if (code !== 0) throw failureOf('pip install', tail);
}

/**
 * By a path file instead of `pip install -e`, which would fetch what builds a package.
 *
 * @param {Context} context
 */
async function linkSources({ root, run }) {
  const program = "import sysconfig; print(sysconfig.get_path('purelib'))";
  const { code, tail } = await run(join(root, '.venv/bin/python'), ['-c', program], {
    cwd: root,
    timeoutMs: TIMEOUT_MS,
  });
  if (code !== 0) throw failureOf('python', tail);
  writeFileSync(join(tail.trim(), 'dsec.pth'), `${join(root, 'python')}\n`);
}

/** @param {Context} context @param {string[]} more Lists of requirements beside that of the SDK. */
async function digest({ root, run }, ...more) {
  const { tail } = await run(python(), ['--version'], { timeoutMs: TIMEOUT_MS });
  const lists = [RUNTIME, ...more].map((list) => join(root, list));
  // A virtual environment holds absolute paths: a moved repository needs a new one.
  return digestOf(lists, [tail, root]);
}

/** @param {string} what @param {string} output */
function failureOf(what, output) {
  const isOffline = /NewConnectionError|Temporary failure|ConnectTimeout|Max retries/.test(output);
  return new BootstrapFailure(
    isOffline ? 'offline' : 'modules',
    `${what} failed:\n${output}`,
    isOffline
      ? 'connect this machine to the Python registry (or set one in pip.conf) and start again'
      : 'mend what the output names and start again',
  );
}
