import { END_REASONS } from '@dsec/std';
import { Counter, Histogram, type Registry } from 'prom-client';
import type { Sandboxes } from '../sandboxes.ts';

const SECONDS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60];

/** How long sandboxes take to be ready, and why they end. */
export function addLifecycleMetrics(registry: Registry, sandboxes: Pick<Sandboxes, 'hook'>): void {
  const registers = [registry];
  const ready = new Histogram({
    name: 'dsec_edge_sandbox_ready_seconds',
    help: 'From the request to the hello of the agent inside.',
    buckets: SECONDS,
    registers,
  });
  const ended = new Counter({
    name: 'dsec_edge_sandboxes_ended_total',
    help: 'Sandboxes that have ended, by reason.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of END_REASONS) ended.inc({ reason }, 0);
  sandboxes.hook({
    running(entry, from) {
      const { readyMs } = entry.timings;
      if (from === 'creating' && readyMs !== undefined) ready.observe(readyMs / 1000);
    },
    ended: ({ endReason }) => ended.inc({ reason: endReason ?? 'stopped' }),
  });
}
