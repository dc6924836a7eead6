import { jobId, keyId } from '../names.ts';
import { AuditPage, AuditQuery } from './audit.ts';
import { EdgeState, EdgeStateQuery, Event, EventQuery } from './event.ts';
import { Job, JobPage, JobResult } from './job.ts';
import { KeyCreate, KeyCreated, KeyPage, KeyRotate } from './key.ts';
import { DoctorReport, Health, Version } from './node.ts';
import {
  created,
  empty,
  events,
  jsonBody,
  noBody,
  none,
  ok,
  params,
  route,
  text,
} from './route.ts';
import { pageQuery } from './sandbox.ts';

const page = params(pageQuery);
const job = { params: params({ jobId }), query: none, home: 'apiserver', body: noBody } as const;
const jobWrite = { ...job, operationClass: 'sandboxes:write', effect: 'idempotent' } as const;
const open = { operationClass: 'none', effect: 'read', home: 'both' } as const;
const plain = { params: none, query: none, body: noBody } as const;

export const PLATFORM_ROUTES = {
  listJobs: route({
    ...{ method: 'GET', path: '/v1/jobs', ...plain, home: 'apiserver' },
    ...{ operationClass: 'sandboxes:read', effect: 'read' },
    summary: 'List jobs by name.',
    query: page,
    reply: ok(JobPage),
  }),
  getJob: route({
    ...{ method: 'GET', path: '/v1/jobs/{jobId}', ...job },
    ...{ operationClass: 'sandboxes:read', effect: 'read' },
    summary: 'Count the sandboxes of a job.',
    reply: ok(Job),
  }),
  pauseJob: route({
    ...{ method: 'POST', path: '/v1/jobs/{jobId}/pause', ...jobWrite },
    summary: 'Pause every sandbox of a job.',
    reply: ok(JobResult),
  }),
  resumeJob: route({
    ...{ method: 'POST', path: '/v1/jobs/{jobId}/resume', ...jobWrite },
    summary: 'Resume every sandbox of a job.',
    reply: ok(JobResult),
  }),
  stopJob: route({
    ...{ method: 'POST', path: '/v1/jobs/{jobId}/stop', ...jobWrite },
    summary: 'Stop every sandbox of a job.',
    reply: ok(JobResult),
  }),
  streamEvents: route({
    ...{ method: 'GET', path: '/v1/events', ...plain, home: 'both' },
    ...{ operationClass: 'sandboxes:read', effect: 'read' },
    summary: 'Follow what happens, from a cursor (also as Last-Event-ID) or from now on.',
    query: EventQuery,
    reply: events(Event),
  }),
  getAudit: route({
    ...{ method: 'GET', path: '/v1/audit', ...plain, home: 'both' },
    ...{ operationClass: 'sandboxes:read', effect: 'read' },
    summary: 'What sandboxes tried that they may not, in the order of their creation.',
    query: AuditQuery,
    reply: ok(AuditPage),
  }),
  createKey: route({
    ...{ method: 'POST', path: '/v1/keys', ...plain, home: 'apiserver' },
    ...{ operationClass: 'keys', effect: 'keyed' },
    summary: 'Create an API key. Its secret is told this once.',
    body: jsonBody(KeyCreate),
    reply: created(KeyCreated),
  }),
  listKeys: route({
    ...{ method: 'GET', path: '/v1/keys', ...plain, home: 'apiserver' },
    ...{ operationClass: 'keys', effect: 'read' },
    summary: 'List API keys, without their secrets.',
    query: page,
    reply: ok(KeyPage),
  }),
  rotateKey: route({
    ...{ method: 'POST', path: '/v1/keys/{keyId}/rotate', ...plain, home: 'apiserver' },
    ...{ operationClass: 'keys', effect: 'keyed' },
    summary: 'Give the key that asks, or one that comes of it, another secret, told this once.',
    params: params({ keyId }),
    body: jsonBody(KeyRotate),
    reply: ok(KeyCreated),
  }),
  revokeKey: route({
    ...{ method: 'DELETE', path: '/v1/keys/{keyId}', ...plain, home: 'apiserver' },
    ...{ operationClass: 'keys', effect: 'idempotent' },
    summary: 'Make an API key invalid at once.',
    params: params({ keyId }),
    reply: empty,
  }),
  getEdgeState: route({
    ...{ method: 'GET', path: '/v1/edge/state', ...plain, home: 'edge' },
    ...{ operationClass: 'node', effect: 'read' },
    summary: 'What an edge is and has, whole or since a revision.',
    query: EdgeStateQuery,
    reply: ok(EdgeState),
  }),
  getDoctorReport: route({
    ...{ method: 'GET', path: '/v1/doctor', ...plain, home: 'both' },
    ...{ operationClass: 'node', effect: 'read' },
    summary: 'What the node can do and enforce.',
    reply: ok(DoctorReport),
  }),
  getMetrics: route({
    ...{ method: 'GET', path: '/v1/metrics', ...plain, home: 'both' },
    ...{ operationClass: 'node', effect: 'read' },
    summary: 'Metrics in the Prometheus text format.',
    reply: text('text/plain; version=0.0.4'),
  }),
  getHealth: route({
    ...{ method: 'GET', path: '/v1/health', ...plain, ...open },
    summary: 'Whether the process can serve.',
    reply: ok(Health),
  }),
  getVersion: route({
    ...{ method: 'GET', path: '/v1/version', ...plain, ...open },
    summary: 'The versions of the process and of what it speaks.',
    reply: ok(Version),
  }),
  getOpenApi: route({
    ...{ method: 'GET', path: '/v1/openapi.json', ...plain, ...open },
    summary: 'This document.',
    reply: text('application/json'),
  }),
} as const;
