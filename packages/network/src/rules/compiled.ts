/** Packets to these addresses are let through as they are. */
export interface AddressRule {
  /** An IPv4 or IPv6 range in CIDR form; a single address is a range of its full length. */
  readonly prefix: string;
  /** Inclusive ranges of ports; empty: all. */
  readonly ports: readonly PortRange[];
  /** Absent: both. */
  readonly protocol?: 'tcp' | 'udp';
}

export type PortRange = readonly [number, number];

/** Formats of package indexes from which single releases can be left out. */
export const INDEX_FORMATS = ['pypi', 'npm'] as const;
export type IndexFormat = (typeof INDEX_FORMATS)[number];

/** A credential that the egress proxy adds, so that it never is inside the sandbox. */
export interface Injection {
  /** Name of the header, in lower case. */
  readonly header: string;
  /** What the node's store of secrets calls the value. The value itself is in no rule. */
  readonly secret: string;
}

/** Traffic to this name goes through the DNS and egress proxies. */
export interface NameRule {
  /** An exact name, or `*.suffix`; A-labels in lower case without a dot at the end. */
  readonly pattern: string;
  /** Inclusive ranges of ports; empty: all. */
  readonly ports: readonly PortRange[];
  /** The operator vouches that the name's addresses serve nothing else: they may be reached directly. */
  readonly isDedicated: boolean;
  readonly service?: string;
  /** Releases from after this instant (RFC 3339) do not exist for the sandbox. */
  readonly asOf?: string;
  /** Projects of the index that do not exist for the sandbox, as their index normalises them. */
  readonly deny?: readonly string[];
  /** How the index is written, where `asOf` or `deny` stands. */
  readonly index?: IndexFormat;
  readonly inject?: Injection;
  /** TLS ends at the proxy, which then sees each request, also where nothing is changed in it. */
  readonly isTerminated?: boolean;
  /** The operator's own addresses of the name: nothing is looked up, and they may be private. */
  readonly addresses?: readonly string[];
}

/** What a sandbox may reach, in the form that the node's parts work from. */
export interface CompiledNetwork {
  /** Grows with every change; what was made under an older one denies. */
  readonly version: number;
  readonly addresses: readonly AddressRule[];
  readonly names: readonly NameRule[];
  /** Patterns of names that no rule opens. */
  readonly denied?: readonly string[];
}
