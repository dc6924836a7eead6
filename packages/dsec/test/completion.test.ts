import { spawnSync } from 'node:child_process';
import { OPERATION_CLASSES } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { completionFor } from '../src/command-line/completion.ts';
import { COMMANDS } from '../src/command-line/rows.ts';
import { OPERATION_CLASS_WORDS } from '../src/command-line/words.ts';

/** What bash would offer after these words, the last of which is being typed. */
function offered(...words: readonly string[]): string[] {
  const script = [
    // The server's answers.
    'dsec() { case "$*" in "env ls --quiet") echo example mine;; "ps --quiet") echo sb-1;; esac; }',
    completionFor('bash', COMMANDS),
    `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})`,
    `COMP_CWORD=${words.length - 1}`,
    '_dsec',
    `printf "%s\\n" "\${COMPREPLY[@]}"`,
  ].join('\n');
  const { stdout } = spawnSync('/bin/bash', ['-c', script], { encoding: 'utf8', env: {} });
  return stdout.split('\n').filter(Boolean);
}

describe('completionFor', () => {
  it('offers commands, words of a group, options and their values', () => {
    expect(offered('dsec', 'e')).toEqual(expect.arrayContaining(['exec', 'events', 'env', 'edge']));
    expect(offered('dsec', 'layer', 've')).toEqual(['verify']);
    expect(offered('dsec', 'run', '--key')).toEqual([]);
    expect(offered('dsec', 'run', '--mem')).toEqual(['--memory']);
    expect(offered('dsec', 'key', 'create', '--scope', 'la')).toContain('layers:read');
    expect(OPERATION_CLASS_WORDS).toEqual([...OPERATION_CLASSES]);
    expect(offered('dsec', 'completion', 'f')).toEqual(['fish']);
    expect(offered('dsec', 'up', '--backend', 's')).toEqual(['sim']);
    expect(offered('dsec', 'layer', 'import', '--type', '')).toContain('docker-archive');
  });

  it('offers what the server has: environments and sandboxes', () => {
    for (const option of ['--env', '-e'])
      expect(offered('dsec', 'run', option, 'm')).toEqual(['mine']);
    expect(offered('dsec', 'env', 'show', 'ex')).toEqual(['example']);
    expect(offered('dsec', 'env', 'create', 'mi')).toEqual([]);
    expect(offered('dsec', 'stop', 'sb')).toEqual(['sb-1']);
    const fish = completionFor('fish', COMMANDS);
    expect(fish).toContain(
      "-s e -l env -d 'the environment that it is made of' -xa '(dsec env ls --quiet",
    );
  });

  it('names every command for each shell', () => {
    for (const shell of ['bash', 'zsh', 'fish'] as const) {
      const script = completionFor(shell, COMMANDS);
      for (const { name } of COMMANDS) expect(script).toContain(name.split(' ').at(-1));
    }
  });
});
