// @ts-check
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { BootstrapFailure } from './failure.mjs';
import { digestOf, readStamp, writeStamp } from './stamp.mjs';

const TIMEOUT_MS = 600_000;
/** The distribution's, so that what is tested does not depend on what else a developer has in PATH. */
const PYTHON = '/usr/bin/python3';

/** @type {import('./step.mjs').Step} */
export const pythonStep = {
  name: 'python',

  async missing(context) {
    if (!existsSync(requirementsPath(context.root))) return [];
    return readStamp(stampPath(context.root)) === (await digest(context))
      ? []
      : ['the Python environment .venv'];
  },

  async bring(context) {
    const { root, run, report } = context;
    const python = existsSync(PYTHON) ? PYTHON : 'python3';
    report.note('making .venv');
    const made = await run(python, ['-m', 'venv', '--clear', '.venv'], {
      cwd: root,
      timeoutMs: TIMEOUT_MS,
    });
    if (made.code !== 0) throw failureOf('python3 -m venv', made.tail);
    report.note('pip install -r python/requirements-dev.txt');
    const pip = [
      '-m',
      'pip',
      'install',
      '--disable-pip-version-check',
      '-r',
      'python/requirements-dev.txt',
    ];
    const installed = await run(join(root, '.venv/bin/python'), pip, {
      cwd: root,
      timeoutMs: TIMEOUT_MS,
      onLine: report.progress,
    });
    if (installed.code !== 0) throw failureOf('pip install', installed.tail);
    writeStamp(stampPath(root), await digest(context));
  },
};

/** @param {string} root */
const requirementsPath = (root) => join(root, 'python/requirements-dev.txt');
/** @param {string} root */
const stampPath = (root) => join(root, '.venv/dsec.stamp');

/** @param {import('./step.mjs').Context} context */
async function digest({ root, run }) {
  const python = existsSync(PYTHON) ? PYTHON : 'python3';
  const { tail } = await run(python, ['--version'], { timeoutMs: TIMEOUT_MS });
  // A virtual environment holds absolute paths: a moved repository needs a new one.
  return digestOf([requirementsPath(root)], [tail, root]);
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
