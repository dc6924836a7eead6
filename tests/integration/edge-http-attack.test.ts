/**
 * A hostile caller with valid tickets for one sandbox, against `dsec edge` on containers. Whatever it does,
 * the daemon serves others meanwhile, keeps within its memory, and loses nothing.
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { type FilePage, formatTarget, ROUTES, type Route, type Sandbox } from '@dsec/protocol';
import { KIB, MIB, type SandboxId } from '@dsec/std';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { createEdgeHost, type EdgeHost, type EdgeProcess, paramsOf } from '../chaos/edge-world.ts';
import { until } from './aether-peer.ts';
import { openBackendWorld, openSharedStore, type SharedStore } from './backend-container-world.ts';

const isRoot = process.getuid?.() === 0;
const isLong = process.env.DSEC_TEST_LONG === '1';
/** What a daemon may take beyond what it began with, whatever is thrown at it. */
const GROWTH_BYTES_MAX = 256 * MIB;

let shared: SharedStore;
let host: EdgeHost;
let edge: EdgeProcess;
let sandbox: Sandbox;
let other: Sandbox;
let baseBytes: number;
const sockets = new Set<Socket>();

compileFirst(join(import.meta.dirname, '../../packages/dsec'));

const CREATE = { layers: ['base/small:1.0.0'] };
/** File requests that a sandbox takes at a time, and one to spare. */
const AT_A_TIME = 63;
/** No answer came. */
const LOST = 'lost';
const LAST = Number.MAX_SAFE_INTEGER;

function residentBytes(): number {
  const status = readFileSync(`/proc/${edge.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * KIB;
}

/** A connection on which nothing is read unless the test does. */
function open(text: string): Socket {
  const socket = connect(edge.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.on('close', () => sockets.delete(socket));
  sockets.add(socket);
  socket.write(text);
  return socket;
}

async function answerOf(text: string): Promise<string> {
  const socket = open(text);
  let answer = '';
  try {
    for await (const part of socket.setEncoding('latin1')) {
      answer += part;
      if (answer.includes('\r\n\r\n')) break;
    }
  } catch {
    // It was reset: what came before that counts.
  }
  return answer;
}

function head(route: Route, target: string, more: readonly string[] = []): string {
  const ticket = Object.entries(edge.client.headersOf(route, target, undefined));
  const lines = ticket.map(([name, value]) => `${name}: ${value}`);
  return [`${route.method} ${target} HTTP/1.1`, 'Host: localhost', ...lines, ...more, '', ''].join(
    '\r\n',
  );
}

/** Another caller is served, and the daemon is as large as it may be. */
async function checkWell(): Promise<void> {
  const body = { argv: ['true'], waitMs: 30_000 };
  const { exec } = await edge.client.call(ROUTES.startExec, { params: paramsOf(other), body });
  expect(exec).toMatchObject({ state: 'exited', exit: { exitCode: 0 } });
  expect(residentBytes() - baseBytes).toBeLessThan(GROWTH_BYTES_MAX);
  expect(edge.isAlive()).toBe(true);
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'done',
    (thrown) => thrown.code ?? String(thrown),
  );
}

describe.skipIf(!isRoot)('a hostile caller (needs root)', () => {
  beforeAll(async () => {
    shared = await openSharedStore();
    const world = await openBackendWorld(shared);
    await world.backend.close();
    host = createEdgeHost(world);
    edge = await host.start();
    sandbox = await edge.client.call(ROUTES.createSandbox, { body: CREATE });
    other = await edge.client.call(ROUTES.createSandbox, { body: CREATE });
    baseBytes = residentBytes();
    await checkWell();
  }, 120_000);

  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    // What was begun for a caller that is gone is given up.
    const query = { path: '/tmp' };
    await until(async () => {
      const asked = Array.from({ length: AT_A_TIME }, () =>
        codeOf(edge.client.call(ROUTES.statFile, { params: paramsOf(sandbox), query })),
      );
      return (await Promise.all(asked)).every((code) => code === 'done');
    }, 'room for as many requests as before');
  });

  afterAll(async () => {
    await edge?.end('SIGTERM');
    await host?.world.close();
    shared?.remove();
  });

  it('that sends heads without measure is told so', async () => {
    const line = 'GET /v1/version HTTP/1.1\r\nHost: localhost\r\n';
    expect(await answerOf(`${line}x: ${'x'.repeat(MIB)}\r\n\r\n`)).toMatch(/^HTTP\/1.1 4/);
    const many = Array.from({ length: 500 }, (_, i) => `x${i}: y\r\n`).join('');
    expect(await answerOf(`${line}${many}\r\n`)).toMatch(/^HTTP\/1.1 4/);
    expect(await answerOf(`GET /${'%41'.repeat(8000)} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 4/);
    await checkWell();
  });

  it('that sends heads, bodies and upgrades by halves holds up nobody', async () => {
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket'];
    for (let i = 0; i < 300; i += 1) {
      open('GET /v1/version HTTP/1.1\r\nHost: local');
      const make = formatTarget(ROUTES.startExec, paramsOf(sandbox), {});
      open(head(ROUTES.startExec, make, ['Content-Length: 1000', '{']));
      const write = formatTarget(ROUTES.writeFile, paramsOf(sandbox), { path: `/tmp/slow-${i}` });
      open(`${head(ROUTES.writeFile, write, ['Transfer-Encoding: chunked'])}1\r\nx\r\n`);
      const port = formatTarget(ROUTES.connectPort, { ...paramsOf(sandbox), port: 80 }, {});
      open(head(ROUTES.connectPort, port, upgrade).slice(0, -2));
    }
    await checkWell();
  });

  it('that follows events a thousand times from the beginning, and takes none', async () => {
    const { client } = edge;
    const { events } = await client.call(ROUTES.getEdgeState, {});
    const old = events.replace(/-.*/, '-0');
    const run = { argv: ['true'], waitMs: 30_000 };
    for (let i = 0; i < 50; i += 1) {
      await client.call(ROUTES.startExec, { params: paramsOf(sandbox), body: run });
    }
    for (let i = 0; i < 1000; i += 1) {
      open(head(ROUTES.streamEvents, formatTarget(ROUTES.streamEvents, {}, { cursor: old })));
    }
    // Of a sandbox of which there is nothing to tell, too.
    const nothing = { cursor: old, sandbox: 'sb-s1-e1-aaaaaaaaaaaaaaaa' as SandboxId };
    for (let i = 0; i < 200; i += 1) {
      open(head(ROUTES.streamEvents, formatTarget(ROUTES.streamEvents, {}, nothing)));
    }
    await checkWell();
  });

  it.each(['0'.repeat(16), 'f'.repeat(16)])('whose cursor is of a journal %s', async (journal) => {
    for (const place of ['0', 'zzzzzzzzzzz', '00000000000']) {
      const target = formatTarget(ROUTES.streamEvents, {}, { cursor: `${journal}-${place}` });
      const socket = open(head(ROUTES.streamEvents, target));
      let text = '';
      for await (const part of socket) {
        text += part;
        if (text.includes('"type":"lost"')) break;
      }
      expect(text).toContain('"type":"lost"');
    }
    for (const cursor of ['x', `${journal}-`, `${journal}-zzzzzzzzzzzz`, '-', `${journal}--1`]) {
      const target = formatTarget(ROUTES.streamEvents, {}, { cursor });
      expect(await answerOf(head(ROUTES.streamEvents, target))).toMatch(/^HTTP\/1.1 400/);
    }
  });

  it('whose offsets are as large as numbers are', async () => {
    const { client } = edge;
    const params = paramsOf(sandbox);
    const path = '/tmp/small';
    await client.call(ROUTES.writeFile, { params, query: { path }, body: Buffer.from('abc') });
    const read = async (range: object) => {
      const reply = await client.call(ROUTES.readFile, { params, query: { path, ...range } });
      let text = '';
      for await (const part of reply.body) text += Buffer.from(part).toString();
      return text;
    };
    expect(await read({ offset: 1, lengthBytes: LAST })).toBe('bc');
    expect(await read({ offset: LAST, lengthBytes: LAST })).toBe('');
    expect(await read({ offset: LAST })).toBe('');
    expect(await read({ offset: 3, lengthBytes: 0 })).toBe('');
    expect(await codeOf(read({ offset: LAST + 1 }))).toBe('invalid-argument');
    expect(await codeOf(read({ offset: -1 }))).toBe('invalid-argument');
    const body = { argv: ['cat'], stdin: true, waitMs: 0 };
    const { exec } = await client.call(ROUTES.startExec, { params, body });
    const one = { ...params, execId: exec.id };
    for (const offset of [1, LAST]) {
      const query = { offset, end: true };
      const sent = client.call(ROUTES.writeExecStdin, {
        params: one,
        query,
        body: Buffer.from('x'),
      });
      expect(['invalid-argument', 'conflict', 'state-conflict']).toContain(await codeOf(sent));
    }
    const far = client.call(ROUTES.readExecOutput, {
      ...{ params: one, query: { offset: LAST, waitMs: 0 } },
    });
    expect(['done', 'invalid-argument']).toContain(await codeOf(far));
    await checkWell();
  });

  it('whose names are of any bytes', async () => {
    const { client } = edge;
    const params = paramsOf(sandbox);
    const names = ['a\nb', '\r\n\r\nHTTP/1.1 200 OK', '"', '\\', '%2e%2e', '\u{1f600}', ' ', '-rf'];
    await client.call(ROUTES.makeDirectory, { params, body: { path: '/tmp/names' } });
    for (const name of names) {
      const query = { path: `/tmp/names/${name.replaceAll('/', '_')}` };
      const entry = await client.call(ROUTES.writeFile, { params, query, body: Buffer.from('x') });
      expect(entry.name).toBe(name.replaceAll('/', '_'));
    }
    const raw = Buffer.from([0x2f, 0x74, 0x6d, 0x70, 0x2f, 0xff, 0xfe]).toString('base64');
    const entry = await client.call(ROUTES.writeFile, {
      ...{ params, query: { pathBase64: raw }, body: Buffer.from('x') },
    });
    expect(entry.nameBase64).toBe('//4=');
    const query = { path: '/tmp/names', limit: 3 };
    const found: string[] = [];
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const page: FilePage = await client.call(ROUTES.listFiles, {
        ...{ params, query: { ...query, ...(cursor && { cursor }) } },
      });
      found.push(...page.entries.map(({ name }) => name));
      cursor = page.cursor;
    }
    expect(found.sort()).toEqual(names.map((name) => name.replaceAll('/', '_')).sort());
    for (const pathBase64 of ['YQ', 'YQ=', 'YR==', ' YQ==', 'YQ==\n', '_-8=', '====', '']) {
      const bad = client.call(ROUTES.statFile, { params, query: { pathBase64 } });
      expect([pathBase64, await codeOf(bad)]).toEqual([pathBase64, 'invalid-argument']);
    }
    for (const cursor of ['A', 'AAAA', 'x'.repeat(512)]) {
      const page = client.call(ROUTES.listFiles, { params, query: { ...query, cursor } });
      expect(await codeOf(page)).toBe('invalid-argument');
    }
  });

  it('that asks thousands of things at a time', async () => {
    const target = formatTarget(ROUTES.statFile, paramsOf(sandbox), { path: '/tmp' });
    const statuses = new Map<string, number>();
    let left = isLong ? 10_000 : 2000;
    const lane = async () => {
      while (left > 0) {
        left -= 1;
        const status = (await answerOf(head(ROUTES.statFile, target))).slice(9, 12) || LOST;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    const lanes = Promise.all(Array.from({ length: isLong ? 1000 : 500 }, lane));
    await checkWell();
    await lanes;
    for (const socket of sockets) socket.destroy();
    // Refused beyond what a sandbox takes at a time; on a busy machine also late, with an old ticket.
    const refusals = ['503', '504', '408', '401', LOST];
    expect([...statuses.keys()].filter((status) => ![...refusals, '200'].includes(status))).toEqual(
      [],
    );
    expect(statuses.get('200')).toBeGreaterThan(100);
    await checkWell();
  }, 300_000);

  it('that uses keys without measure', async () => {
    const { client } = edge;
    const params = paramsOf(sandbox);
    let next = 0;
    const lane = async () => {
      while (next < (isLong ? 200_000 : 1000)) {
        next += 1;
        const body = { path: `/tmp/key-${next % 100}`, createParents: true };
        const idempotencyKey = `flood-${next}`;
        const made = client.call(ROUTES.makeDirectory, { params, body }, { idempotencyKey });
        expect(['done', 'overloaded', 'quota-exceeded']).toContain(await codeOf(made));
      }
    };
    await Promise.all(Array.from({ length: 64 }, lane));
    await checkWell();
  }, 3_600_000);

  it('that attaches and takes nothing of an endless output', async () => {
    const { client } = edge;
    const params = paramsOf(sandbox);
    const body = { shell: 'while :; do echo y; done', waitMs: 0 };
    const { exec } = await client.call(ROUTES.startExec, { params, body });
    const one = { ...params, execId: exec.id };
    const target = formatTarget(ROUTES.attachExec, one, {});
    const upgrade = [
      ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ];
    for (let i = 0; i < 100; i += 1) open(head(ROUTES.attachExec, target, upgrade));
    for (let i = 0; i < 5; i += 1) await checkWell();
    await client.call(ROUTES.signalExec, { params: one, body: { signal: 9 } });
  });

  it('that does everything while its sandbox is stopped', async () => {
    const { client } = edge;
    const victim = await client.call(ROUTES.createSandbox, { body: CREATE });
    const params = paramsOf(victim);
    const slow = async function* () {
      for (let i = 0; i < 200; i += 1) {
        yield Buffer.alloc(64 * KIB);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    const works = Array.from({ length: 20 }, (_, i) => [
      client.call(ROUTES.writeFile, { params, query: { path: `/tmp/w${i}` }, body: slow() }),
      client.call(ROUTES.startExec, { params, body: { shell: 'sleep 60', waitMs: 30_000 } }),
      client.call(ROUTES.statFile, { params, query: { path: '/tmp' } }),
      client.call(
        ROUTES.makeDirectory,
        { params, body: { path: `/tmp/d${i}` } },
        { idempotencyKey: `d${i}` },
      ),
    ]).flat();
    const codes = Promise.all(works.map(codeOf));
    await new Promise((resolve) => setTimeout(resolve, 200));
    const stops = Array.from({ length: 5 }, () =>
      codeOf(client.call(ROUTES.stopSandbox, { params })),
    );
    expect(await Promise.all(stops)).toEqual(stops.map(() => 'done'));
    // In the long form the project has used up its keys above.
    const codesMeant = ['done', 'state-conflict', 'agent-lost', 'unavailable', 'overloaded'];
    if (isLong) codesMeant.push('quota-exceeded');
    for (const code of await codes) expect(codesMeant).toContain(code);
    await until(() => !host.lives().includes(victim.id as SandboxId), 'the end of the sandbox');
    await checkWell();
  });
});
