import type { CommandRow } from './command-row.ts';
import type { OptionRow } from './table.ts';
import {
  EVENT_TYPE_WORDS,
  OPERATION_CLASS_WORDS,
  POLICY_STAGE_WORDS,
  SANDBOX_STATE_WORDS,
} from './words.ts';

const URL: OptionRow = {
  ...{ flags: '--url <address>', setting: 'url' },
  about: 'the server, when it is not that of the client file',
};
const SANDBOX = { syntax: '<sandbox>', about: 'its id, as dsec ps lists it' } as const;
const COMMAND = { syntax: '[command...]', about: 'a program and its arguments, after --' } as const;

const COMMAND_OPTIONS: readonly OptionRow[] = [
  { flags: '-t, --tty', about: 'give it a terminal, which ours becomes' },
  { flags: '--no-input', about: 'keep our standard input for ourselves' },
  { flags: '--timeout <time>', about: 'end it after so long: 30s, 10m' },
  {
    ...{ flags: '-v, --var <name=value>', repeatable: true },
    about: 'a variable for it; may be repeated',
  },
  { flags: '-u, --user <user>', about: 'who runs it: a name or number, or user:group' },
  { flags: '-w, --cwd <path>', about: 'where it starts' },
];

/** Sandboxes, their commands and their files. */
export const SANDBOX_COMMANDS: readonly CommandRow[] = [
  {
    name: 'run',
    summary: 'run a command in a new sandbox, which is stopped afterwards',
    details:
      'The exit code is that of the command, or 128 and the signal that ended it. Ctrl-C stops the ' +
      'sandbox; one whose client was killed ends by itself two minutes later. With --keep and no command ' +
      'the sandbox is made, and its id printed.',
    arguments: [COMMAND],
    passThrough: true,
    options: [
      {
        ...{ flags: '-e, --env <name>', names: 'environments' },
        about: 'the environment that it is made of',
      },
      {
        ...{ flags: '-l, --layer <ref>', repeatable: true },
        about: 'or its layers, from the base up; repeated',
      },
      { flags: '--keep', about: 'let it run on' },
      { flags: '--count <n>', about: 'so many sandboxes at once, the command in each' },
      { flags: '--cpus <n>', about: 'processors, such as 2 or 0.5' },
      { flags: '--memory <size>', about: 'such as 512M or 4GiB' },
      { flags: '--disk <size>', about: 'for what it writes' },
      { flags: '--pids <n>', about: 'processes and threads' },
      { flags: '--ttl <time>', about: 'end it after so long, whatever it does' },
      {
        flags: '--policy <policy>',
        about: 'what it may do: a file, - for standard input, or profile:NAME',
      },
      {
        ...{ flags: '--stage <name>', words: POLICY_STAGE_WORDS },
        about: 'of the policy, to begin with',
      },
      {
        ...{ flags: '--watch-path <path>', repeatable: true },
        about: 'what is changed there is told as tamper; may be repeated',
      },
      { flags: '--job <name>', about: 'the job that it belongs to' },
      {
        ...{ flags: '--label <name=value>', repeatable: true },
        about: 'a label; may be repeated',
      },
      ...COMMAND_OPTIONS,
      URL,
    ],
    examples: [
      'run --env example -- python3 -c "print(6 * 7)"',
      'run --layer base/example:latest --count 16 -- hostname',
    ],
    load: () => import('../commands/run.ts'),
  },
  {
    name: 'exec',
    summary: 'run a command in a sandbox that is there',
    details:
      'Options and the sandbox stand before --, the command behind it; -- may be left out when no option ' +
      'stands behind the sandbox. Standard input is passed on, but never waited for. The first Ctrl-C is ' +
      'for the command; a second one leaves it running. The exit code is that of the command, or 128 and ' +
      'the signal that ended it.',
    arguments: [SANDBOX, COMMAND],
    passThrough: true,
    options: [
      { flags: '-d, --detach', about: 'leave it running and print its id, for dsec logs' },
      ...COMMAND_OPTIONS,
      URL,
    ],
    examples: ['exec sb-local-local-abcdefghijklmnop -- sh -c "ls | wc -l"'],
    load: () => import('../commands/exec.ts'),
  },
  {
    name: 'shell',
    summary: 'open a shell in a sandbox, on this terminal',
    details: 'Enter ~ . leaves a shell that does not answer; ~ ~ sends one ~.',
    arguments: [SANDBOX],
    options: [...COMMAND_OPTIONS.filter(({ flags }) => /--(var|user|cwd)/.test(flags)), URL],
    examples: ['shell sb-local-local-abcdefghijklmnop'],
    load: () => import('../commands/shell.ts'),
  },
  {
    name: 'ps',
    summary: 'list sandboxes in the order of their creation',
    options: [
      { flags: '-a, --all', about: 'those that have ended not long ago, too' },
      {
        ...{ flags: '--only <state>', repeatable: true, words: SANDBOX_STATE_WORDS },
        about: 'of a state; may be repeated',
      },
      { flags: '--job <name>', about: 'of a job' },
      {
        ...{ flags: '--label <name=value>', repeatable: true },
        about: 'with a label; may be repeated',
      },
      { flags: '--limit <n>', about: 'the most to list' },
      { flags: '-q, --quiet', about: 'ids alone' },
      URL,
    ],
    examples: ['ps', 'ps --all --job train-7'],
    load: () => import('../commands/ps.ts'),
  },
  {
    name: 'show',
    summary: 'show a sandbox: state, layers, use, protections, its last commands',
    arguments: [SANDBOX],
    options: [URL],
    examples: ['show sb-local-local-abcdefghijklmnop'],
    load: () => import('../commands/show.ts'),
  },
  {
    name: 'logs',
    summary: 'print what a command wrote, by default the last one',
    details:
      'Of a command that could not be started, its error. With --json the record of the command: how it ' +
      'ended and how much it wrote, not what.',
    arguments: [SANDBOX, { syntax: '[command]', about: 'the id of a command' }],
    options: [
      { flags: '-f, --follow', about: 'go on until it ends' },
      { flags: '--list', about: 'list the commands instead' },
      URL,
    ],
    examples: ['logs sb-local-local-abcdefghijklmnop --follow'],
    load: () => import('../commands/logs.ts'),
  },
  {
    name: 'cp',
    summary: 'copy files and directories into a sandbox or out of it',
    details:
      'A path in a sandbox is sb-…:/path; - is standard input or output. A directory is copied with all ' +
      'below it, in constant memory. Symbolic links are never followed: out of a sandbox they are copied ' +
      'when they stay below what is copied, into one they are left out.',
    arguments: [
      { syntax: '<source>', about: 'what to copy' },
      { syntax: '<target>', about: 'where to; into it when it is a directory' },
    ],
    options: [URL],
    examples: [
      'cp ./project sb-local-local-abcdefghijklmnop:/workspace',
      'cp sb-local-local-abcdefghijklmnop:/workspace/result.json .',
    ],
    load: () => import('../commands/cp.ts'),
  },
  {
    name: 'grade',
    summary: 'grade what a sandbox has under its solution paths, in a new one',
    details:
      'The task is JSON: solutionPaths, testPaths, layers of kind grading or tools, and commands with the ' +
      'tests that each has to report. A run that does not report them is grade-invalid (exit code 29); ' +
      'any other result, failed tests among them, is exit code 0. Needs a key with the scope grading.',
    arguments: [SANDBOX, { syntax: '<task>', about: 'a file, or - for standard input' }],
    options: [URL],
    examples: ['grade sb-local-local-abcdefghijklmnop task.json'],
    load: () => import('../commands/grade.ts'),
  },
  {
    name: 'stop',
    summary: 'stop sandboxes and remove what they held',
    arguments: [{ syntax: '[sandbox...]', about: 'their ids' }],
    options: [{ flags: '--job <name>', about: 'all of a job instead' }, URL],
    examples: ['stop sb-local-local-abcdefghijklmnop', 'stop --job train-7'],
    load: () => import('../commands/stop.ts'),
  },
  {
    name: 'events',
    summary: 'follow what happens, from now on or from a cursor',
    options: [
      { flags: '--since <cursor>', about: 'go on after it; --json shows the cursor of each event' },
      { flags: '--sandbox <id>', about: 'of a sandbox' },
      { flags: '--job <name>', about: 'of a job' },
      {
        ...{ flags: '--type <type>', repeatable: true, words: EVENT_TYPE_WORDS },
        about: `${EVENT_TYPE_WORDS.join(', ')}; may be repeated`,
      },
      URL,
    ],
    examples: ['events --job train-7', 'events --json --type exec-exit'],
    load: () => import('../commands/events.ts'),
  },
];

/** What sandboxes try that they may not. */
export const AUDIT_COMMANDS: readonly CommandRow[] = [
  {
    name: 'audit',
    summary: 'what sandboxes tried that they may not, and how often',
    options: [
      { flags: '--sandbox <id>', about: 'of a sandbox' },
      { flags: '--job <name>', about: 'of a job' },
      { flags: '--follow', about: 'as it happens, from now on' },
      URL,
    ],
    examples: ['audit --job train-7', 'audit --follow --json'],
    load: () => import('../commands/audit.ts'),
  },
];

const ENVIRONMENT = { syntax: '<name>', about: 'of the environment' } as const;
const KNOWN_ENVIRONMENT = { ...ENVIRONMENT, names: 'environments' } as const;

/** Named lists of layers. */
export const ENVIRONMENT_COMMANDS: readonly CommandRow[] = [
  {
    name: 'env ls',
    summary: 'list environments',
    options: [{ flags: '-q, --quiet', about: 'names alone' }, URL],
    examples: ['env ls'],
    load: () => import('../commands/env-ls.ts'),
  },
  {
    name: 'env create',
    summary: 'give a list of layers a name',
    arguments: [
      ENVIRONMENT,
      { syntax: '<ref...>', about: 'layers from the base up: kind/name:version, ^1, ~1.2, latest' },
    ],
    options: [{ flags: '--replace', about: 'take the place of one that is there' }, URL],
    examples: ['env create mine base/debian:^12 workspace/mine:latest'],
    load: () => import('../commands/env-create.ts'),
  },
  {
    name: 'env show',
    summary: 'show an environment',
    arguments: [KNOWN_ENVIRONMENT],
    options: [URL],
    examples: ['env show example'],
    load: () => import('../commands/env-show.ts'),
  },
  {
    name: 'env rm',
    summary: 'remove an environment; sandboxes and layers stay',
    arguments: [KNOWN_ENVIRONMENT],
    options: [URL],
    examples: ['env rm mine'],
    load: () => import('../commands/env-rm.ts'),
  },
];

/** API keys. */
export const KEY_COMMANDS: readonly CommandRow[] = [
  {
    name: 'key create',
    summary: 'make an API key; its secret is shown this once',
    arguments: [{ syntax: '<name>', about: 'what it is for' }],
    options: [
      {
        ...{ flags: '--scope <scope>', repeatable: true, words: OPERATION_CLASS_WORDS },
        about: 'what it may do; may be repeated (without: all but keys and node)',
      },
      { flags: '--expires <time>', about: 'ends after so long: 12h, 30d' },
      { flags: '--project <name>', about: 'of another project' },
      { flags: '--principal <name>', about: 'who uses it' },
      { flags: '--sandbox <id>', about: 'for the agent in it: the key ends with it' },
      {
        flags: '--sandboxes-max <n>',
        about: 'with --sandbox: it makes so many of its own at a time, and reaches those alone',
      },
      URL,
    ],
    examples: ['key create trainer --expires 30d', 'key create viewer --scope sandboxes:read'],
    load: () => import('../commands/key-create.ts'),
  },
  {
    name: 'key ls',
    summary: 'list API keys, without their secrets',
    options: [URL],
    examples: ['key ls'],
    load: () => import('../commands/key-ls.ts'),
  },
  {
    name: 'key rotate',
    summary: 'give an API key another secret; the old one is good for a while',
    arguments: [{ syntax: '<key>', about: 'its id, as dsec key ls lists it' }],
    details:
      'A key rotates itself, and keys that were made with it. Programs that found their key in a file ' +
      'read the file again when it is refused.',
    options: [
      {
        flags: '--grace <time>',
        about: 'how long the old secret is good yet (default: 1h); 0: not at all',
      },
      {
        flags: '--client-file <file>',
        about: 'write address and secret there (mode 0600) instead of showing it',
      },
      URL,
    ],
    examples: ['key rotate ke-abcdefghijklmnop --grace 1d'],
    load: () => import('../commands/key-rotate.ts'),
  },
  {
    name: 'key revoke',
    summary: 'make an API key invalid at once',
    arguments: [{ syntax: '<key>', about: 'its id, as dsec key ls lists it' }],
    options: [URL],
    examples: ['key revoke key-abcdefghijklmnop'],
    load: () => import('../commands/key-revoke.ts'),
  },
];
