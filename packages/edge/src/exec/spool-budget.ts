import { DsecError, GIB, type SandboxId } from '@dsec/std';

export interface SpoolLimits {
  /** Output kept of all commands of the edge. */
  readonly nodeBytesMax: number;
  /** Of one sandbox: its oldest ended commands lose their output first. */
  readonly sandboxBytesMax: number;
}

export const SPOOL_LIMITS: SpoolLimits = { nodeBytesMax: 64 * GIB, sandboxBytesMax: 4 * GIB };

/** Counts the bytes of all spool files (THREATS C11: Σ is bounded and in admission). */
export interface SpoolBudget {
  /** Throws `overloaded` when no new command may be started. */
  admit(sandbox: SandboxId): void;
  /** Takes bytes if there are any left. */
  charge(sandbox: SandboxId, bytes: number): boolean;
  /** Takes bytes in any case: they are on disk, or the least that a command needs. */
  force(sandbox: SandboxId, bytes: number): void;
  release(sandbox: SandboxId, bytes: number): void;
  isOver(sandbox: SandboxId): boolean;
  /** Nothing of the sandbox is kept any more. */
  forget(sandbox: SandboxId): void;
  readonly usedBytes: number;
}

export function createSpoolBudget(limits: SpoolLimits): SpoolBudget {
  const bySandbox = new Map<SandboxId, number>();
  let usedBytes = 0;

  const usedOf = (sandbox: SandboxId) => bySandbox.get(sandbox) ?? 0;
  const add = (sandbox: SandboxId, bytes: number) => {
    usedBytes += bytes;
    const used = usedOf(sandbox) + bytes;
    if (used <= 0) bySandbox.delete(sandbox);
    else bySandbox.set(sandbox, used);
  };
  const isOver = (sandbox: SandboxId, bytes = 0) =>
    usedBytes + bytes > limits.nodeBytesMax || usedOf(sandbox) + bytes > limits.sandboxBytesMax;
  return {
    admit(sandbox) {
      if (!isOver(sandbox)) return;
      throw new DsecError('overloaded', 'the kept output of commands takes all the space it may', {
        details: { usedBytes, sandboxUsedBytes: usedOf(sandbox) },
      });
    },
    charge(sandbox, bytes) {
      if (isOver(sandbox, bytes)) return false;
      add(sandbox, bytes);
      return true;
    },
    force: add,
    release: (sandbox, bytes) => add(sandbox, -bytes),
    isOver: (sandbox) => isOver(sandbox),
    forget: (sandbox) => add(sandbox, -usedOf(sandbox)),
    get usedBytes() {
      return usedBytes;
    },
  };
}
