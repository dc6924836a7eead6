import type { Backend, SandboxKey } from '@dsec/backend';
import type { SessionRulesFields } from '@dsec/protocol';
import type { Clock, DsecError, SandboxId } from '@dsec/std';
import type { Admission } from '../admission.ts';
import type { Journal } from '../journal/database.ts';
import type { SandboxTable } from '../journal/sandbox-table.ts';
import type { NodeNetwork } from '../network/network.ts';
import type { NodePolicies } from '../policy/node-policies.ts';
import type { TimerWheel } from '../timer-wheel.ts';
import type { Registry } from './registry.ts';
import type { Slots } from './slots.ts';

/** Of the agents' links, what the lifecycle needs. */
export interface AgentConnector {
  /** Resolves when the agent has said hello. */
  connect(key: SandboxKey, signal?: AbortSignal): Promise<unknown>;
  /** Once, for a sandbox with a network: tells the programs inside who answers for names. */
  setResolver?(key: SandboxKey, address: string, signal?: AbortSignal): Promise<void>;
  /** What holds for all that starts inside from now on. */
  setRules?(key: SandboxKey, rules: SessionRulesFields, signal?: AbortSignal): Promise<void>;
  /** Ends everything inside but the agent, which starts nothing until there are other rules. */
  quiesce?(key: SandboxKey, signal?: AbortSignal): Promise<void>;
  /** Closes the link; none is made again. Knows every key. */
  drop(key: SandboxKey): void;
  /** Closes all links. What runs inside goes on. */
  close(): void;
}

export interface LifecycleTimes {
  readonly createMs: number;
  readonly pauseMs: number;
  readonly resumeMs: number;
  /** How long a caller waits for an end; the end itself goes on. */
  readonly stopWaitMs: number;
  /** An ended sandbox stays listed for this long. */
  readonly endedKeptMs: number;
}

export const LIFECYCLE_TIMES: LifecycleTimes = {
  createMs: 60_000,
  pauseMs: 30_000,
  resumeMs: 30_000,
  stopWaitMs: 60_000,
  endedKeptMs: 600_000,
};

/** More ended sandboxes than this are not listed: the oldest are forgotten first. */
export const ENDED_MAX = 10_000;

/** What the files of this folder share. */
export interface LifecycleParts {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly table: SandboxTable;
  readonly registry: Registry;
  readonly slots: Slots;
  readonly wheel: TimerWheel;
  readonly backend: Backend;
  readonly network: NodeNetwork;
  readonly policies: NodePolicies;
  readonly agents: AgentConnector;
  readonly admission: Admission;
  readonly times: LifecycleTimes;
  /** Aborts when the edge closes. */
  readonly closing: AbortSignal;
  /** A fault that has no caller to tell. */
  readonly report: (what: string, error: DsecError, sandbox?: SandboxId) => void;
}
