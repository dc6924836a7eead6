// @ts-check
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../bootstrap/run.mjs';
import { LabUnavailable } from './failure.mjs';

const TIMEOUT_MS = 300_000;

/**
 * @typedef {object} PrivateApt
 * @property {() => Promise<void>} update Reads the archives' lists.
 * @property {(prefix: string) => Promise<string[]>} names Packages whose name begins so.
 * @property {(packages: readonly string[], target: string) => Promise<string[]>} unpack Downloads
 *   packages and lays their files below `target`; answers with the names of the archives, which hold the
 *   versions. Nothing is installed.
 */

/**
 * apt with sources, lists and cache of its own below `folder`: the machine's are neither read nor changed,
 * and no rights are needed.
 *
 * @param {string} folder
 * @param {string} sources deb822 text.
 * @returns {PrivateApt}
 */
export function privateApt(folder, sources) {
  const conf = join(folder, 'apt.conf');
  for (const name of ['lists/partial', 'cache/archives/partial', 'etc']) {
    mkdirSync(join(folder, name), { recursive: true });
  }
  writeFileSync(join(folder, 'etc/lab.sources'), sources);
  writeFileSync(conf, configuration(folder));

  const ask = async (
    /** @type {string} */ command,
    /** @type {string[]} */ args,
    /** @type {string | undefined} */ cwd = undefined,
  ) => {
    const options = { env: { LC_ALL: 'C' }, timeoutMs: TIMEOUT_MS };
    const result = await run(command, args, cwd === undefined ? options : { ...options, cwd });
    if (result.code !== 0) {
      throw new LabUnavailable(
        `${command} ${args.join(' ')} ended with ${result.code}:\n${result.tail}`,
      );
    }
    return result.stdout;
  };

  return {
    async update() {
      await ask('apt-get', ['-c', conf, 'update', '-q', '-o', 'APT::Update::Error-Mode=any']);
    },
    async names(prefix) {
      const names = await ask('apt-cache', ['-c', conf, 'pkgnames', prefix]);
      return names.split('\n').filter(Boolean);
    },
    async unpack(packages, target) {
      const archives = join(folder, 'archives');
      rmSync(archives, { recursive: true, force: true });
      mkdirSync(archives);
      mkdirSync(target, { recursive: true });
      await ask('apt-get', ['-c', conf, 'download', '-q', ...packages], archives);
      const names = readdirSync(archives).sort();
      for (const name of names) await ask('dpkg', ['-x', join(archives, name), target]);
      rmSync(archives, { recursive: true });
      return names;
    },
  };
}

/** @param {string} folder */
function configuration(folder) {
  return [
    '#clear APT::Update::Post-Invoke;',
    '#clear APT::Update::Post-Invoke-Success;',
    ...['DEP-11', 'CNF', 'Contents-deb'].map(
      (target) => `Acquire::IndexTargets::deb::${target}::DefaultEnabled "false";`,
    ),
    'Acquire::Languages "none";',
    'APT::Sandbox::User "root";',
    `Dir::Etc::sourcelist "${folder}/etc/lab.sources";`,
    'Dir::Etc::sourceparts "/dev/null";',
    `Dir::State::lists "${folder}/lists";`,
    `Dir::Cache "${folder}/cache";`,
    '',
  ].join('\n');
}
