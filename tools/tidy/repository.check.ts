import { execFileSync } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { cFiles, formatFinding, readRepository } from './repository.ts';
import { RULES } from './rules.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const repository = readRepository(root);
const SHOWN_MAX = 100;

describe('house rules', () => {
  it.each(RULES)('$name', ({ check }) => {
    const { looked, findings } = check(repository);
    expect(looked, 'the rule has looked at nothing, so it proves nothing').toBeGreaterThan(0);
    if (findings.length > 0) {
      const shown = findings.slice(0, SHOWN_MAX).map(formatFinding);
      throw new Error(`${findings.length} to mend:\n${shown.join('\n')}`);
    }
  });

  it('C sources are formatted', (context) => {
    const paths = cFiles(repository).map(({ path }) => path);
    context.skip(paths.length === 0, 'there are no C sources yet');
    context.skip(!isInstalled('clang-format'), 'clang-format is not installed (bootstrap --test)');
    execFileSync('clang-format', ['--dry-run', '-Werror', ...paths], { cwd: root, stdio: 'pipe' });
  });
});

function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
