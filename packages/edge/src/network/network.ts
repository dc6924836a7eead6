/**
 * The network of a node as the lifecycle sees it: which rules it can keep, and which sandboxes it lets
 * through by which rules. Whatever is behind it denies what it does not know: a sandbox that was never
 * added, or was removed, reaches nothing.
 */
import type { PlannedNetwork, SandboxKey } from '@dsec/backend';
import type { Event, NetworkRule, Protection } from '@dsec/protocol';
import { DsecError, type SandboxId } from '@dsec/std';

/** A sandbox with a link to the router, and what it may reach. */
export interface NetworkedSandbox {
  readonly key: SandboxKey;
  readonly address: string;
  /** From 1; grows with every change of the rules. */
  readonly version: number;
  readonly rules: readonly NetworkRule[];
}

type DeniedEvent = Extract<Event, { type: 'denied' }>;

/** Something that was not let through. */
export interface DeniedAccess
  extends Pick<DeniedEvent, 'at' | 'reason' | 'target' | 'port' | 'process' | 'suppressed'> {
  readonly sandbox: SandboxId;
}

export interface NodeNetwork {
  /**
   * Throws what is wrong with rules, with `details.field`, or `unsupported` for what this node does not
   * keep. Nothing is changed.
   */
  check(rules: readonly NetworkRule[]): void;
  /** The link of the sandbox with this slot. */
  linkOf(slot: number): PlannedNetwork;
  /**
   * Lets a sandbox that was just made, or was found again, through by its rules. Gives what protects it,
   * beside the backend's own list: the names are those of `NETWORK_PROTECTIONS`.
   */
  add(sandbox: NetworkedSandbox, signal?: AbortSignal): Promise<readonly Protection[]>;
  /** When it resolves, connections that the new rules do not open are cut. `not-found`: never added. */
  update(sandbox: NetworkedSandbox): Promise<void>;
  /** Cuts everything of a sandbox. Knows every key. */
  remove(key: SandboxKey): Promise<void>;
  /** Once, when every sandbox that lives was added: what is left of others goes. Never throws. */
  recovered(): void;
  /** Is called for some of the denials of each sandbox, in their order; it must not throw. */
  onDenied(listener: (denied: DeniedAccess) => void): void;
  /** Denials of a sandbox that no call of a listener has told yet. */
  untold(sandbox: SandboxId): number;
  /** Lets go. Sandboxes run on, and reach nothing. */
  close(): Promise<void>;
}

/** What a node's network adds to the protections of a sandbox with rules. */
export const NETWORK_PROTECTIONS = ['name-proxies', 'packet-filter'] as const;

/** A node whose sandboxes have loopback only, with the reason. */
export function withoutNetwork(reason: string): NodeNetwork {
  const refusal = () =>
    new DsecError('unsupported', `sandboxes of this node have no network to open: ${reason}`, {
      details: { field: 'network' },
    });
  return {
    check() {
      throw refusal();
    },
    linkOf() {
      throw refusal();
    },
    add: () => Promise.reject(refusal()),
    update: () => Promise.reject(refusal()),
    remove: async () => undefined,
    recovered: () => undefined,
    onDenied: () => undefined,
    untold: () => 0,
    close: async () => undefined,
  };
}

/** Throws `unsupported` where a protection of the network that is required is not enforced. */
export function requireEnforced(
  protections: readonly Protection[],
  required: readonly string[],
): void {
  for (const { name, state, detail } of protections) {
    if (!required.includes(name) || state === 'enforced') continue;
    throw new DsecError('unsupported', `this node cannot protect by ${name}: ${detail ?? state}`, {
      details: { protection: name },
    });
  }
}

/** Those that a backend is asked for: the rest is the network's to give. */
export function backendProtections(required: readonly string[], isNetworked: boolean): string[] {
  const own: readonly string[] = isNetworked ? NETWORK_PROTECTIONS : [];
  return required.filter((name) => !own.includes(name));
}
