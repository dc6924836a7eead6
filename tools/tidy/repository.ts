import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** One file of the repository, read once for all rules. */
export interface RepositoryFile {
  /** Relative to the root, with `/`. */
  readonly path: string;
  readonly bytes: Buffer;
  readonly text: string;
}

export interface Repository {
  readonly root: string;
  readonly files: ReadonlyMap<string, RepositoryFile>;
}

/** Something to mend. The message says what to do instead. */
export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

export interface RuleResult {
  /** How many things the rule has looked at. A rule that looked at none proves nothing. */
  readonly looked: number;
  readonly findings: readonly Finding[];
}

export interface Rule {
  readonly name: string;
  check(repository: Repository): RuleResult;
}

const GIT_OUTPUT_BYTES_MAX = 64 << 20;

/** What git tracks, and what it would track if it were added now. Ignored files are not looked at. */
export function readRepository(root: string): Repository {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const list = execFileSync('git', args, { cwd: root, maxBuffer: GIT_OUTPUT_BYTES_MAX });
  const paths = new Set(list.toString('utf8').split('\0').filter(Boolean));
  const present = [...paths].filter((path) => isFile(join(root, path)));
  return {
    root,
    files: new Map(present.map((path) => [path, fileOf(path, readFileSync(join(root, path)))])),
  };
}

/** A repository made of texts, for tests of the rules. */
export function repositoryOf(texts: Readonly<Record<string, string | Buffer>>): Repository {
  const files = Object.entries(texts).map(([path, content]) =>
    fileOf(path, Buffer.isBuffer(content) ? content : Buffer.from(content)),
  );
  return { root: '/repository', files: new Map(files.map((file) => [file.path, file])) };
}

const CODE = /\.(ts|mts|mjs|js)$/;
const C_CODE = /\.[ch]$/;

/** TypeScript and JavaScript written by hand. */
export function codeFiles(repository: Repository): RepositoryFile[] {
  return [...repository.files.values()].filter(
    ({ path }) => CODE.test(path) && !path.endsWith('.d.ts') && !isGenerated(path),
  );
}

/** C written by hand. */
export function cFiles(repository: Repository): RepositoryFile[] {
  return [...repository.files.values()].filter(
    ({ path }) => C_CODE.test(path) && !isGenerated(path),
  );
}

export function isGenerated(path: string): boolean {
  return path.includes('.gen.');
}

/** Runs by itself: nothing has to import it. */
export function isTestFile(path: string): boolean {
  return /\.(test|check)\.(ts|mjs)$/.test(path);
}

export function formatFinding({ path, line, message }: Finding): string {
  return `${path}:${line}: ${message}`;
}

function fileOf(path: string, bytes: Buffer): RepositoryFile {
  return { path, bytes, text: bytes.toString('utf8') };
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
