import type { OperationClass } from '@dsec/protocol';
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
  /** Absent: the key does not expire. */
  readonly expiresAtMs?: number | undefined;
  /** The keys that its key comes of, the nearest first. Absent: nobody made it. */
  readonly makers?: readonly string[] | undefined;
}
