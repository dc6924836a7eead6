import type { CommandRow } from './command-row.ts';
import { POLICY_STAGE_WORDS } from './words.ts';

const POLICY = { syntax: '<policy>', about: 'a file, - for standard input, or profile:NAME' };

/** What sandboxes may do: policies are looked at without a server. */
export const POLICY_COMMANDS: readonly CommandRow[] = [
  {
    name: 'policy check',
    summary: 'check a policy, and say what of it this machine can enforce',
    arguments: [POLICY],
    details:
      'Each rule with what enforces it, without a stage and in each stage that the policy speaks of, and ' +
      'what a switch to that stage means. Exit code: 2 for a policy that is none, 17 when this machine ' +
      'cannot enforce what the policy requires.',
    examples: ['policy check policy.json', 'policy check profile:locked --json'],
    load: () => import('../commands/policy-check.ts'),
  },
  {
    name: 'policy explain',
    summary: 'say which rule of a policy decides, and what enforces it on this machine',
    arguments: [POLICY],
    options: [
      { flags: '--path <path>', about: 'a file or directory; may be repeated', repeatable: true },
      {
        flags: '--host <name>',
        about: 'a domain or an address; may be repeated',
        repeatable: true,
      },
      { flags: '--port <number>', about: 'of the hosts that are asked for' },
      {
        ...{ flags: '--protocol <name>', words: ['tcp', 'udp'] },
        about: 'of the hosts that are asked for: tcp or udp',
      },
      { flags: '--service <name>', about: 'such as pypi; may be repeated', repeatable: true },
      {
        ...{ flags: '--socket <family:type>', repeatable: true },
        about: 'such as unix:stream; may be repeated',
      },
      {
        ...{ flags: '--syscall <name[:numbers]>', repeatable: true },
        about: 'with its first arguments, such as kill:1,9; may be repeated',
      },
      { flags: '--device <name>', about: 'such as tty; may be repeated', repeatable: true },
      { flags: '--capability <name>', about: 'such as chown; may be repeated', repeatable: true },
      {
        ...{ flags: '--stage <name>', words: POLICY_STAGE_WORDS },
        about: `${POLICY_STAGE_WORDS.join(', ')}; without it, what holds outside of stages`,
      },
    ],
    examples: [
      'policy explain policy.json --path /work/tests/conftest.py --stage solve',
      'policy explain profile:locked --path /usr/bin/env --socket netlink:raw',
    ],
    load: () => import('../commands/policy-explain.ts'),
  },
  {
    name: 'policy stage',
    summary: 'switch a sandbox to another stage of its policy',
    details:
      'A switch that takes something away which processes could keep, such as a path that it hides, ends ' +
      'the commands and sessions of the sandbox. One that allows more needs --loosen, and a key with the ' +
      'scope policies:loosen.',
    arguments: [
      { syntax: '<sandbox>', about: 'its id, as dsec ps lists it' },
      { syntax: '<stage>', about: POLICY_STAGE_WORDS.join(', ') },
    ],
    options: [
      { flags: '--loosen', about: 'also to one that allows more' },
      {
        ...{ flags: '--url <address>', setting: 'url' },
        about: 'the server, when it is not that of the client file',
      },
    ],
    examples: ['policy stage sb-local-local-abcdefghijklmnop solve'],
    load: () => import('../commands/policy-stage.ts'),
  },
];
