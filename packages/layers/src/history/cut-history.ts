/**
 * Cuts the history of a workspace for good (THREATS A4): its repository is made anew from the commits that
 * are kept, and nothing else of the old one stays.
 */
import { chmod, cp, lstat, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DsecError } from '@dsec/std';
import { type Git, openGit } from './git.ts';
import { normalizeTree } from './normalize-tree.ts';

export interface CutOptions {
  /** The workspace; its repository is `.git` in it. */
  readonly directory: string;
  /** The newest commit that is kept, by its whole id. Default: what HEAD means. */
  readonly commit?: string;
}

export interface CutHistory {
  readonly commit: string;
  readonly keptObjects: number;
  /** Ids of every object of the old repository that is not kept, for `checkHistory`. */
  readonly removed: readonly string[];
  /** Paths of the work tree that went: compiled residue, repositories inside. */
  readonly residue: readonly string[];
  /** Seconds since the epoch that everything has now. */
  readonly mtimeSeconds: number;
}

const OLD = '.dsec-history-old';
const NEW = '.dsec-history-new';
const ID = /^([0-9a-f]{40}|[0-9a-f]{64})$/;
const BRANCH = /^refs\/heads\/[A-Za-z0-9][A-Za-z0-9._/-]{0,200}$/;
const CONFIG = (format: string) =>
  `[core]\n\trepositoryformatversion = ${format === 'sha256' ? 1 : 0}\n\tfilemode = true\n\tbare = false\n` +
  `\tlogallrefupdates = false\n${format === 'sha256' ? '[extensions]\n\tobjectformat = sha256\n' : ''}`;

/**
 * Rewrites `.git` and normalises the work tree. `import-invalid` for a repository that cannot be read whole,
 * `unsupported` for one that lies elsewhere. After a crash the next call goes on.
 */
export async function cutHistory({ directory, commit }: CutOptions): Promise<CutHistory> {
  const gitDirectory = join(directory, '.git');
  await recover(directory, gitDirectory);
  if (!(await lstat(gitDirectory)).isDirectory()) {
    throw new DsecError('unsupported', '.git is no directory: cut the repository that it leads to');
  }
  const head = await readHead(gitDirectory);
  const kept = commit ?? head.commit;
  if (!ID.test(kept)) throw invalid(`${kept} is no whole id of a commit`);
  const format = kept.length === 64 ? 'sha256' : 'sha1';
  const shallow = await readOptional(join(gitDirectory, 'shallow'));
  const old = await openGit({ format, objects: join(gitDirectory, 'objects'), shallow });
  const fresh = await openGit({ format });
  try {
    const keptIds = await objectsOf(old, kept);
    const removed = await allObjects(old, keptIds);
    const mtimeSeconds = await timeOf(old, kept);
    await copyPack(old, fresh, kept);
    await buildGit(fresh, { directory, kept, branch: head.branch, format, shallow, keptIds });
    const tracked = await trackedPaths(fresh, kept);
    await rename(gitDirectory, join(directory, OLD));
    await rename(join(directory, NEW), gitDirectory);
    await rm(join(directory, OLD), { recursive: true });
    const residue = await normalizeTree(directory, tracked, mtimeSeconds);
    return { commit: kept, keptObjects: keptIds.size, removed, residue, mtimeSeconds };
  } finally {
    await old.remove();
    await fresh.remove();
  }
}

async function recover(directory: string, gitDirectory: string): Promise<void> {
  const isThere = (path: string) =>
    lstat(path).then(
      () => true,
      () => false,
    );
  await rm(join(directory, NEW), { recursive: true, force: true });
  if (!(await isThere(join(directory, OLD)))) return;
  if (await isThere(gitDirectory)) await rm(join(directory, OLD), { recursive: true });
  else await rename(join(directory, OLD), gitDirectory);
}

/** Without asking git, which would read the repository's own configuration. */
async function readHead(gitDirectory: string): Promise<{ commit: string; branch: string }> {
  const text = (await readFile(join(gitDirectory, 'HEAD'), 'utf8')).trim();
  if (ID.test(text)) return { commit: text, branch: 'refs/heads/main' };
  const branch = /^ref: (.+)$/.exec(text)?.[1] ?? '';
  if (!BRANCH.test(branch) || branch.includes('..')) throw invalid(`HEAD is ${text.slice(0, 100)}`);
  const loose = await readOptional(join(gitDirectory, branch));
  if (loose !== undefined) return { commit: loose.trim(), branch };
  const packed = (await readOptional(join(gitDirectory, 'packed-refs'))) ?? '';
  const line = packed.split('\n').find((each) => each.endsWith(` ${branch}`));
  if (line === undefined) throw invalid(`${branch} has no commit`);
  return { commit: line.split(' ')[0] ?? '', branch };
}

async function objectsOf(git: Git, commit: string): Promise<Set<string>> {
  const ids = new Set<string>();
  const walk = ['rev-list', '--objects', '--no-object-names', '--stdin'];
  for await (const line of git.lines(walk, `${commit}\n`)) ids.add(line);
  return ids;
}

async function allObjects(git: Git, kept: ReadonlySet<string>): Promise<string[]> {
  const removed: string[] = [];
  const list = ['cat-file', '--batch-all-objects', '--batch-check=%(objectname)', '--unordered'];
  for await (const id of git.lines(list)) if (!kept.has(id)) removed.push(id);
  return removed;
}

async function timeOf(git: Git, commit: string): Promise<number> {
  const show = ['rev-list', '--no-walk', '--timestamp', '--stdin'];
  for await (const line of git.lines(show, `${commit}\n`)) return Number(line.split(' ')[0]);
  throw invalid(`${commit} is no commit`);
}

/** Every object is compressed anew, so that no byte is taken from a pack of the old repository. */
async function copyPack(old: Git, fresh: Git, commit: string): Promise<void> {
  const pack = join(fresh.directory, 'objects', 'pack', 'pack');
  await mkdir(join(fresh.directory, 'objects', 'pack'), { recursive: true });
  const args = [
    'pack-objects',
    '-q',
    '--revs',
    '--no-reuse-object',
    '--no-reuse-delta',
    '--threads=1',
  ];
  await old.run([...args, pack], `${commit}\n`);
}

interface NewRepository {
  readonly directory: string;
  readonly kept: string;
  readonly branch: string;
  readonly format: string;
  readonly shallow: string | undefined;
  readonly keptIds: ReadonlySet<string>;
}

async function buildGit(fresh: Git, made: NewRepository): Promise<void> {
  const { directory, kept, branch, format, shallow = '', keptIds } = made;
  const target = join(directory, NEW);
  const boundary = shallow.split('\n').filter((id) => keptIds.has(id));
  if (boundary.length > 0)
    await writeFile(join(fresh.directory, 'shallow'), `${boundary.join('\n')}\n`);
  // Without the times of files: `git status` compares them once.
  await fresh.run(['read-tree', kept]);
  await mkdir(join(target, 'refs', 'heads'), { recursive: true });
  await mkdir(dirname(join(target, branch)), { recursive: true });
  await cp(join(fresh.directory, 'objects', 'pack'), join(target, 'objects', 'pack'), {
    recursive: true,
  });
  await cp(join(fresh.directory, 'index'), join(target, 'index'));
  if (boundary.length > 0) await writeFile(join(target, 'shallow'), `${boundary.join('\n')}\n`);
  await writeFile(join(target, 'config'), CONFIG(format));
  await writeFile(join(target, branch), `${kept}\n`);
  await writeFile(join(target, 'HEAD'), `ref: ${branch}\n`);
  await chmod(target, 0o755);
}

async function trackedPaths(fresh: Git, commit: string): Promise<ReadonlySet<string>> {
  const paths = new Set<string>();
  let rest = '';
  for await (const chunk of fresh.read(['ls-tree', '-r', '-z', '--name-only', commit])) {
    const names = (rest + chunk.toString('latin1')).split('\0');
    rest = names.pop() ?? '';
    for (const name of names) paths.add(name);
  }
  return paths;
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EISDIR') return undefined;
    throw thrown;
  }
}

function invalid(message: string): DsecError {
  return new DsecError('import-invalid', message);
}
