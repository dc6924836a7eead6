import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { ROUTES } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import { describe, expect, test } from 'vitest';
import { until } from './aether-peer.ts';
import { type EdgeWorld, SANDBOX, useEdge } from './edge-http-world.ts';

const params = { sandboxId: SANDBOX };
const world = useEdge();

const path = (name: string) => join(world().root, name);

async function read(query: object): Promise<Buffer> {
  const reply = await world().call(ROUTES.readFile, { params, query });
  const parts: Uint8Array[] = [];
  for await (const part of reply.body) parts.push(part);
  return Buffer.concat(parts);
}

async function* slices(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe.each([
  ['raw streams', true],
  ['frames', false],
])('files by %s', (_, raw) => {
  test('are written and read, whole and in part', async () => {
    world().raw = raw;
    for (const size of [0, 1, 70_000, 5_000_000]) {
      const bytes = randomBytes(size);
      const query = { path: `whole-${raw}-${size}` };
      const entry = await world().call(ROUTES.writeFile, { params, query, body: bytes });
      expect(entry).toMatchObject({ name: query.path, kind: 'file', sizeBytes: size });
      expect(readFileSync(path(query.path)).equals(bytes)).toBe(true);
      const body = slices(bytes, 50_001);
      await world().call(ROUTES.writeFile, { params, query: { ...query, mode: 0o640 }, body });
      expect(readFileSync(path(query.path)).equals(bytes)).toBe(true);
      expect(statSync(path(query.path)).mode & 0o7777).toBe(0o640);
      expect((await read(query)).equals(bytes)).toBe(true);
      const part = await read({ ...query, offset: 1000, lengthBytes: 600_000 });
      expect(part.equals(bytes.subarray(1000, 601_000))).toBe(true);
      expect((await read({ ...query, offset: size + 5 })).length).toBe(0);
    }
  });

  test('an upload that breaks off leaves the old file, and nothing else', async () => {
    world().raw = raw;
    const name = `kept-${raw}`;
    writeFileSync(path(name), 'old');
    const stop = new AbortController();
    const body = (async function* () {
      yield Buffer.alloc(400_000);
      await until(() => temporaries(world()).length === 1, 'the new file');
      stop.abort();
      await new Promise((resolve) => setTimeout(resolve, 100));
      yield Buffer.alloc(1);
    })();
    await expect(
      world().call(
        ROUTES.writeFile,
        { params, query: { path: name }, body },
        { signal: stop.signal },
      ),
    ).rejects.toMatchObject({ code: 'cancelled' });
    await until(() => temporaries(world()).length === 0, 'the end of the new file');
    expect(readFileSync(path(name), 'utf8')).toBe('old');
  });

  test('what the agent refuses comes as its error', async () => {
    world().raw = raw;
    const big = Buffer.alloc(3 * MIB);
    mkdirSync(path(`dir-${raw}`));
    const write = (query: object, body: Uint8Array) =>
      world().call(ROUTES.writeFile, { params, query, body });
    for (const body of [Buffer.from('x'), big]) {
      await expect(write({ path: 'no/such/name' }, body)).rejects.toMatchObject({
        code: 'not-found',
      });
      await expect(write({ path: `dir-${raw}` }, body)).rejects.toMatchObject({
        code: 'invalid-argument',
      });
    }
    await expect(write({ path: '/proc/sys/kernel/ostype' }, big)).rejects.toThrow();
    await expect(read({ path: 'nothing' })).rejects.toMatchObject({ code: 'not-found' });
    await expect(read({ path: `dir-${raw}` })).rejects.toMatchObject({ code: 'invalid-argument' });
    writeFileSync(path('there'), 'x');
    await expect(write({ path: 'there', exclusive: true }, big)).rejects.toMatchObject({
      code: 'already-exists',
    });
  });

  test('a large file goes through in constant memory', { timeout: 120_000 }, async () => {
    world().raw = raw;
    const name = `large-${raw}`;
    const fd = openSync(path(name), 'w');
    writeSync(fd, 'begin');
    ftruncateSync(fd, 2048 * MIB);
    writeSync(fd, 'end', 2048 * MIB - 3);
    closeSync(fd);
    // Frames carry less at a time, and their limit is the same for every length.
    const lengthBytes = raw ? 2048 * MIB : 256 * MIB;
    const offset = 2048 * MIB - lengthBytes;
    const before = process.memoryUsage().rss;
    let most = 0;
    let received = 0;
    let parts = 0;
    let last: Uint8Array = new Uint8Array(0);
    const reply = await world().call(ROUTES.readFile, {
      ...{ params, query: { path: name, offset } },
    });
    expect(reply.headers).toEqual({
      'dsec-offset': String(offset),
      'dsec-size-bytes': String(2048 * MIB),
    });
    for await (const part of reply.body) {
      received += part.byteLength;
      last = part;
      parts += 1;
      if (parts % 256 === 0) most = Math.max(most, process.memoryUsage().rss);
    }
    expect(received).toBe(lengthBytes);
    expect(Buffer.from(last).subarray(-3).toString()).toBe('end');
    expect(most - before).toBeLessThan(200 * MIB);
  });
});

test('200 MB of real bytes come back as they went in', { timeout: 120_000 }, async () => {
  world().raw = true;
  const block = randomBytes(MIB);
  const sent = createHash('sha256');
  const body = (async function* () {
    for (let i = 0; i < 200; i += 1) {
      block.writeUInt32LE(i, 0);
      sent.update(block);
      yield Buffer.from(block);
    }
  })();
  const entry = await world().call(ROUTES.writeFile, { params, query: { path: 'real' }, body });
  expect(entry.sizeBytes).toBe(200 * MIB);
  const received = createHash('sha256');
  const reply = await world().call(ROUTES.readFile, { params, query: { path: 'real' } });
  for await (const part of reply.body) received.update(part);
  expect(received.digest('hex')).toBe(sent.digest('hex'));
});

test('a sparse file of 8 EiB is shown as far as numbers go, and read', async () => {
  const directory = mkdtempSync('/dev/shm/dsec-edge-http-');
  try {
    const name = join(directory, 'sparse');
    execFileSync('truncate', ['-s', '9223372036854775807', name]);
    const query = { path: name };
    const sizeBytes = Number.MAX_SAFE_INTEGER;
    expect(await world().call(ROUTES.statFile, { params, query })).toMatchObject({ sizeBytes });
    const page = await world().call(ROUTES.listFiles, { params, query: { path: directory } });
    expect(page.entries).toMatchObject([{ name: 'sparse', sizeBytes }]);
    const part = await read({ ...query, offset: sizeBytes - 10, lengthBytes: 10 });
    expect(part.equals(Buffer.alloc(10))).toBe(true);
    const reply = await world().call(ROUTES.readFile, { params, query });
    let bytes = 0;
    for await (const chunk of reply.body) {
      bytes += chunk.byteLength;
      if (bytes > 10 * MIB) break;
    }
    expect((await read({ path: name, lengthBytes: 5 })).length).toBe(5);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('names of any bytes', async () => {
  const odd = Buffer.concat([
    Buffer.from(`${world().root}/`),
    Buffer.from([0xff, 0x0a, 0x80, 0x20]),
  ]);
  const query = { pathBase64: odd.toString('base64') };
  const entry = await world().call(ROUTES.writeFile, { params, query, body: Buffer.from('odd') });
  expect(entry.nameBase64).toBe(Buffer.from([0xff, 0x0a, 0x80, 0x20]).toString('base64'));
  expect((await read(query)).toString()).toBe('odd');
  const page = await world().call(ROUTES.listFiles, { params, query: { path: '.', limit: 1000 } });
  expect(page.entries.map(({ nameBase64 }) => nameBase64)).toContain(entry.nameBase64);
  const key = { idempotencyKey: 'remove-odd' };
  await world().call(ROUTES.removeFile, { params, query }, key);
  await world().call(ROUTES.removeFile, { params, query }, key);
  await expect(world().call(ROUTES.removeFile, { params, query })).rejects.toMatchObject({
    code: 'not-found',
  });
});

test('a directory page by page; made, moved, removed', async () => {
  const body = { path: 'many/deep', createParents: true, mode: 0o700 };
  expect(await world().call(ROUTES.makeDirectory, { params, body })).toMatchObject({
    ...{ name: 'deep', kind: 'directory', mode: 0o700 },
  });
  const wanted = Array.from({ length: 700 }, (_, i) => `f${i}`).sort();
  for (const name of wanted) writeFileSync(path(`many/deep/${name}`), name);
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const query = { path: 'many/deep', limit: 99, ...(cursor === undefined ? {} : { cursor }) };
    const page = await world().call(ROUTES.listFiles, { params, query });
    names.push(...page.entries.map(({ name }) => name));
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect(names.sort()).toEqual(wanted);
  const move = { source: 'many/deep', target: 'moved' };
  expect(await world().call(ROUTES.moveFile, { params, body: move })).toBeUndefined();
  expect(readdirSync(path('moved')).length).toBe(700);
  symlinkSync('moved', path('link'));
  const link = { path: 'link', followSymlinks: false };
  expect(await world().call(ROUTES.statFile, { params, query: link })).toMatchObject({
    ...{ kind: 'symlink', symlinkTarget: 'moved' },
  });
  const remove = (query: object) => world().call(ROUTES.removeFile, { params, query } as never);
  await expect(remove({ path: 'moved' })).rejects.toMatchObject({ code: 'state-conflict' });
  await remove({ path: 'moved', recursive: true });
  expect(readdirSync(world().root)).not.toContain('moved');
});

function temporaries({ root }: EdgeWorld): string[] {
  return readdirSync(root).filter((name) => name.startsWith('.dsec-'));
}
