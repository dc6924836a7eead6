import type { AnsweredRequest } from '@dsec/transport';
import type { Watcher } from '@dsec/watcher';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export interface ApiserverMetrics {
  readonly answered: (answered: AnsweredRequest<unknown>) => void;
  /** In the Prometheus text format. */
  render(): Promise<string>;
}

/** From a quarter of a millisecond, what a request on loopback takes, to a minute, the longest wait. */
const SECONDS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2, 10, 60];

/** Labels are operations, statuses and configured edges, so that no caller makes the series grow. */
export function createApiserverMetrics(
  watcher: () => Pick<Watcher, 'edges'>,
  followers: () => number,
): ApiserverMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: 'dsec_apiserver_requests_total',
    help: 'Requests answered, by operation and HTTP status.',
    labelNames: ['operation', 'status'],
    registers,
  });
  const seconds = new Histogram({
    name: 'dsec_apiserver_request_seconds',
    help: 'From the head of a request to the end of its answer; streams are as long as they are.',
    labelNames: ['operation'],
    buckets: SECONDS,
    registers,
  });
  new Gauge({
    name: 'dsec_apiserver_event_followers',
    help: 'Open event streams.',
    registers,
    collect() {
      this.set(followers());
    },
  });
  new Gauge({
    name: 'dsec_apiserver_edge_up',
    help: 'Whether an edge answered when it was last asked.',
    labelNames: ['edge'],
    registers,
    collect() {
      for (const { edge, error } of watcher().edges()) this.set({ edge }, error ? 0 : 1);
    },
  });
  new Gauge({
    name: 'dsec_apiserver_edge_sandboxes',
    help: 'Sandboxes of an edge that have not ended, as last seen.',
    labelNames: ['edge'],
    registers,
    collect() {
      for (const { edge, live } of watcher().edges()) this.set({ edge }, live);
    },
  });
  return {
    answered({ operation = 'none', status, durationMs }) {
      requests.inc({ operation, status });
      seconds.observe({ operation }, durationMs / 1000);
    },
    render: () => registry.metrics(),
  };
}
