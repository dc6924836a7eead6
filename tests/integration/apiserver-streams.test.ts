/** Very many followers of events who hear nothing for long: each costs little, and all hear what comes. */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../e2e/start-server.ts';

const COUNT = process.env.DSEC_TEST_LONG === '1' ? 10_000 : 400;
const AT_ONCE = 50;
/** Of the apiserver, for one follower: its connection, request and place. */
const BYTES_MAX = 96 * 1024;

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ logLevel: 'error' });
}, 120_000);
afterAll(() => server?.stop(), 60_000);

const residentBytes = (pid: number) =>
  1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
const descriptors = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

interface Stream {
  readonly socket: Socket;
  /** Resolves when the text has come. */
  heard(text: string): Promise<void>;
}

async function openStream(): Promise<Stream> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  let seen = '';
  const wakes = new Set<() => void>();
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    seen += chunk;
    for (const wake of wakes) wake();
  });
  socket.on('error', () => {});
  const heard = (text: string) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!seen.includes(text)) return;
        wakes.delete(look);
        resolve();
      };
      wakes.add(look);
      look();
    });
  const lines = ['GET /v1/events HTTP/1.1', 'host: localhost'];
  socket.write([...lines, `authorization: Bearer ${server.apiKey}`, '', ''].join('\r\n'));
  await heard(': connected');
  return { socket, heard };
}

test(`${COUNT} idle followers`, async () => {
  const { pid } = server.apiserver;
  const warm = await Promise.all(Array.from({ length: AT_ONCE }, openStream));
  const [bytesBefore, filesBefore] = [residentBytes(pid), descriptors(pid)];
  const streams: Stream[] = [];
  while (streams.length < COUNT) {
    streams.push(...(await Promise.all(Array.from({ length: AT_ONCE }, openStream))));
  }
  const each = (residentBytes(pid) - bytesBefore) / COUNT;
  process.stderr.write(`${COUNT} followers: ${Math.round(each / 1024)} KiB each\n`);
  expect(each).toBeLessThan(BYTES_MAX);
  // One connection to the edge serves them all.
  expect(descriptors(pid) - filesBefore).toBeLessThan(COUNT + 20);

  const reply = await fetch(`${server.url}/v1/sandboxes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ layers: [server.layer] }),
  });
  expect(reply.status).toBe(201);
  const { id } = (await reply.json()) as { id: string };
  await Promise.all(streams.map(({ heard }) => heard(id)));

  for (const { socket } of [...warm, ...streams]) socket.destroy();
  await Promise.all(streams.map(({ socket }) => socket.closed || once(socket, 'close')));
  for (let left = COUNT; left > 20; ) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    left = descriptors(pid) - filesBefore;
  }
}, 300_000);
