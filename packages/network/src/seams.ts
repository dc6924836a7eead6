import type { CompiledNetwork } from './rules/compiled.ts';

/** A sandbox as the proxies see it. */
export interface NetworkedSandbox {
  readonly id: string;
  /** What it may reach now. A change gives a new object with a greater version. */
  readonly network: CompiledNetwork;
}

/** The sandbox that owns a source address. `undefined` for an address that is nobody's: it gets no answer. */
export type FindSandbox = (address: string) => NetworkedSandbox | undefined;

/** Why something was not let through. The words are part of what `dsec audit` shows. */
export type DenialReason =
  /** No rule opens the name, or not on this port. */
  | 'name'
  /** A record type other than A and AAAA. */
  | 'query-type'
  /** A name below a wildcard that could carry data out, or too many different ones. */
  | 'name-shape'
  /** The name points to private, local, special or node addresses only. */
  | 'answer'
  | 'rate'
  | 'quota'
  /** What was sent is no DNS query, TLS ClientHello or HTTP request, or is written to be read in two ways. */
  | 'malformed'
  /** Encrypted ClientHello: the name that counts cannot be seen. */
  | 'ech'
  /** TLS without a name, or an HTTP request whose host is another one than the connection's. */
  | 'name-mismatch'
  /** The address does not prove that it serves the name. */
  | 'certificate'
  /** A rule that injects or leaves out was used without TLS. */
  | 'plain-text'
  /** The release or project is left out of the index for this sandbox. */
  | 'left-out';

export interface NetworkDenial {
  readonly sandbox: string;
  readonly at: 'dns' | 'egress';
  readonly reason: DenialReason;
  /** The name asked for, as far as it is one. At most 253 bytes. */
  readonly name?: string | undefined;
  readonly port?: number | undefined;
  /** Denials of this sandbox since its last event that were only counted. */
  readonly suppressed: number;
}
