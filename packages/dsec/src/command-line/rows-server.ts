import type { CommandRow } from './table.ts';

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/** What runs DSec, and what looks at the machine. */
export const SERVER_COMMANDS: readonly CommandRow[] = [
  {
    name: 'doctor',
    summary: 'what this machine can do for DSec, what is missing and how to get it',
    details: 'Exit code: 0 when layers can be used here, 17 when they cannot.',
    examples: ['doctor', 'doctor --json'],
    load: () => import('../commands/doctor.ts'),
  },
  {
    name: 'config',
    summary: 'show the configuration, and where each value comes from',
    details:
      'Defaults are overruled by the file, it by the environment, and that by options. ' +
      'The file is a JSON object, such as {"listen": "127.0.0.1:7721"}.',
    examples: ['config', 'config --json'],
    load: () => import('../commands/config.ts'),
  },
  {
    name: 'edge',
    summary: 'run the daemon that owns the sandboxes of this machine',
    details: 'Sandboxes run on when the daemon ends. SIGTERM ends it, SIGHUP reads the keys again.',
    options: [
      { flags: '--edge-id <id>', setting: 'edgeId', about: 'of this edge, in ids of sandboxes' },
      { flags: '--shard-id <id>', setting: 'shardId', about: 'of its part of the fleet' },
      {
        ...{ flags: '--backend <kind>', setting: 'backend', words: ['container', 'sim'] },
        about: 'container, or sim to try things out without root',
      },
      {
        ...{ flags: '--listen <address>', setting: 'edgeListen' },
        about: 'unix:/PATH (default: run/edge.sock), 127.0.0.1:PORT, [::1]:PORT',
      },
      {
        flags: '--ticket-keys <file>',
        about: 'JSON of the public keys that sign tickets: {"<id>": "<PEM>"}',
      },
      {
        flags: '--platform-project <name>',
        about: 'whose callers see the events of every project',
      },
      { flags: '--launcher <program>', setting: 'launcher', about: 'dsec-launcher' },
      { flags: '--agent <program>', setting: 'agent', about: 'aether' },
      {
        ...{ flags: '--keep-ended-ms <ms>', setting: 'keepEndedMs' },
        about: 'how long an ended sandbox stays listed',
      },
      {
        ...{ flags: '--log-level <level>', setting: 'logLevel', words: LOG_LEVELS },
        about: LOG_LEVELS.join(', '),
      },
      { flags: '--crash-points', about: 'list the names that DSEC_CRASH_POINT takes, and end' },
    ],
    examples: ['edge --ticket-keys ticket-keys.json --listen 127.0.0.1:7721'],
    load: () => import('../commands/edge.ts'),
  },
];
