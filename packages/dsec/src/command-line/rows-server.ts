import type { CommandRow } from './command-row.ts';
import type { OptionRow } from './table.ts';

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/** What `dsec apiserver` and `dsec up` have in common. */
const ENTRY_OPTIONS: readonly OptionRow[] = [
  {
    ...{ flags: '--tls-cert <file>', setting: 'tlsCert' },
    about: 'certificate in PEM; with it, https at any address; read again when it changes',
  },
  { ...{ flags: '--tls-key <file>', setting: 'tlsKey' }, about: 'its private key in PEM' },
  {
    ...{ flags: '--rate-limit <number>', setting: 'rateLimit' },
    about: 'requests a second that one key may make',
  },
];

/** What `dsec edge` and `dsec up` have in common. */
const EDGE_OPTIONS: readonly OptionRow[] = [
  { flags: '--edge-id <id>', setting: 'edgeId', about: 'of this edge, in ids of sandboxes' },
  { flags: '--shard-id <id>', setting: 'shardId', about: 'of its part of the fleet' },
  {
    ...{ flags: '--backend <kind>', setting: 'backend', words: ['container', 'sim'] },
    about: 'container, or sim to try things out without root',
  },
  {
    ...{ flags: '--services <file>', setting: 'services' },
    about: 'JSON of what network rules may open: services, mirrors, denied names',
  },
  {
    ...{ flags: '--network-pool <range>', setting: 'networkPool' },
    about: "IPv4 range of the sandboxes' addresses",
  },
  {
    ...{ flags: '--network-gateway <address>', setting: 'networkGateway' },
    about: 'IPv4 address of the proxies, as sandboxes see it',
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
];

/** What runs DSec, and what looks at the machine. */
export const SERVER_COMMANDS: readonly CommandRow[] = [
  {
    name: 'up',
    summary: 'run DSec on this machine: one edge and one apiserver, for this machine only',
    details:
      'Starts them as processes of their own, starts them again when they die, and writes client.json, ' +
      'where the CLI and the SDKs find address and key. Ctrl-C ends it; sandboxes run on, and the next ' +
      'dsec up finds them.',
    options: [
      {
        ...{ flags: '--listen <address>', setting: 'listen' },
        about: 'where to serve: 127.0.0.1:PORT, [::1]:PORT or unix:/PATH',
      },
      ...ENTRY_OPTIONS,
      ...EDGE_OPTIONS,
    ],
    examples: ['up', 'up --backend sim --state ./try --listen 127.0.0.1:7721'],
    load: () => import('../commands/up.ts'),
  },
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
      ...EDGE_OPTIONS,
      {
        ...{ flags: '--listen <address>', setting: 'edgeListen' },
        about: 'unix:/PATH (default: run/edge.sock), 127.0.0.1:PORT, [::1]:PORT',
      },
      {
        flags: '--ticket-keys <file>',
        about: 'JSON of the public keys that sign tickets: {"<id>": "<PEM>"}',
      },
      {
        ...{ flags: '--platform-project <name>', default: 'platform' },
        about: 'whose callers see the events of every project',
      },
      { flags: '--crash-points', about: 'list the names that DSEC_CRASH_POINT takes, and end' },
    ],
    examples: ['edge --ticket-keys ticket-keys.json --listen 127.0.0.1:7721'],
    load: () => import('../commands/edge.ts'),
  },
  {
    name: 'apiserver',
    summary: 'run the entry of a fleet: it authenticates, places and forwards to edges',
    details: 'It keeps nothing but its store: any number of them serve one fleet.',
    options: [
      {
        ...{ flags: '--listen <address>', setting: 'listen' },
        about: '127.0.0.1:PORT, [::1]:PORT or unix:/PATH',
      },
      {
        ...{ flags: '--edge <[shard/]id=address>', repeatable: true },
        about: 'an edge and where it listens; may be repeated',
      },
      {
        flags: '--edges <file>',
        about: 'JSON of edges: [{"edge": "<id>", "shard": "<id>", "address": "…"}]',
      },
      {
        flags: '--ticket-key <file>',
        about: 'JSON of the private key that signs tickets: {"<id>": "<PEM>"}',
      },
      {
        flags: '--store <file>',
        about: 'SQLite of keys and create requests (default: apiserver.db)',
      },
      {
        ...{ flags: '--platform-project <name>', default: 'platform' },
        about: 'by which edges let it see everything',
      },
      {
        flags: '--client-file <file>',
        about: 'write address and a key for clients of this machine there',
      },
      { flags: '--project <name>', about: 'of that key', default: 'default' },
      { flags: '--principal <name>', about: 'of that key', default: 'operator' },
      {
        ...{ flags: '--watch-ms <ms>', default: '1000' },
        about: 'how often each edge is asked what has changed',
      },
      {
        ...{ flags: '--allow-host <name>', repeatable: true },
        about: 'another name under which it is asked for; may be repeated',
      },
      ...ENTRY_OPTIONS,
      {
        ...{ flags: '--log-level <level>', setting: 'logLevel', words: LOG_LEVELS },
        about: LOG_LEVELS.join(', '),
      },
      { flags: '--crash-points', about: 'list the names that DSEC_CRASH_POINT takes, and end' },
    ],
    examples: ['apiserver --ticket-key ticket-key.json --edge local=127.0.0.1:7721'],
    load: () => import('../commands/apiserver.ts'),
  },
];
