/** What the network of a node does not let through goes into the audit of its sandbox. */
import type { AuditLog } from '../audit/audit-log.ts';
import type { Registry } from '../lifecycle/registry.ts';
import type { NodeNetwork } from './network.ts';

export interface DeniedEventsParts {
  readonly network: Pick<NodeNetwork, 'onDenied'>;
  readonly registry: Pick<Registry, 'find'>;
  readonly audit: Pick<AuditLog, 'note'>;
}

export function tellDenials({ network, registry, audit }: DeniedEventsParts): void {
  network.onDenied(({ sandbox, suppressed, ...denied }) => {
    const version = registry.find(sandbox)?.network?.version;
    if (version === undefined) return;
    audit.note(sandbox, { type: 'denied', ...denied, version }, suppressed);
  });
}
