import type { HostFacts, Outcome } from './facts.ts';
import { parseOsRelease } from './parse.ts';
import type { CheckGroup, CheckStatus, HostCheck } from './report.ts';

/** What is fixed about a check, whatever is found. */
export interface CheckHead {
  readonly id: string;
  readonly group: CheckGroup;
  readonly neededFor: string;
}

/** A finished check. A remedy is kept only where there is something to put right. */
export function check(
  head: CheckHead,
  status: CheckStatus,
  found: string,
  remedy: string,
): HostCheck {
  return { ...head, status, found, remedy: status === 'ok' ? '' : remedy };
}

/** A check that was tried for real. `failed` is what a failure means for DSec. */
export function checkOutcome(
  head: CheckHead,
  outcome: Outcome,
  remedy: string,
  failed: CheckStatus = 'missing',
): HostCheck {
  if (outcome.state === 'works') return check(head, 'ok', outcome.detail, '');
  if (outcome.state === 'untried') return check(head, 'unknown', outcome.why, RUN_AS_ROOT);
  return check(head, failed, outcome.why, remedy);
}

export const RUN_AS_ROOT = 'run `sudo dsec doctor`';

export type Distribution = 'debian-12' | 'debian-13' | 'ubuntu' | 'other';

/** The distributions that remedies name packages of. */
export function distributionOf(facts: HostFacts): Distribution {
  const { ID, VERSION_ID = '' } = parseOsRelease(facts.files['/etc/os-release'] ?? '');
  if (ID === 'debian' && VERSION_ID === '12') return 'debian-12';
  if (ID === 'debian' && VERSION_ID === '13') return 'debian-13';
  return ID === 'ubuntu' ? 'ubuntu' : 'other';
}
