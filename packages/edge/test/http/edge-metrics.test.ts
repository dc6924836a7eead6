import { expect, it } from 'vitest';
import { createEdgeMetrics } from '../../src/http/edge-metrics.ts';

it('counts requests by operation and status, and sandboxes by state', async () => {
  const entries = [{ state: 'running' }, { state: 'running' }, { state: 'stopped' }];
  const metrics = createEdgeMetrics(() => entries as never);
  const common = { requestId: 'r', error: undefined, call: undefined };
  metrics.answered({ ...common, operation: 'startExec', status: 201, durationMs: 0.8 });
  metrics.answered({ ...common, operation: 'startExec', status: 201, durationMs: 80 });
  metrics.answered({ ...common, operation: undefined, status: 404, durationMs: 1 });
  const text = await metrics.render();
  expect(text).toContain('dsec_edge_requests_total{operation="startExec",status="201"} 2');
  expect(text).toContain('dsec_edge_requests_total{operation="none",status="404"} 1');
  expect(text).toContain('dsec_edge_request_seconds_bucket{le="0.001",operation="startExec"} 1');
  expect(text).toContain('dsec_edge_sandboxes{state="running"} 2');
  expect(text).toContain('dsec_edge_sandboxes{state="paused"} 0');
  expect(text).toContain('process_cpu_seconds_total');
});
