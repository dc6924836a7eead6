import type { CommandRow } from './command-row.ts';

/** About the command line itself, and beside it. */
export const TOOL_COMMANDS: readonly CommandRow[] = [
  {
    name: 'bench',
    summary: 'measure this machine, where the repository is',
    arguments: [{ syntax: '[word...]', about: 'a benchmark and its options; none: list them' }],
    passThrough: true,
    examples: ['bench create', 'bench exec --runs 3'],
    load: () => import('../commands/bench.ts'),
  },
  {
    name: 'completion',
    summary: 'print what makes a shell complete these commands',
    arguments: [{ syntax: '<shell>', about: 'bash, zsh or fish', words: ['bash', 'zsh', 'fish'] }],
    details:
      'For bash: source <(dsec completion bash). For zsh: source <(dsec completion zsh). For fish: ' +
      'dsec completion fish | source.',
    examples: ['completion bash'],
    load: () => import('../commands/completion.ts'),
  },
];
