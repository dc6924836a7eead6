import { SANDBOX_STATES } from '@dsec/std';
import type { AnsweredRequest } from '@dsec/transport';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { SandboxEntry } from '../sandboxes.ts';

export interface EdgeMetrics {
  /** Others add their own; names begin with `dsec_edge_`. */
  readonly registry: Registry;
  readonly answered: (answered: AnsweredRequest<unknown>) => void;
  /** In the Prometheus text format. */
  render(): Promise<string>;
}

/** From a tenth of a millisecond, where commands end, to a minute, the longest wait. */
const SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5, 15, 60];

/** Labels are operations, statuses and states: closed sets, so that no caller makes the series grow. */
export function createEdgeMetrics(list: () => Iterable<SandboxEntry>): EdgeMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: 'dsec_edge_requests_total',
    help: 'Requests answered, by operation and HTTP status.',
    labelNames: ['operation', 'status'],
    registers,
  });
  const seconds = new Histogram({
    name: 'dsec_edge_request_seconds',
    help: 'From the head of a request to the end of its answer; streams are as long as they are.',
    labelNames: ['operation'],
    buckets: SECONDS,
    registers,
  });
  new Gauge({
    name: 'dsec_edge_sandboxes',
    help: 'Sandboxes that are listed, by state.',
    labelNames: ['state'],
    registers,
    collect() {
      const counts = new Map<string, number>(SANDBOX_STATES.map((state) => [state, 0]));
      for (const { state } of list()) counts.set(state, (counts.get(state) ?? 0) + 1);
      for (const [state, count] of counts) this.set({ state }, count);
    },
  });
  return {
    registry,
    answered({ operation = 'none', status, durationMs }) {
      requests.inc({ operation, status });
      seconds.observe({ operation }, durationMs / 1000);
    },
    render: () => registry.metrics(),
  };
}
