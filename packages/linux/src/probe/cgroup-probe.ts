import { mkdir, readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { asOutcome } from './attempt.ts';
import { type HostFacts, type Outcome, untried, works } from './facts.ts';
import { parseMountinfo, parseUnifiedCgroup, parseWords } from './parse.ts';

export interface CgroupFacts {
  readonly create: Outcome;
  readonly files: readonly string[] | undefined;
  readonly controllers: readonly string[] | undefined;
}

/**
 * Looks into a cgroup v2 directory below the root, where the files that a sandbox needs lie: one made for
 * the purpose and removed again, or, without the right to make one, the process's own or any other.
 */
export async function probeCgroup(files: HostFacts['files']): Promise<CgroupFacts> {
  const root = unifiedRoot(files);
  if (root === undefined) {
    return { create: untried('no cgroup v2 tree'), files: undefined, controllers: undefined };
  }
  const controllers = parseWords(await readFile(join(root, 'cgroup.controllers'), 'utf8'));
  const trial = join(root, `dsec-doctor-${process.pid}`);
  try {
    await mkdir(trial);
  } catch (thrown) {
    return { create: asOutcome(thrown), files: await listBelow(root, files), controllers };
  }
  try {
    return { create: works('one was made'), files: await readdir(trial), controllers };
  } finally {
    await rmdir(trial);
  }
}

/** The mount point of the cgroup v2 tree. */
export function unifiedRoot(files: HostFacts['files']): string | undefined {
  const rows = parseMountinfo(files['/proc/self/mountinfo'] ?? '');
  return rows.find((row) => row.type === 'cgroup2')?.target;
}

async function listBelow(root: string, files: HostFacts['files']): Promise<string[] | undefined> {
  const own = parseUnifiedCgroup(files['/proc/self/cgroup'] ?? '') ?? '/';
  if (own !== '/') return readdir(join(root, own));
  const entries = await readdir(root, { withFileTypes: true });
  const first = entries.find((entry) => entry.isDirectory());
  return first === undefined ? undefined : readdir(join(root, first.name));
}
