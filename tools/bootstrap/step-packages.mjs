// @ts-check
import { BootstrapFailure } from './failure.mjs';
import { hasCommand } from './host.mjs';
import { PACKAGES } from './packages.mjs';

/**
 * The rows that this host needs for what was asked.
 *
 * @param {readonly import('./packages.mjs').PackageRow[]} rows
 * @param {import('./host.mjs').Host} host
 * @param {boolean} test
 */
export function neededRows(rows, host, test) {
  return rows.filter(
    (row) =>
      (test || row.need === 'build') &&
      (row.arch === undefined || row.arch.includes(host.arch)) &&
      (row.distributionNode !== true || host.distributionNode),
  );
}

/** @type {import('./step.mjs').Step} */
export const packagesStep = {
  name: 'packages',

  async missing({ host, options, apt }) {
    const rows = neededRows(PACKAGES, host, options.test);
    if (!host.hasApt) {
      return rows.flatMap(({ command, name, why }) =>
        command === undefined || hasCommand(command)
          ? []
          : [`${command} (Debian's ${name}: ${why})`],
      );
    }
    const installed = await apt.installed(rows.map((row) => row.name));
    const missing = [];
    for (const row of rows) {
      const version = installed.get(row.name);
      const least = row.versionMin?.[host.id];
      const isFit =
        version !== undefined && (least === undefined || (await apt.isAtLeast(version, least)));
      if (!isFit) missing.push(row.name);
    }
    return missing;
  },

  async bring({ host, options, apt, report }, missing) {
    if (!host.hasApt) {
      throw new BootstrapFailure(
        'host',
        `this is ${host.title}, where DSec cannot install packages by itself; missing: ${missing.join(', ')}`,
        'install these programs, or use Debian 12, Debian 13 or Ubuntu 24.04 and newer',
      );
    }
    const rows = neededRows(PACKAGES, host, options.test).filter((row) =>
      missing.includes(row.name),
    );
    if (!host.isRoot) {
      throw new BootstrapFailure(
        'rights',
        `these packages are missing and only root can install them: ${missing.join(' ')}`,
        `sudo node tools/bootstrap.mjs${options.test ? ' --test' : ''}`,
      );
    }
    const isBackport = (/** @type {typeof rows[number]} */ row) =>
      row.backports?.includes(host.id) === true;
    if (rows.some(isBackport)) await apt.useBackports(host.codename);
    await apt.update();
    await install(
      rows.filter((row) => !isBackport(row)),
      [],
    );
    await install(rows.filter(isBackport), ['-t', `${host.codename}-backports`]);

    /** @param {typeof rows} wanted @param {readonly string[]} from */
    async function install(wanted, from) {
      if (wanted.length === 0) return;
      report.note(`installing ${wanted.map((row) => `${row.name} (${row.why})`).join(', ')}`);
      const names = wanted.map((row) => row.name);
      const flags = [
        'install',
        '-y',
        '-q',
        '--no-install-recommends',
        '-o',
        'Dpkg::Options::=--force-confold',
      ];
      await apt.get([...flags, ...from, ...names], `installing ${names.join(' ')}`);
    }
  },
};
