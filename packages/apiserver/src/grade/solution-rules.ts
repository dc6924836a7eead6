/** What of a solver's files is taken for grading: pure rules over what its sandbox says of them. */
import type { FileEntry, GradeReport } from '@dsec/protocol';
import { DsecError } from '@dsec/std';

export type LeftReason = GradeReport['left'][number]['reason'];

/**
 * Names that act on tests without being asked to: of Python, of pytest, of git. Nothing of such a name, or
 * below one, is taken or removed.
 */
export const RUNS_BY_ITSELF: readonly string[] = [
  ...['conftest.py', 'sitecustomize.py', 'usercustomize.py', '*.pth', '*.egg-link', '*.pyc'],
  ...['entry_points.txt', 'pytest.ini', '.pytest.ini', '.pytest_cache', '.git', 'pyvenv.cfg'],
];

const FORBIDDEN = /^\/(proc|sys|dev|\.dsec)(\/|$)/;

/** Absolute, without odd parts, and not the root. Throws `invalid-argument`. */
export function checkPath(path: string, field: string): string {
  const trimmed = path.replace(/\/+$/, '');
  const isOdd = trimmed
    .split('/')
    .slice(1)
    .some((part) => part === '' || part === '.' || part === '..');
  if (trimmed === '' || isOdd || FORBIDDEN.test(trimmed)) {
    throw new DsecError(
      'invalid-argument',
      `${field}: ${path} is no plain path below / that a solution can have`,
      { details: { field } },
    );
  }
  return trimmed;
}

export const isBelow = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(`${directory}/`);

/** Of two where one holds the other, only that one. */
export function outermost(paths: readonly string[]): readonly string[] {
  const distinct = [...new Set(paths)];
  return distinct.filter(
    (path) => !distinct.some((other) => other !== path && isBelow(path, other)),
  );
}

export interface SolutionRules {
  /** The solution path that the entry is below. */
  readonly root: string;
  readonly testPaths: readonly string[];
  readonly fullState: boolean;
}

/** Why an entry is left where it is; undefined for one that is taken. */
export function reasonToLeave(
  path: string,
  entry: FileEntry,
  { root, testPaths, fullState }: SolutionRules,
): LeftReason | undefined {
  if (entry.nameBase64 !== undefined || entry.symlinkTargetBase64 !== undefined) return 'name';
  if (!fullState && testPaths.some((test) => isBelow(path, test))) return 'test';
  if (!fullState && runsByItself(entry.name)) return 'runs-by-itself';
  if (entry.kind === 'directory') return undefined;
  if (entry.kind === 'symlink') {
    return staysBelow(path, entry.symlinkTarget ?? '', root) ? undefined : 'link-target';
  }
  if (entry.kind !== 'file') return 'kind';
  return entry.links > 1 ? 'hard-link' : undefined;
}

export function runsByItself(name: string): boolean {
  return RUNS_BY_ITSELF.some((pattern) =>
    pattern.startsWith('*') ? name.endsWith(pattern.slice(1)) : name === pattern,
  );
}

/**
 * Whether a link leads to a place below `root` wherever the links on its way lead, if those do: `..` only in
 * front, where it is counted from the link's own directory.
 */
export function staysBelow(path: string, target: string, root: string): boolean {
  if (target === '' || target.startsWith('/')) return false;
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const ups = parts.findIndex((part) => part !== '..');
  const upCount = ups === -1 ? parts.length : ups;
  if (parts.slice(upCount).includes('..')) return false;
  const depth = path.slice(root.length).split('/').length - 2;
  return upCount <= depth;
}
