/**
 * The seam between an edge and what runs its sandboxes. This file is the specification; each backend is held
 * to it by the suite in conformance/, the simulated one included.
 *
 * **Who owns what.** The edge owns the journal, names, generations, slots and deadlines; a backend owns
 * processes, mounts, cgroups and the writable layer, and keeps nothing durable. Everything that it makes is
 * named from the sandbox's key and the edge's id, so that a restarted edge finds it by name (I1).
 *
 * **Exactly once.** `create` with a key whose sandbox runs is `already-exists`; after a failed or abandoned
 * `create` nothing of the key is left, or `stop` removes it. `stop` may be called at any time and any number
 * of times. Calls for different keys never wait for one another longer than the work takes.
 *
 * **Errors** are of the code table. What a backend cannot do is `unsupported` with the reason; a key that it
 * does not know is `not-found`; one whose state does not allow the call is `state-conflict`.
 */
import type { Duplex } from 'node:stream';
import type {
  Backend as BackendKind,
  Protection,
  SandboxLimits,
  SessionRulesFields,
} from '@dsec/protocol';
import type { Digest, DsecError, SandboxId } from '@dsec/std';

/** One life of a sandbox. A restore or rollback is a new generation of the same id. */
export interface SandboxKey {
  readonly id: SandboxId;
  /** From 1 on. */
  readonly generation: number;
}

/** A complete request: every default has been settled before it. */
export interface SandboxPlan {
  readonly key: SandboxKey;
  /** In environment order: base, workspace, toolkits, diffs. Their manifests are in the layer store. */
  readonly layers: readonly PlannedLayer[];
  readonly limits: Required<SandboxLimits>;
  /**
   * A number that no other living sandbox of the edge has, below the `slotsMax` of the backend's report. The
   * backend derives from it what must not be shared: the range of user ids, pooled cgroups, addresses. It is
   * given to another sandbox only after `stop` has resolved (THREATS B7, C7).
   */
  readonly slot: number;
  readonly hostname: string;
  /** Layers of different domains are mounted apart, with page caches of their own (THREATS B1). */
  readonly isolationDomain: string;
  /**
   * Mounted apart at `/.dsec/<name>`, read-only, without devices and set-user-id, after the root is composed
   * and from mounts that no root uses (THREATS A2). Absent: nothing is at `/.dsec`.
   */
  readonly tools?: PlannedTools;
  /** Names of protections without which it must not start: `unsupported` when the node lacks one. */
  readonly requireProtections: readonly string[];
  /** False: a protection of the backend's own list that is absent is `unsupported` too. */
  readonly allowDegraded: boolean;
  /** A link to the node's router namespace. Absent: the sandbox has loopback only. */
  readonly network?: PlannedNetwork;
  /** Absent: it may do all that the platform gives. `unsupported` where the backend has no `policies`. */
  readonly policy?: PlannedPolicy;
}

/** What a policy takes from a sandbox, as the edge has compiled it for the node. Plain JSON. */
export interface PlannedPolicy {
  /** Behind the backend's own, outer ones first. A target that cannot be covered fails the create. */
  readonly mounts: readonly PolicyMount[];
  /** For the agent; the edge tells it before anything starts. Absent: nothing is taken from sessions. */
  readonly sessions?: SessionPolicy;
}

export interface PolicyMount {
  /** `mask`: what is there is covered. `readonly`: it stays, and cannot be changed. */
  readonly kind: 'mask' | 'readonly';
  /** An absolute path; each character is a byte. */
  readonly target: string;
  /** Of `MOUNT_BITS`. */
  readonly flags: number;
}

export interface SessionPolicy {
  /** Bit n: capability n may be kept. */
  readonly capabilities: number;
  /** See `LandlockRuleset` of the policy compiler. */
  readonly landlock?: {
    readonly handledAccess: number;
    readonly rules: readonly { readonly path: string; readonly access: number }[];
  };
  /** System calls that are refused, if all of `when` holds for the low 32 bits of their arguments. */
  readonly denials: readonly {
    readonly call: string;
    readonly when: readonly {
      readonly argument: number;
      readonly equals: number;
      readonly mask: number;
    }[];
    readonly errno: number;
  }[];
}

/** What a node enforces policies with, as the policy compilers want it. */
export interface EnforcementFacts {
  readonly landlockAbi: number;
  readonly hasAppArmor: boolean;
  readonly deviceRules: 'bpf' | 'cgroup1' | 'none';
  readonly hasSessionCapabilities: boolean;
  readonly systemCalls?: ReadonlySet<string>;
}

/** For backends that enforce policies. */
export interface BackendPolicies {
  readonly facts: EnforcementFacts;
  /** What the agent is told. */
  rulesOf(policy: SessionPolicy): SessionRulesFields;
  /**
   * Puts the mounts of this policy in the place of those before, whatever an interrupted attempt has left.
   * Processes stand still meanwhile, so that none sees what is in between; those that could hold what is
   * taken away open are to be ended before. `freeze-timeout`: nothing was changed. After another error it
   * is to be repeated.
   */
  apply(key: SandboxKey, policy: PlannedPolicy, signal?: AbortSignal): Promise<void>;
}

/**
 * A sandbox has one address, which no other living sandbox of the node has, and one neighbour: the gateway.
 * Inside, the link is `eth0`; its other end is `hostEndName(address)` in the router namespace.
 */
export interface PlannedNetwork {
  /** IPv4 in dotted form. */
  readonly address: string;
  /** IPv4 in dotted form, the same for every sandbox of the node. */
  readonly gateway: string;
}

export interface PlannedTools {
  /** The tools of the platform are at `/.dsec/platform`. `unsupported` where the backend has none. */
  readonly platform: boolean;
  readonly layers: readonly PlannedApartLayer[];
}

export interface PlannedApartLayer {
  readonly kind: 'tools' | 'grading';
  /** Of no other, and not `platform`. */
  readonly name: string;
  readonly layerId: Digest;
}

export interface PlannedLayer {
  readonly kind: 'base' | 'workspace' | 'toolkit' | 'diff';
  readonly layerId: Digest;
}

/** What `create` made and recovery needs. The edge journals it with the state `running`. */
export interface SandboxRuntime {
  /** Plain JSON, at most 16 KiB; only the backend that made it reads it. */
  readonly record: unknown;
  readonly protections: readonly Protection[];
  readonly upperDriver: string;
}

export interface SandboxExit {
  readonly key: SandboxKey;
  /** `oom`: its own memory limit. `agent`: PID 1 ended by itself. `killed`: by a signal from outside. */
  readonly reason: 'oom' | 'agent' | 'killed' | 'backend-failed';
  /** What is known of the end, to show. */
  readonly detail: string;
}

export interface BackendReport {
  readonly kind: BackendKind;
  /** Why it cannot run anything here; absent when it can. */
  readonly unavailable?: DsecError;
  /** What a sandbox with default settings would have in force. */
  readonly protections: readonly Protection[];
  /** The first is the default for limits that fit it. */
  readonly upperDrivers: readonly string[];
  readonly slotsMax: number;
  /** Absent: every plan has to be without `network`, and one that is not is `unsupported`. */
  readonly network?: BackendNetworkReport;
}

export interface BackendNetworkReport {
  /** Why this node cannot link sandboxes; absent when it can. */
  readonly unavailable?: DsecError;
}

/** Where the host ends of all sandboxes of a node are, and where its proxies listen. */
export interface RouterNamespace {
  /**
   * Opens the network namespace. It is one file for as long as the router lives, also across restarts of the
   * edge. It has no route to anywhere but the sandboxes.
   */
  readonly namespacePath: string;
  /** Directories of cgroup v2, in which nothing but sandboxes runs. Absent: the backend has none. */
  readonly cgroups?: {
    /** Of all sandboxes of the edge. */
    readonly parent: string;
    /** Of one of them, right below it. */
    of(key: SandboxKey): string;
  };
}

/** What a restarted edge says that it has. */
export interface SandboxClaim {
  readonly plan: SandboxPlan;
  /** Absent: the edge died while creating; the backend destroys what there is. */
  readonly runtime?: SandboxRuntime;
}

/** What is true of a claim: it runs and is watched again, or nothing of it is left. */
export type SandboxRecovery =
  /** `frozen`: by whom and why is not known here. */
  | { readonly key: SandboxKey; readonly running: true; readonly frozen: boolean }
  | { readonly key: SandboxKey; readonly running: false; readonly exit: SandboxExit | undefined };

export interface RecoveryReport {
  readonly sandboxes: readonly SandboxRecovery[];
  /** Objects under this edge's names that nobody claimed and that are now gone. */
  readonly destroyed: readonly SandboxKey[];
}

export interface SandboxStats {
  readonly cpuUs: number;
  readonly memoryBytes: number;
  readonly memoryPeakBytes: number;
  readonly diskBytes: number;
  readonly inodes: number;
  readonly pids: number;
  /** Processes of it that its memory limit has killed since it was created; absent where nobody counts. */
  readonly oomKills?: number;
}

export interface Backend {
  readonly kind: BackendKind;
  /** What this node can do; cheap after the first time. */
  probe(signal?: AbortSignal): Promise<BackendReport>;
  /**
   * Makes a sandbox. When it resolves, the agent inside can be dialled. When it rejects, nothing is left, or
   * the error's details say `leftover: true` and `stop` has to be called again later. Aborting gives up.
   */
  create(plan: SandboxPlan, signal?: AbortSignal): Promise<SandboxRuntime>;
  /**
   * A byte stream to the agent (aether-frames.ts). May be called at any time and again: a second framed
   * connection replaces the first; raw streams are further connections. Each direction ends by itself
   * (`allowHalfOpen`), since the end of a raw stream is the end of a file. `unavailable`: nothing answers.
   */
  dial(key: SandboxKey, signal?: AbortSignal): Promise<Duplex>;
  /**
   * Kills every process of the sandbox, waits until none is left, and removes all that bears its name.
   * Resolves when nothing is left; idempotent; an unknown key resolves. Bounded by the backend itself:
   * `deadline-exceeded` says what would not end.
   */
  stop(key: SandboxKey, signal?: AbortSignal): Promise<void>;
  /** Changes limits of a running sandbox. Those not named stay. `unsupported` for one that cannot change. */
  update(key: SandboxKey, limits: SandboxLimits, signal?: AbortSignal): Promise<void>;
  /** Stops every process where it is. `freeze-timeout` after `FREEZE_TIMEOUT_MS`, thawed again. */
  freeze(key: SandboxKey, signal?: AbortSignal): Promise<void>;
  thaw(key: SandboxKey, signal?: AbortSignal): Promise<void>;
  /** Freezes, then takes back the memory that is not in use. */
  pause(key: SandboxKey, signal?: AbortSignal): Promise<void>;
  resume(key: SandboxKey, signal?: AbortSignal): Promise<void>;
  stats(key: SandboxKey, signal?: AbortSignal): Promise<SandboxStats>;
  /** Absent: it enforces none, and a plan with one is `unsupported`. */
  readonly policies?: BackendPolicies;
  /**
   * Called once, before anything else, with everything that the journal claims: watches again what runs,
   * removes what has ended, and destroys what bears this edge's name and is not claimed (I1). Nothing that
   * belongs to another edge is touched. A process is known by pid, start time and cgroup together (I10).
   */
  recover(claims: readonly SandboxClaim[], signal?: AbortSignal): Promise<RecoveryReport>;
  /** Each end of a sandbox that was not asked for by `stop`, once, within a second of it. */
  onExit(listener: (exit: SandboxExit) => void): void;
  /**
   * The node's router namespace, with the gateway's address in it; made by the first call or the first plan
   * with a network. Absent where the report has no `network`; `unsupported` where that says `unavailable`.
   */
  router?(gateway: string, signal?: AbortSignal): Promise<RouterNamespace>;
  /** Lets go. Sandboxes run on. */
  close(): Promise<void>;
}

export const FREEZE_TIMEOUT_MS = 2_000;

/** The name of the router's end of the link of the sandbox with this address. */
export function hostEndName(address: string): string {
  const bytes = address.split('.').map(Number);
  return `v${Buffer.from(bytes).toString('hex')}`;
}
