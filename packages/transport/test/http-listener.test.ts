import { lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listen } from '../src/http-listener.ts';

let place = '';
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'dsec-listener-'));
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

describe('listen at a unix socket', () => {
  it('lets nobody else connect, from the first moment', async () => {
    const socketPath = join(place, 'socket');
    const server = createServer();
    const modes: (number | undefined)[] = [];
    const look = () => modes.push(lstatSync(socketPath, { throwIfNoEntry: false })?.mode);
    const before = process.umask(0);
    try {
      // The kernel's listen(2) has been called by then, and a client could connect.
      server.once('listening', look);
      await listen(server, { socketPath });
    } finally {
      process.umask(before);
    }
    look();
    expect(modes.filter((mode) => mode !== undefined && (mode & 0o077) !== 0)).toEqual([]);
    expect(readdirSync(place)).toEqual(['socket']);
    await new Promise((resolve) => server.close(resolve));
    expect(readdirSync(place)).toEqual([]);
  });

  it('does not take the name of a live server, nor remove one that is not its own', async () => {
    const socketPath = join(place, 'socket');
    const [first, second] = [createServer(), createServer()];
    await listen(first, { socketPath });
    const refusal = expect.objectContaining({ code: 'unavailable' });
    await expect(listen(second, { socketPath })).rejects.toThrow(refusal);
    expect(second.listening).toBe(false);
    expect(readdirSync(place)).toEqual(['socket']);
    rmSync(socketPath);
    writeFileSync(socketPath, 'kept');
    await new Promise((resolve) => first.close(resolve));
    expect(readdirSync(place)).toEqual(['socket']);
  });

  it('says when the path is too long for a socket', async () => {
    const socketPath = join(place, 'x'.repeat(100));
    const refusal = expect.objectContaining({ code: 'invalid-argument' });
    await expect(listen(createServer(), { socketPath })).rejects.toThrow(refusal);
  });
});
