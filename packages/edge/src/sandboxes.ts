/**
 * The sandboxes of an edge as the rest of the edge sees them: what commands, files, ports and the routes
 * need of the lifecycle. The registry keeps them; this file is the contract.
 */
import type { SandboxKey, SandboxPlan, SandboxRuntime } from '@dsec/backend';
import type { EdgeState, Sandbox, SandboxNetwork, SandboxSpec, Stage, Ttl } from '@dsec/protocol';
import type {
  DsecError,
  EndReason,
  JobId,
  PrincipalId,
  ProjectId,
  SandboxId,
  SandboxState,
} from '@dsec/std';

/** What a command of a sandbox has when it names nothing else: of the request, else of the base's image. */
export interface ProcessDefaults {
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  readonly cwd: string;
}

/** One sandbox. The object stays the same for as long as the sandbox is listed; its fields change. */
export interface SandboxEntry {
  readonly id: SandboxId;
  readonly generation: number;
  /** Id and generation, as the backend knows it. */
  readonly key: SandboxKey;
  readonly project: ProjectId;
  readonly principal: PrincipalId;
  readonly job: JobId | undefined;
  readonly spec: SandboxSpec;
  readonly layers: Sandbox['layers'];
  readonly plan: SandboxPlan;
  readonly defaults: ProcessDefaults;
  readonly state: SandboxState;
  /** Grows with every change of what `view` shows, except usage. */
  readonly revision: number;
  readonly endReason: EndReason | undefined;
  readonly error: DsecError | undefined;
  /** Present from `running` on. */
  readonly runtime: SandboxRuntime | undefined;
  readonly ttl: Ttl;
  /** Its address, and the rules in force; absent for one that has loopback only. */
  readonly network: SandboxNetwork | undefined;
  /** Of its policy; absent outside of every stage. */
  readonly stage: Stage | undefined;
  readonly timings: Sandbox['timings'];
  /** Its time is up and it is kept for scoring: no command starts any more. */
  readonly inGrace: boolean;
  readonly createdAtMs: number;
  readonly endedAtMs: number | undefined;
}

export interface RequireRunningOptions {
  readonly signal?: AbortSignal | undefined;
  /** The operation starts a command: `state-conflict` once the sandbox is in its grace time. */
  readonly startsCommand?: boolean;
}

/** Each is called after the change is durable, synchronously and in the order of registration. */
export interface SandboxHooks {
  /** It runs: newly made, resumed, or found again by a restarted edge. */
  running?(entry: SandboxEntry, from: SandboxState): void;
  paused?(entry: SandboxEntry): void;
  /** Everything inside but the agent was ended, as another stage takes away what it could have open. */
  quiesced?(entry: SandboxEntry): void;
  /** It is `stopped` or `failed`, and will never run again. */
  ended?(entry: SandboxEntry): void;
  /** Its row and every row that refers to it are gone; what is kept of it elsewhere is to go too. */
  forgotten?(id: SandboxId): void;
}

export interface ChangesQuery {
  /** With `sinceRevision`: of an earlier answer. Another epoch than this edge's: everything is told. */
  readonly epoch?: number | undefined;
  readonly sinceRevision?: number | undefined;
  readonly limit?: number | undefined;
  /** Of an earlier page; `invalid-argument` when it is none of this epoch. */
  readonly cursor?: string | undefined;
}

export interface Changes {
  readonly epoch: number;
  /** Of the edge as a whole. Ask for what changed since then. */
  readonly revision: number;
  /** What is not listed does not exist. */
  readonly full: boolean;
  readonly sandboxes: EdgeState['sandboxes'];
  /** Of the next page, where there is one. */
  readonly cursor: string | undefined;
}

export interface Sandboxes {
  /** Throws `not-found`. */
  get(id: SandboxId): SandboxEntry;
  find(id: SandboxId): SandboxEntry | undefined;
  /** All that are listed, in the order of creation. */
  list(): Iterable<SandboxEntry>;
  /** As the API shows it, without usage. */
  view(entry: SandboxEntry): Sandbox;
  /**
   * The sandbox, running: a paused one is resumed. Counts as use. `not-found`; `state-conflict` in every
   * other state, with the state and the reason of its end in the details.
   */
  requireRunning(id: SandboxId, options?: RequireRunningOptions): Promise<SandboxEntry>;
  /** Place of the next operation within the sandbox, from 1 on; with a gap after a restart of the edge. */
  nextSequence(entry: SandboxEntry): number;
  /** The sandbox is in use: its idle time begins again. */
  touch(entry: SandboxEntry): void;
  /**
   * The sandbox is in use until the function that is returned is called, once: while it runs it is not idle.
   * Idle time begins with the last of them that ends, and with a pause.
   */
  hold(entry: SandboxEntry): () => void;
  /** The exit code of a command has come back; the first one is kept in the sandbox's timings. */
  noteFirstCommand(entry: SandboxEntry): void;
  /**
   * Ends a sandbox for a reason found outside the lifecycle: `protocol` for an agent that breaks the wire,
   * `agent` for one that cannot be reached. Does nothing to one that ends already.
   */
  fail(entry: SandboxEntry, reason: EndReason, error: DsecError): void;
  /** Resolves when the record's revision is above `revision`, or with `false` after `waitMs`. */
  waitForChange(
    entry: SandboxEntry,
    revision: number,
    waitMs: number,
    signal?: AbortSignal,
  ): Promise<boolean>;
  /** What changed, for those who keep a copy. Pages are in the order of change. */
  changes(query: ChangesQuery): Changes;
  hook(hooks: SandboxHooks): void;
}
