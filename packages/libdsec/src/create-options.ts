import type {
  NetworkRule,
  PolicyChoice,
  SandboxLimits,
  SandboxSpec,
  Stage,
  Ttl,
} from '@dsec/protocol';
import { type Present, present } from './pages.ts';

/** What a sandbox is to be. What is absent gets the default of the node. */
export interface SandboxOptions {
  /** A named list of layers; or `layers` themselves. */
  readonly environment?: string | undefined;
  /** From the base up, as `kind/name:version`; the version may be `^1`, `~1.2` or `latest` as well. */
  readonly layers?: readonly string[] | undefined;
  readonly backend?: SandboxSpec['backend'] | undefined;
  readonly limits?: SandboxLimits | undefined;
  /** What it may reach; everything else is denied. */
  readonly network?: readonly NetworkRule[] | undefined;
  /** What it may do: a policy, or the name of a profile (`default` where absent). */
  readonly policy?: PolicyChoice | undefined;
  /** Of the policy, to begin with. */
  readonly stage?: Stage | undefined;
  /** Variables of every command in it. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Who runs its commands when they name nobody. */
  readonly user?: string | undefined;
  /** Where its commands start. */
  readonly cwd?: string | undefined;
  /** What is changed at these paths, or below, is told as events `tamper` and in the audit. */
  readonly watchPaths?: readonly string[] | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** The job that it belongs to, by which many are found and steered together. */
  readonly job?: string | undefined;
  /** What ends it by itself. */
  readonly ttl?: Ttl | undefined;
  /** Who may share the memory of its layers' files. */
  readonly isolation?: 'job' | 'project' | 'node' | undefined;
  /** For graders alone: see the guide to grading. */
  readonly grading?: boolean | undefined;
  /** Protections without which it must not start. */
  readonly requireProtections?: readonly string[] | undefined;
  /** Start even where the node lacks a protection, and say so. */
  readonly allowDegraded?: boolean | undefined;
}

interface RequestOptions {
  /** The same key is the same request: a repetition gives what the first one made. Absent: a new one. */
  readonly idempotencyKey?: string | undefined;
  /** Seconds for the whole of it, instead of the client's own. */
  readonly timeout?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface CreateOptions extends SandboxOptions, RequestOptions {
  /** `ready` (absent): its agent has answered. `allocated`: it has its place, and is being made. */
  readonly waitFor?: 'allocated' | 'ready' | undefined;
}

export interface CreateManyOptions extends SandboxOptions, RequestOptions {
  /** Throw the error of the first one that fails, instead of yielding it. */
  readonly raiseOnFailure?: boolean | undefined;
}

export function sandboxSpecOf(options: SandboxOptions): Present<SandboxSpec> {
  const { layers, network, requireProtections } = options;
  const { environment, backend, limits, env, user, cwd, labels, job, ttl, isolation } = options;
  const { policy, stage, watchPaths } = options;
  return present({
    ...{ environment, backend, limits, env, user, cwd, labels, job, ttl, isolation },
    ...{ policy, stage },
    layers: layers && [...layers],
    network: network && [...network],
    watchPaths: watchPaths && [...watchPaths],
    requireProtections: requireProtections && [...requireProtections],
    allowDegraded: options.allowDegraded,
    grading: options.grading,
  });
}
