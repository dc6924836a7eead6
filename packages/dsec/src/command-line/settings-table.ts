/** Every value that can come from a file, the environment or the command line, and what it is without. */

export interface SettingRow {
  /** The environment variable. */
  readonly variable: string;
  /** The option, for people; which commands have it is in their rows. Absent: there is none. */
  readonly option?: string;
  /** Absent: none, or made from other values. */
  readonly default?: string;
  /** Whether the configuration file may hold it. */
  readonly inFile: boolean;
  /** Shown by its first characters only. */
  readonly secret?: true;
  readonly about: string;
}

export const SETTINGS = {
  state: {
    ...{ variable: 'DSEC_STATE', option: '--state', inFile: false },
    about: 'where DSec keeps its state: /var/lib/dsec for root, else below the XDG data directory',
  },
  config: {
    ...{ variable: 'DSEC_CONFIG', option: '--config', inFile: false },
    about: 'the configuration file: dsec.json in the state directory',
  },
  url: {
    ...{ variable: 'DSEC_URL', option: '--url', inFile: true },
    about: 'the server that commands talk to: that of the client file',
  },
  apiKey: {
    ...{ variable: 'DSEC_API_KEY', inFile: false, secret: true },
    about: 'the key that commands show to it: that of the client file',
  },
  caFile: {
    ...{ variable: 'DSEC_CA_FILE', inFile: true },
    about: 'certificates by which an https server is known, in PEM: those of the client file',
  },
  client: {
    ...{ variable: 'DSEC_CLIENT', inFile: true },
    about: 'the file with both, which `dsec up` writes: client.json',
  },
  listen: {
    ...{ variable: 'DSEC_LISTEN', option: '--listen', inFile: true, default: '127.0.0.1:7720' },
    about: 'where the apiserver serves: 127.0.0.1:PORT, [::1]:PORT or unix:/PATH',
  },
  tlsCert: {
    ...{ variable: 'DSEC_TLS_CERT', option: '--tls-cert', inFile: true },
    about: 'certificate of the apiserver and what vouches for it, in PEM; with it, it serves https',
  },
  tlsKey: {
    ...{ variable: 'DSEC_TLS_KEY', option: '--tls-key', inFile: true },
    about: 'its private key, in PEM',
  },
  rateLimit: {
    ...{ variable: 'DSEC_RATE_LIMIT', option: '--rate-limit', inFile: true, default: '2000' },
    about: 'requests a second that one key may make at an apiserver',
  },
  edgeListen: {
    ...{ variable: 'DSEC_EDGE_LISTEN', option: '--listen', inFile: true },
    about: 'where an edge serves, in the same forms: run/edge.sock in the state directory',
  },
  backend: {
    ...{ variable: 'DSEC_BACKEND', option: '--backend', inFile: true, default: 'container' },
    about: 'container, or sim to try things out without root',
  },
  shardId: {
    ...{ variable: 'DSEC_SHARD_ID', option: '--shard-id', inFile: true, default: 'local' },
    about: 'the part of the fleet that an edge belongs to',
  },
  edgeId: {
    ...{ variable: 'DSEC_EDGE_ID', option: '--edge-id', inFile: true, default: 'local' },
    about: 'of the edge, in every id of its sandboxes',
  },
  keepEndedMs: {
    ...{ variable: 'DSEC_KEEP_ENDED_MS', option: '--keep-ended-ms', inFile: true },
    ...{ default: '600000', about: 'how long an ended sandbox stays listed' },
  },
  logLevel: {
    ...{ variable: 'DSEC_LOG_LEVEL', option: '--log-level', inFile: true, default: 'info' },
    about: 'debug, info, warn, error or silent',
  },
  services: {
    ...{ variable: 'DSEC_SERVICES', option: '--services', inFile: true },
    about:
      'JSON of what network rules may open: services, mirrors, denied names; see docs/guides/network.md',
  },
  networkPool: {
    ...{ variable: 'DSEC_NETWORK_POOL', option: '--network-pool', inFile: true },
    ...{ default: '100.96.0.0/12', about: "IPv4 range of the sandboxes' addresses" },
  },
  networkGateway: {
    ...{ variable: 'DSEC_NETWORK_GATEWAY', option: '--network-gateway', inFile: true },
    ...{ default: '169.254.77.1', about: 'IPv4 address of the proxies, as sandboxes see it' },
  },
  launcher: {
    ...{ variable: 'DSEC_LAUNCHER', option: '--launcher', inFile: true },
    about: 'the program dsec-launcher: as built in native/',
  },
  agent: {
    ...{ variable: 'DSEC_AGENT', option: '--agent', inFile: true },
    about: 'the program aether: as built in native/',
  },
} as const satisfies Readonly<Record<string, SettingRow>>;

export type SettingKey = keyof typeof SETTINGS;
export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];
