import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectUnix, SOCKET_PATH_BYTES_MAX } from '@dsec/transport';
import { afterEach, beforeEach, expect, test } from 'vitest';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'dsec-unix-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function echoAt(directory: string) {
  mkdirSync(directory, { recursive: true });
  const server = createServer((socket) => socket.pipe(socket));
  const before = process.cwd();
  // Bound by its name alone, as the launcher does.
  process.chdir(directory);
  server.listen('echo.sock');
  process.chdir(before);
  await once(server, 'listening');
  return server;
}

test.each([
  ['of a usual length', ['near']],
  ['longer than the kernel takes', ['far'.repeat(30), 'away'.repeat(30)]],
])('a path %s connects, and leaves no descriptor', async (_, parts) => {
  const directory = join(root, ...parts);
  const server = await echoAt(directory);
  const descriptors = () => readdirSync('/proc/self/fd').length;
  const before = descriptors();
  const socket = connectUnix(join(directory, 'echo.sock'), { allowHalfOpen: true });
  socket.end('hello');
  const heard: Buffer[] = [];
  for await (const part of socket) heard.push(part as Buffer);
  expect(Buffer.concat(heard).toString()).toBe('hello');
  socket.destroy();
  server.close();
  await once(server, 'close');
  // The server's own is gone too by now.
  expect(descriptors()).toBeLessThanOrEqual(before);
});

test('a long path whose directory or socket is missing is an error of the socket', async () => {
  const missing = join(root, 'x'.repeat(SOCKET_PATH_BYTES_MAX), 'none.sock');
  const [error] = await once(connectUnix(missing), 'error');
  expect(error).toMatchObject({ code: 'ENOENT' });
  mkdirSync(join(root, 'x'.repeat(SOCKET_PATH_BYTES_MAX)));
  const [later] = await once(connectUnix(missing), 'error');
  expect(later).toMatchObject({ code: 'ENOENT' });
});
