import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runTool } from './run-tool.ts';

const EXAMPLES = fileURLToPath(new URL('../../../../examples/', import.meta.url));

/**
 * Makes the example workspace below `root`: `/workspace/spans` with the working tree and the git
 * history that the
 * patches describe. The same patches give the same commit ids.
 */
export async function makeWorkspaceTree(root: string, signal?: AbortSignal): Promise<void> {
  rmSync(root, { recursive: true, force: true });
  const project = join(root, 'workspace', 'spans');
  mkdirSync(project, { recursive: true, mode: 0o755 });
  const history = join(EXAMPLES, 'spans', 'history');
  const patches = readdirSync(history)
    .sort()
    .map((name) => join(history, name));
  const git = (...args: string[]) =>
    runTool('git', ['-c', 'init.defaultBranch=main', '-c', 'gc.auto=0', ...args], {
      cwd: project,
      env: GIT_ENVIRONMENT,
      debianPackage: 'git',
      ...(signal === undefined ? {} : { signal }),
    });
  await git('init', '--quiet', '--template=');
  await git('am', '--quiet', '--committer-date-is-author-date', ...patches);
  rmSync(join(project, '.git', 'logs'), { recursive: true, force: true });
}

const GIT_ENVIRONMENT = {
  GIT_COMMITTER_NAME: 'dsec',
  GIT_COMMITTER_EMAIL: 'dsec@example.invalid',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
};

/** Makes the example toolkit below `root`: `/opt/codestat` and a link to its command. */
export function makeToolkitTree(root: string): void {
  rmSync(root, { recursive: true, force: true });
  mkdirSync(join(root, 'usr', 'local', 'bin'), { recursive: true, mode: 0o755 });
  mkdirSync(join(root, 'opt'), { mode: 0o755 });
  cpSync(join(EXAMPLES, 'codestat'), join(root, 'opt', 'codestat'), {
    recursive: true,
    filter: (path) => !path.includes('__pycache__') && !path.endsWith('/var'),
  });
  symlinkSync('/opt/codestat/bin/codestat', join(root, 'usr', 'local', 'bin', 'codestat'));
}
