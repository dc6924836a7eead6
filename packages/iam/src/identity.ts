import type { KeyLimits, OperationClass } from '@dsec/protocol';
import type { PrincipalId, ProjectId } from '@dsec/std';

/** What a key says of itself. */
export interface KeyStamp {
  readonly project: ProjectId;
  readonly principal: PrincipalId;
  readonly scopes: readonly OperationClass[];
}

/** Who calls, and what it may do. */
export interface Identity extends KeyStamp {
  readonly keyId: string;
  /** Shown by a secret that was replaced since, within its grace. */
  readonly isRetired?: true | undefined;
  /** Absent: the key does not expire. */
  readonly expiresAtMs?: number | undefined;
  /** The keys that its key comes of, the nearest first. Absent: nobody made it. */
  readonly makers?: readonly string[] | undefined;
  /** Of a key for an agent in a sandbox. */
  readonly limits?: KeyLimits | undefined;
  /** The one with whose end the key ends. */
  readonly sandbox?: string | undefined;
  /** Present with `sandbox`. */
  readonly createdAtMs?: number | undefined;
}
