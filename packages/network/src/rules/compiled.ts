/** Packets to these addresses are let through as they are. */
export interface AddressRule {
  /** An IPv4 or IPv6 range in CIDR form; a single address is a range of its full length. */
  readonly prefix: string;
  /** Inclusive ranges of ports; empty: all. */
  readonly ports: readonly (readonly [number, number])[];
  /** Absent: both. */
  readonly protocol?: 'tcp' | 'udp';
}

/** Traffic to this name goes through the DNS and egress proxies. */
export interface NameRule {
  /** An exact name, or `*.suffix`. */
  readonly pattern: string;
  /** Inclusive ranges of ports; empty: all. */
  readonly ports: readonly (readonly [number, number])[];
  /** The operator vouches that the name's addresses serve nothing else: they may be reached directly. */
  readonly isDedicated: boolean;
  readonly service?: string;
  readonly asOf?: string;
  readonly deny?: readonly string[];
}

/** What a sandbox may reach, in the form that the node's parts work from. */
export interface CompiledNetwork {
  /** Grows with every change; what was made under an older one denies. */
  readonly version: number;
  readonly addresses: readonly AddressRule[];
  readonly names: readonly NameRule[];
}
