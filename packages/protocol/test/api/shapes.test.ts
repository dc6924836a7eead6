/**
 * Examples of what the shapes take and refuse; that all of them are closed and bounded is seen in
 * openapi.test.ts.
 */
import {
  check,
  DoctorReport,
  EdgeState,
  ErrorBody,
  Event,
  ExecSpec,
  ExecStarted,
  FileEntry,
  isValid,
  KeyCreated,
  LayerRefText,
  LayerSelectorText,
  Sandbox,
  SandboxCreate,
} from '@dsec/protocol';
import { DsecError, ERROR_CODES, type ErrorCode, toErrorBody } from '@dsec/std';
import { expect, test } from 'vitest';

const id = 'sb-a-b-0123456789abcdef';
const digest = `sha256:${'0'.repeat(64)}`;
const about = { project: 'p', principal: 'me', sandbox: id };

test('every error of the table has a valid body', () => {
  for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
    const error = new DsecError(code, 'm', { details: { field: 'a', nextOffset: 3, ok: true } });
    expect(check(ErrorBody, toErrorBody(error), 'error')).toEqual(toErrorBody(error));
  }
  expect(isValid(ErrorBody, { ...toErrorBody(new DsecError('internal', 'm')), code: 'x' })).toBe(
    false,
  );
});

test('a sandbox as a trainer asks for it', () => {
  const create = {
    backend: 'container',
    layers: ['base/debian:^1', 'toolkit/pytest:latest'],
    limits: { cpuMillicores: 4000, memoryBytes: 4096 * 2 ** 20 },
    network: [{ kind: 'service', target: 'pypi' }],
    env: { PATH: '/bin', _x: '' },
    labels: { 'task.id': 'django__1', owner: '' },
    job: 'job-1',
    ttl: { idleMs: 60_000, graceMs: 5000 },
    requireProtections: ['seccomp'],
    waitFor: 'ready',
  };
  expect(check(SandboxCreate, create, 'body')).toBe(create);
  const refused = [
    { ...create, limits: { memoryBytes: -1 } },
    { ...create, limits: { memory: 1 } },
    { ...create, env: { 'A=B': 'x' } },
    { ...create, env: { A: 'x\0' } },
    { ...create, labels: { '../x': 'y' } },
    { ...create, layers: [] },
    { ...create, cwd: 'relative' },
    { ...create, user: 'root\n' },
    { ...create, job: '.hidden' },
  ];
  expect(refused.filter((value) => isValid(SandboxCreate, value))).toEqual([]);
});

const sandbox = {
  ...{ id, state: 'running', revision: 3, edge: 'b', project: 'p', principal: 'me' },
  ...{ spec: {}, layers: [{ layerId: digest }], createdAtMs: 1, protections: [] },
  timings: { allocatedMs: 0.4, readyMs: 2.5 },
};

test('a sandbox as an edge shows it', () => {
  expect(isValid(Sandbox, sandbox)).toBe(true);
  expect(isValid(Sandbox, { ...sandbox, state: 'failed', endReason: 'oom' })).toBe(true);
  expect(isValid(Sandbox, { ...sandbox, state: 'gone' })).toBe(false);
  expect(isValid(Sandbox, { ...sandbox, secret: 1 })).toBe(false);
});

test('a command and what comes back at once', () => {
  expect(isValid(ExecSpec, { argv: ['true'], waitMs: 1000, pty: { rows: 1, columns: 1 } })).toBe(
    true,
  );
  expect(isValid(ExecSpec, { argv: [] })).toBe(false);
  expect(isValid(ExecSpec, { argv: ['a\0b'] })).toBe(false);
  expect(isValid(ExecSpec, { shell: 'x'.repeat(131_072) })).toBe(false);
  const totals = { totalBytes: 2, headBytes: 2, tailOffset: 2, truncated: false, ended: true };
  const exit = { exitCode: 0, coreDumped: false, timedOut: false, oomKilled: false, trusted: true };
  const exec = {
    ...{ id: 'ex-abcdefghijklmnop', sandbox: id, sequence: 1, command: 'true', state: 'exited' },
    ...{ exit, startedAtMs: 1, stdout: totals, stderr: totals },
  };
  expect(isValid(ExecStarted, { exec, stdout: { offset: 0, text: 'ok' } })).toBe(true);
  expect(isValid(ExecStarted, { exec: { ...exec, exit: { ...exit, exitCode: 256 } } })).toBe(false);
});

test('a file whose name is not UTF-8', () => {
  const entry = {
    ...{ name: 'a\ufffd', nameBase64: 'Yf8=', kind: 'file', mode: 0o644, uid: 0, gid: 0 },
    ...{ sizeBytes: 1, allocatedBytes: 4096, links: 1, mtimeSeconds: -1, mtimeNanoseconds: 5 },
  };
  expect(isValid(FileEntry, entry)).toBe(true);
  expect(isValid(FileEntry, { ...entry, mode: 0o10000 })).toBe(false);
});

test('names of layers: full versions, and floating ones to select', () => {
  const good = ['base/debian:1.0.0', 'toolkit/a.b-c_d:0.1.2-rc.1'];
  const floating = ['base/debian:^1', 'base/debian:~1.2', 'workspace/x:latest'];
  const bad = [
    'debian:1.0.0',
    'base/debian',
    'base/../x:1.0.0',
    'base/a..b:1.0.0',
    'base/a:1.0',
    'x/a:1.0.0',
  ];
  expect(good.filter((ref) => !isValid(LayerRefText, ref))).toEqual([]);
  expect([...good, ...floating].filter((ref) => !isValid(LayerSelectorText, ref))).toEqual([]);
  expect(floating.filter((ref) => isValid(LayerRefText, ref))).toEqual([]);
  expect(bad.filter((ref) => isValid(LayerSelectorText, ref))).toEqual([]);
});

test('events and the state of an edge', () => {
  const common = { cursor: 'c1', atMs: 1 };
  const ended = { type: 'sandbox-state', state: 'stopped', endReason: 'ttl', revision: 9 };
  expect(isValid(Event, { ...common, ...about, ...ended })).toBe(true);
  expect(isValid(Event, { ...common, type: 'lost' })).toBe(true);
  expect(isValid(Event, { ...common, ...ended })).toBe(false);
  const load = {
    ...{ admitting: true, cpuCount: 2, memoryTotalBytes: 1, memoryAvailableBytes: 1 },
    ...{ diskAvailableBytes: 1, pidsAvailable: 1 },
  };
  const state = {
    ...{ edge: 'b', epoch: 1, bootId: '0'.repeat(36), revision: 1, full: true, events: 'c1', load },
    ...{
      backends: ['container'],
      sandboxes: [{ id, state: 'running', revision: 1, project: 'p', createdAtMs: 1 }],
    },
  };
  expect(isValid(EdgeState, state)).toBe(true);
});

test('a key without its secret is a valid answer to a repeated request', () => {
  const key = {
    ...{ id: 'ke-abcdefghijklmnop', name: 'ci', project: 'p', principal: 'me', createdAtMs: 1 },
    scopes: ['exec'],
  };
  expect(isValid(KeyCreated, { key })).toBe(true);
  expect(isValid(KeyCreated, { key, secret: `dsec_${'a'.repeat(43)}` })).toBe(true);
  expect(isValid(KeyCreated, { key: { ...key, scopes: ['everything'] } })).toBe(false);
});

test('a doctor report', () => {
  const report = {
    ...{
      version: 1,
      takenAt: '2026-01-01T00:00:00Z',
      verdicts: { container: { status: 'possible', reasons: [] } },
    },
    host: { os: 'x', kernel: '6.12', architecture: 'x86_64', cpus: 2, memoryBytes: 1, uid: 0 },
    checks: [{ id: 'a.b', group: 'kernel', status: 'ok', found: '', neededFor: '', remedy: '' }],
  };
  expect(isValid(DoctorReport, report)).toBe(true);
});
