import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DsecError } from '@dsec/std';
import { runTool } from './run-tool.ts';

/** What the example base holds beyond the distribution's minimal set. */
const PACKAGES = [
  'ca-certificates',
  'gcc',
  'git',
  'libc6-dev',
  'make',
  'python3',
  'python3-pytest',
];

/** Without these `git status` trusts no time or inode number of a layer and reads every file again. */
const GIT_CONFIG = '[core]\\n\\tcheckStat = minimal\\n\\ttrustctime = false\\n';

export interface DistributionBase {
  /** For example `debian` and `12`. */
  readonly name: string;
  readonly version: string;
  readonly tarPath: string;
  readonly cached: boolean;
}

/**
 * A root file system of this machine's own distribution (Debian or Ubuntu), made by mmdebstrap from
 * the machine's own
 * package sources, as a tar archive in the cache. Takes about a minute the first time. Needs root.
 */
export async function makeDistributionBase(
  cacheDirectory: string,
  signal?: AbortSignal,
): Promise<DistributionBase> {
  const release = readOsRelease();
  const key = createHash('sha256')
    .update(JSON.stringify([release, PACKAGES, GIT_CONFIG]))
    .digest('hex');
  const tarPath = join(
    cacheDirectory,
    `base-${release.id}-${release.version}-${key.slice(0, 16)}.tar`,
  );
  const base = { name: release.id, version: release.version, tarPath };
  if (existsSync(tarPath)) return { ...base, cached: true };

  const temporary = `${tarPath}.${process.pid}.tar`;
  const args = ['--mode=root', '--variant=minbase', `--include=${PACKAGES.join(',')}`];
  const gitConfigHook = `--customize-hook=printf '${GIT_CONFIG}' > "$1/etc/gitconfig"`;
  try {
    await runTool(
      'mmdebstrap',
      [...args, gitConfigHook, release.codename, temporary, ...distributionSources(release.id)],
      {
        debianPackage: 'mmdebstrap',
        env: { SOURCE_DATE_EPOCH: '1767225600', LC_ALL: 'C.UTF-8' },
        ...(signal === undefined ? {} : { signal }),
      },
    );
    renameSync(temporary, tarPath);
  } finally {
    rmSync(temporary, { force: true });
  }
  return { ...base, cached: false };
}

interface OsRelease {
  readonly id: string;
  readonly version: string;
  readonly codename: string;
}

function readOsRelease(): OsRelease {
  const text = readFileSync('/etc/os-release', 'utf8');
  const value = (key: string) => new RegExp(`^${key}="?([^"\n]*)"?$`, 'm').exec(text)?.[1] ?? '';
  const release = {
    id: value('ID'),
    version: value('VERSION_ID'),
    codename: value('VERSION_CODENAME'),
  };
  if (!['debian', 'ubuntu'].includes(release.id) || release.codename === '') {
    throw new DsecError(
      'unsupported',
      'a base can be made from the distribution only on a Debian or Ubuntu release; import an image instead',
    );
  }
  return release;
}

/** Package source files of the distribution itself; third-party repositories have no place in a base. */
function distributionSources(distribution: string): string[] {
  const directory = '/etc/apt/sources.list.d';
  const names = existsSync(directory) ? readdirSync(directory).sort() : [];
  const candidates = [...names.map((name) => join(directory, name)), '/etc/apt/sources.list'];
  const archive =
    distribution === 'debian' ? /\bdebian(-security)?\/?(\s|$)/m : /\bubuntu(-ports)?\/?(\s|$)/m;
  return candidates.filter((path) => {
    if (!/\.(sources|list)$/.test(path) || !existsSync(path)) return false;
    const text = readFileSync(path, 'utf8').replace(/^\s*#.*$/gm, '');
    return /^\s*(deb\s|URIs:)/m.test(text) && archive.test(text);
  });
}
