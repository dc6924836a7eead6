import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
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
    context.skip(paths.length === 0, 'there are no C sources');
    const program = join(root, '.venv/bin/clang-format');
    context.skip(!existsSync(program), 'there is no .venv: node tools/bootstrap.mjs --test');
    const { status, stderr } = spawnSync(program, ['--dry-run', '-Werror', ...paths], {
      cwd: root,
      encoding: 'utf8',
    });
    if (status === 0) return;
    const where = stderr.split('\n').filter((line) => line.includes(': error: '));
    const files = new Set(where.map((line) => line.split(':')[0]));
    throw new Error(
      `${files.size} to mend with .venv/bin/clang-format -i:\n` +
        `${[...files].join('\n')}\n${where[0] ?? stderr}`,
    );
  });
});
