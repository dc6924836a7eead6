/**
 * What `dsec doctor` says about a host. The report is plain data: its JSON form is the machine-readable
 * answer, and `renderHostReport` turns it into the text for people.
 */

/**
 * `ok`: there, and where it could be tried it was. `degraded`: DSec runs, slower or with less protection.
 * `missing`: not there. `unknown`: could not be looked at, for the reason in `found`; never taken for `ok`.
 */
export type CheckStatus = 'ok' | 'degraded' | 'missing' | 'unknown';

export const CHECK_GROUPS = [
  'kernel',
  'privilege',
  'namespaces',
  'cgroups',
  'file systems',
  'security',
  'bpf',
  'virtual machines',
  'memory',
  'limits',
  'machine',
] as const;

export type CheckGroup = (typeof CHECK_GROUPS)[number];

export interface HostCheck {
  /** Stable and dotted: `fs.overlay-descriptor`. */
  readonly id: string;
  readonly group: CheckGroup;
  readonly status: CheckStatus;
  /** What was seen. */
  readonly found: string;
  /** What DSec does with it. */
  readonly neededFor: string;
  /** The command, setting or kernel option that puts it right. Empty when nothing is to be done. */
  readonly remedy: string;
}

export const PROBED_BACKENDS = ['layers', 'container', 'microvm', 'fullvm'] as const;

export type ProbedBackend = (typeof PROBED_BACKENDS)[number];

/** `unknown`: something it cannot do without could not be looked at. */
export type VerdictStatus = 'possible' | 'degraded' | 'impossible' | 'unknown';

export interface VerdictReason {
  /** The id of the check that decided. */
  readonly check: string;
  readonly status: CheckStatus;
  readonly why: string;
}

export interface Verdict {
  readonly status: VerdictStatus;
  /** What keeps it from `possible`; first what it cannot do without. */
  readonly reasons: readonly VerdictReason[];
}

export interface HostSummary {
  readonly os: string;
  readonly kernel: string;
  /** As the kernel names it: `x86_64`, `aarch64`. */
  readonly architecture: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  /** The user that the probe ran as. */
  readonly uid: number;
}

export interface HostReport {
  readonly version: 1;
  /** ISO 8601, UTC. */
  readonly takenAt: string;
  readonly host: HostSummary;
  readonly checks: readonly HostCheck[];
  readonly verdicts: Readonly<Record<ProbedBackend, Verdict>>;
}
