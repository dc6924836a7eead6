/**
 * Denials as events: some of each sandbox (the network sees to that) and some of all, so that the log of a
 * node stays what it is for, however many sandboxes try what they may not.
 */
import { createTokenBucket } from '@dsec/network';
import { type Clock, isEndState, type SandboxId } from '@dsec/std';
import type { EventLog } from '../journal/event-log.ts';
import type { Registry } from '../lifecycle/registry.ts';
import type { NodeNetwork } from './network.ts';

export interface DeniedEventsParts {
  readonly network: Pick<NodeNetwork, 'onDenied'>;
  readonly registry: Pick<Registry, 'find' | 'hook'>;
  readonly events: Pick<EventLog, 'append'>;
  readonly clock: Clock;
}

/** Of all sandboxes of a node together. */
const TOLD = { perSecond: 50, burst: 500 };

export function tellDenials({ network, registry, events, clock }: DeniedEventsParts): void {
  const bucket = createTokenBucket(TOLD);
  /** Of living sandboxes, what could not be told. */
  const untold = new Map<SandboxId, number>();
  network.onDenied(({ sandbox: id, suppressed, ...denied }) => {
    const sandbox = registry.find(id);
    if (sandbox?.network === undefined || isEndState(sandbox.state)) return;
    const others = suppressed + (untold.get(id) ?? 0);
    if (!bucket.take(clock.monotonicMs())) {
      untold.set(id, others + 1);
      return;
    }
    const { project, principal, job, network: rules } = sandbox;
    try {
      events.append({
        ...{ type: 'denied', project, principal, sandbox: id, ...denied },
        ...{ version: rules.version, suppressed: others },
        ...(job === undefined ? {} : { job }),
      });
      untold.delete(id);
    } catch {
      // A full disk, say: it is counted in the next one.
      untold.set(id, others + 1);
    }
  });
  registry.hook({ ended: ({ id }) => void untold.delete(id) });
}
