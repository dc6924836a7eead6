import { Counter, type Registry } from 'prom-client';
import type { AuditLog } from './audit-log.ts';

/** What was denied or tampered with. The label is where, a closed set; who it was, the audit says. */
export function addAuditMetrics(registry: Registry, audit: AuditLog): void {
  const registers = [registry];
  new Counter({
    name: 'dsec_edge_audit_total',
    help: 'Attempts at what is not allowed that were looked at, by where.',
    labelNames: ['at'],
    registers,
    collect() {
      this.reset();
      for (const [at, count] of audit.totals) this.inc({ at }, count);
    },
  });
  new Counter({
    name: 'dsec_edge_audit_lost_total',
    help: 'Attempts of which only their number is known.',
    registers,
    collect() {
      this.reset();
      this.inc(audit.lostTotal);
    },
  });
}
