import type { NetworkRule } from '@dsec/protocol';
import type { Requirement, Stage, Verb } from './document.ts';
import type { Glob } from './glob.ts';
import type { Capability, DenialError, Device, SocketFamily, SocketType } from './platform.ts';

/** Where something of a policy was written. */
export interface Source {
  /** `profile default`, `policy`, `stage solve`, or `platform` for what nobody wrote. */
  readonly origin: string;
  /** As a path of fields in that document: `stages.solve.files.0`. */
  readonly field: string;
}

export interface FileRule {
  readonly glob: Glob;
  readonly denied: ReadonlySet<Verb>;
  /** Denies all, with all below; and where a mechanism can, nothing seems to be there. */
  readonly isHidden: boolean;
  /** Of two that say as much and name the same path, the one with more wins. */
  readonly order: number;
  readonly source: Source;
}

export interface SocketAllowance {
  readonly family: SocketFamily;
  readonly types: readonly SocketType[];
}

/** `(argument & mask) === equals`, of the low 32 bits. */
export interface ArgumentCondition {
  readonly argument: number;
  readonly equals: number;
  readonly mask: number;
}

export interface SyscallDenial {
  readonly call: string;
  /** All must hold. */
  readonly when: readonly ArgumentCondition[];
  readonly error: DenialError;
  readonly source: Source;
}

export interface NetworkAllowance {
  readonly rule: NetworkRule;
  readonly source: Source;
}

export interface Listed<T> {
  readonly items: readonly T[];
  readonly source: Source;
}

/**
 * A policy with all overlays applied: complete, checked, in one form. Nothing below it knows of profiles or
 * stages.
 */
export interface Policy {
  readonly stage?: Stage;
  /** No two have the same pattern. */
  readonly files: readonly FileRule[];
  readonly sockets: Listed<SocketAllowance>;
  readonly network: Listed<NetworkAllowance>;
  readonly capabilities: Listed<Capability>;
  readonly devices: Listed<Device>;
  readonly syscalls: readonly SyscallDenial[];
  readonly require: readonly Requirement[];
}
