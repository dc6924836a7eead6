import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AetherFrame, FileAttributesFields } from '@dsec/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Aether,
  type AetherLink,
  type AetherOptions,
  run,
  type Stream,
  startAether,
  unlessError,
  until,
} from './aether-peer.ts';
import { isRoot } from './linux-support.ts';

describe('files', () => describeFiles({}));
// Needs root: user namespaces of this shape.
describe.skipIf(!isRoot)('files of a session namespace', () => describeFiles({ sessions: true }));

const LONG = process.env.DSEC_TEST_LONG === '1';
const WINDOW = 65_536;

function describeFiles(options: AetherOptions): void {
  let aether: Aether;
  let link: AetherLink;
  let root = '';
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'dsec-aether-files-'));
    // Of nobody in particular, so that the users of a session namespace may write there.
    chmodSync(root, 0o777);
    aether = await startAether(options);
    link = await aether.connect();
  });
  afterAll(async () => {
    // What a session namespace made belongs to ids of its own.
    await aether.stop();
    rmSync(root, { recursive: true, force: true });
  });
  const at = (name: string) => Buffer.from(join(root, name));

  async function write(path: Uint8Array, bytes: Uint8Array, more: object = {}) {
    const stream = link.open();
    const fields = { path, createParents: false, exclusive: false, ...more };
    stream.send('file-write', { offset: 0, fields });
    return sendBytes(stream, bytes);
  }

  async function read(path: Uint8Array, more: object = {}) {
    const stream = link.open();
    stream.send('file-read', { offset: 0, fields: { path, offset: 0, ...more } });
    return takeBytes(stream);
  }

  async function list(path: Uint8Array, entriesMax: number) {
    const names: FileAttributesFields[] = [];
    let cursor: Uint8Array | undefined;
    do {
      const page = await link.ask('file-list', { path, entriesMax, ...(cursor && { cursor }) });
      if (page.type !== 'file-entries') throw new Error(page.type);
      expect(page.fields.entries.length).toBeLessThanOrEqual(entriesMax);
      names.push(...page.fields.entries);
      cursor = page.fields.cursor;
    } while (cursor !== undefined);
    return names;
  }

  test('bytes that were written are read again', async () => {
    const bytes = randomBytes(1_000_000);
    expect((await write(at('a'), bytes)).bytes).toBe(bytes.length);
    expect(readFileSync(at('a')).equals(bytes)).toBe(true);
    expect(statSync(at('a')).mode & 0o7777).toBe(0o644);
    expect((await read(at('a'))).equals(bytes)).toBe(true);
    const middle = await read(at('a'), { offset: 1000, lengthBytes: 500_000 });
    expect(middle.equals(bytes.subarray(1000, 501_000))).toBe(true);
    expect((await read(at('a'), { offset: 5_000_000 })).length).toBe(0);
  });

  test('empty files, modes, parents, and exclusive names', async () => {
    await write(at('p/q/r'), Buffer.alloc(0), { mode: 0o4751, createParents: true });
    expect(statSync(at('p/q/r')).mode & 0o7777).toBe(0o4751);
    await expect(write(at('p/q/r'), Buffer.from('x'), { exclusive: true })).rejects.toMatchObject({
      code: 'already-exists',
    });
    await expect(write(at('no/such'), Buffer.from('x'))).rejects.toMatchObject({
      code: 'not-found',
    });
    await expect(write(at('p'), Buffer.from('x'))).rejects.toMatchObject({
      code: 'invalid-argument',
    });
  });

  test('a file appears when all of its bytes are there, or not at all', async () => {
    await write(at('whole'), Buffer.from('old'));
    const stream = link.open();
    stream.send('file-write', {
      offset: 0,
      fields: { path: at('whole'), createParents: false, exclusive: false },
    });
    stream.send('stdin', { offset: 0, data: Buffer.from('new'), end: false });
    await until(() => readdirSync(root).some((name) => name.startsWith('.dsec-')), 'the new file');
    expect(readFileSync(at('whole'), 'utf8')).toBe('old');
    stream.send('cancel', { offset: 0, fields: {} });
    await expect(stream.next().then(unlessError)).rejects.toMatchObject({ code: 'cancelled' });
    await until(() => !readdirSync(root).some((name) => name.startsWith('.dsec-')), 'no new file');
    expect(readFileSync(at('whole'), 'utf8')).toBe('old');
  });

  test('a link is written through, and stays', async () => {
    await write(at('target'), Buffer.from('1'), { mode: 0o600 });
    symlinkSync('target', at('link'));
    await write(at('link'), Buffer.from('2'));
    expect(lstatSync(at('link')).isSymbolicLink()).toBe(true);
    expect([readFileSync(at('target'), 'utf8'), statSync(at('target')).mode & 0o777]).toEqual([
      '2',
      0o600,
    ]);
  });

  test('names of any bytes', async () => {
    const name = Buffer.concat([
      Buffer.from(`${root}/`),
      Buffer.from([0xff, 0x0a, 0x80, 0x27, 0x20]),
    ]);
    await write(name, Buffer.from('odd'));
    expect((await read(name)).toString()).toBe('odd');
    const entries = await list(Buffer.from(root), 100);
    expect(
      entries.some((entry) => Buffer.from(entry.name).equals(name.subarray(name.length - 5))),
    ).toBe(true);
    await link.ask('file-remove', { path: name, recursive: false });
    expect(existsSync(name)).toBe(false);
  });

  test('attributes, links followed or not', async () => {
    writeFileSync(at('stat'), 'four');
    symlinkSync('stat', at('to-stat'));
    const ask = async (name: string, followSymlinks: boolean) => {
      const frame = await link.ask('file-stat', { path: at(name), followSymlinks });
      if (frame.type !== 'file-attributes') throw new Error(frame.type);
      return frame.fields;
    };
    const status = statSync(at('stat'));
    expect(await ask('to-stat', true)).toMatchObject({
      kind: 'file',
      sizeBytes: 4,
      mode: status.mode & 0o7777,
      links: 1,
    });
    const itself = await ask('to-stat', false);
    expect([itself.kind, Buffer.from(itself.symlinkTarget ?? []).toString()]).toEqual([
      'symlink',
      'stat',
    ]);
    expect(itself.mtimeSeconds).toBeGreaterThan(1_600_000_000);
    await expect(ask('nothing', true)).rejects.toMatchObject({ code: 'not-found' });
  });

  test('a directory page by page, each name once', async () => {
    mkdirSync(at('wide'));
    const wanted = Array.from({ length: 2500 }, (_, i) => `name-${i}`);
    for (const name of wanted) writeFileSync(join(root, 'wide', name), '');
    for (const size of [1024, 333]) {
      const names = (await list(at('wide'), size)).map((entry) =>
        Buffer.from(entry.name).toString(),
      );
      expect(names.sort()).toEqual([...wanted].sort());
    }
    const cursor = Buffer.from('x');
    await expect(
      link.ask('file-list', { path: at('wide'), entriesMax: 5, cursor }),
    ).rejects.toMatchObject({ code: 'invalid-argument' });
  });

  test('directories are made, moved and removed', async () => {
    await link.ask('file-mkdir', { path: at('m/n/o'), createParents: true, mode: 0o750 });
    expect(statSync(at('m/n/o')).mode & 0o7777).toBe(0o750);
    await link.ask('file-mkdir', { path: at('m/n/o'), createParents: true });
    await expect(
      link.ask('file-mkdir', { path: at('m'), createParents: false }),
    ).rejects.toMatchObject({ code: 'already-exists' });
    await link.ask('file-move', { source: at('m/n'), target: at('moved'), replace: false });
    expect(existsSync(at('moved/o'))).toBe(true);
    await expect(
      link.ask('file-move', { source: at('m'), target: at('moved'), replace: false }),
    ).rejects.toMatchObject({ code: 'already-exists' });
    await expect(
      link.ask('file-remove', { path: at('moved'), recursive: false }),
    ).rejects.toMatchObject({ code: 'state-conflict' });
    await link.ask('file-remove', { path: at('moved'), recursive: true });
    expect(existsSync(at('moved'))).toBe(false);
  });

  test('a tree that is deeper than any path is removed', async () => {
    const levels = LONG ? 60_000 : 3000;
    const text = `import os
os.mkdir('${root}/deep'); os.chdir('${root}/deep')
for _ in range(${levels}): os.mkdir('d'); os.chdir('d')
open('end', 'w')`;
    expect((await run(link, ['python3', '-c', text])).exitCode).toBe(0);
    await link.ask('file-remove', { path: at('deep'), recursive: true });
    expect(existsSync(at('deep'))).toBe(false);
  });

  test('nothing waits for a pipe, reads a device, or follows a magic link', async () => {
    await run(link, `mkfifo ${root}/fifo`);
    await expect(read(at('fifo'))).rejects.toMatchObject({ code: 'invalid-argument' });
    await expect(read(Buffer.from('/dev/zero'))).rejects.toMatchObject({
      code: 'invalid-argument',
    });
    await expect(read(Buffer.from('/proc/self/root/etc/passwd'))).rejects.toMatchObject({
      code: 'invalid-argument',
    });
    await expect(read(Buffer.from(root))).rejects.toMatchObject({ code: 'invalid-argument' });
    expect((await read(Buffer.from('/proc/self/comm'))).toString()).toBe('aether-worker\n');
  });

  test('the user’s own rights', async () => {
    const secret = at('secret');
    await write(secret, Buffer.from('s'), { mode: 0o600 });
    await expect(read(secret, { user: 'daemon' })).rejects.toMatchObject({
      code: 'permission-denied',
    });
    expect((await read(secret)).toString()).toBe('s');
    await write(at('of-daemon'), Buffer.from('d'), { user: 'daemon' });
    const owner = await link.ask('file-stat', { path: at('of-daemon'), followSymlinks: true });
    expect(statSync(at('of-daemon')).uid).toBe(options.sessions ? 2 ** 30 + 1 : 1);
    expect(owner.type).toBe('file-attributes');
  });

  test('a hole costs nothing to ask for a part of', async () => {
    writeFileSync(at('hole'), '');
    truncateSync(at('hole'), 2 ** 42);
    const end = await read(at('hole'), { offset: 2 ** 42 - 10 });
    expect([...end]).toEqual(new Array(10).fill(0));
  });

  test('raw streams carry a file both ways, once', async () => {
    const bytes = randomBytes(3_000_000);
    const token = randomBytes(16);
    const upload = link.open();
    upload.send('file-write', {
      offset: 0,
      fields: { path: at('raw'), createParents: false, exclusive: false, rawToken: token },
    });
    await link.ping();
    const up = connect(aether.path);
    up.write(token);
    up.end(bytes);
    expect(await answerOf(upload)).toMatchObject({ type: 'done', fields: { bytes: bytes.length } });
    expect(readFileSync(at('raw')).equals(bytes)).toBe(true);

    const download = link.open();
    download.send('file-read', {
      offset: 0,
      fields: { path: at('raw'), offset: 0, rawToken: token },
    });
    await link.ping();
    const down = connect(aether.path);
    down.write(token);
    const parts: Buffer[] = [];
    for await (const part of down) parts.push(part as Buffer);
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
    expect(await answerOf(download)).toMatchObject({
      type: 'done',
      fields: { bytes: bytes.length },
    });

    const early = link.open();
    const other = randomBytes(16);
    const before = connect(aether.path);
    before.write(other);
    await link.ping();
    early.send('file-read', {
      offset: 0,
      fields: { path: at('raw'), offset: 2_999_990, rawToken: other },
    });
    const rest: Buffer[] = [];
    for await (const part of before) rest.push(part as Buffer);
    expect(Buffer.concat(rest).equals(bytes.subarray(2_999_990))).toBe(true);
    expect((await answerOf(early)).type).toBe('done');

    const again = connect(aether.path);
    again.write(token);
    again.end();
    expect(await new Promise((resolve) => again.on('close', () => resolve('closed')))).toBe(
      'closed',
    );
  });

  test('ports of the loopback, both ways, in frames and raw', async () => {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('data', (chunk) => socket.write(chunk));
      socket.on('end', () => socket.end('bye'));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const port = (server.address() as { port: number }).port;
    const bytes = randomBytes(500_000);
    const stream = link.open();
    stream.send('port-open', { offset: 0, fields: { port } });
    const sending = sendOnly(stream, bytes);
    const got = await takeBytes(stream, sending);
    expect(got.equals(Buffer.concat([bytes, Buffer.from('bye')]))).toBe(true);

    const token = randomBytes(16);
    const raw = link.open();
    raw.send('port-open', { offset: 0, fields: { port, rawToken: token } });
    await link.ping();
    const socket = connect({ path: aether.path, allowHalfOpen: true });
    socket.write(token);
    socket.end('hello ');
    const parts: Buffer[] = [];
    for await (const part of socket) parts.push(part as Buffer);
    expect(Buffer.concat(parts).toString()).toBe('hello bye');
    expect((await answerOf(raw)).type).toBe('done');
    server.close();
    await expect(link.ask('port-open', { port })).rejects.toMatchObject({ code: 'unavailable' });
  });
}

async function answerOf(stream: Stream): Promise<AetherFrame> {
  return unlessError(await stream.next());
}

/** Sends all bytes as far as credit goes, handing frames that are not credit to `other`. */
function sendOnly(stream: Stream, bytes: Uint8Array) {
  let sent = 0;
  return (credit: number) => {
    while (sent < Math.min(credit, bytes.length)) {
      const end = Math.min(credit, bytes.length, sent + WINDOW);
      stream.send('stdin', {
        offset: sent,
        data: bytes.subarray(sent, end),
        end: end === bytes.length,
      });
      sent = end;
    }
  };
}

async function sendBytes(stream: Stream, bytes: Uint8Array) {
  const send = sendOnly(stream, bytes);
  if (bytes.length === 0) stream.send('stdin', { offset: 0, data: bytes, end: true });
  send(WINDOW);
  for (;;) {
    const frame = await answerOf(stream);
    if (frame.type === 'credit') send(frame.offset);
    if (frame.type === 'done') return { bytes: frame.fields.bytes };
  }
}

async function takeBytes(
  stream: Stream,
  send: (credit: number) => void = () => {},
): Promise<Buffer> {
  const parts: Buffer[] = [];
  send(WINDOW);
  for (;;) {
    const frame = await answerOf(stream);
    if (frame.type === 'credit') send(frame.offset);
    if (frame.type === 'done') return Buffer.concat(parts);
    if (frame.type !== 'stdout') continue;
    parts.push(Buffer.from(frame.data));
    const offset = frame.offset + frame.data.byteLength;
    stream.send('credit', { offset: offset + WINDOW, fields: { channel: 'stdout' } });
  }
}
