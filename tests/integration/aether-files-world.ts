import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AetherFrame, FileAttributesFields } from '@dsec/protocol';
import { afterAll, beforeAll, expect } from 'vitest';
import {
  type Aether,
  type AetherLink,
  type AetherOptions,
  type Stream,
  startAether,
  unlessError,
} from './aether-peer.ts';

/** Files and ports that have no window of their own begin with this credit. */
export const WINDOW = 65_536;

/** An aether and a directory that it may do anything in. */
export interface World {
  readonly aether: Aether;
  /** A test that breaks it puts another one in its place. */
  link: AetherLink;
  readonly root: string;
}

/** Sets one up for the tests of a group. */
export function useWorld(options: AetherOptions): () => World {
  let world: World;
  beforeAll(async () => {
    const root = mkdtempSync(join(tmpdir(), 'dsec-aether-files-'));
    // Of nobody in particular, so that the users of a session namespace may write there.
    chmodSync(root, 0o777);
    const aether = await startAether(options);
    world = { aether, link: await aether.connect(), root };
  });
  afterAll(async () => {
    await world.aether.stop();
    rmSync(world.root, { recursive: true, force: true });
  });
  return () => world;
}

export function at({ root }: World, name: string): Buffer {
  return Buffer.from(join(root, name));
}

export async function write(
  { link }: World,
  path: Uint8Array,
  bytes: Uint8Array,
  more: object = {},
) {
  const stream = link.open();
  const fields = { path, createParents: false, exclusive: false, ...more };
  stream.send('file-write', { offset: 0, fields });
  return sendBytes(stream, bytes);
}

export async function read({ link }: World, path: Uint8Array, more: object = {}): Promise<Buffer> {
  const stream = link.open();
  stream.send('file-read', { offset: 0, fields: { path, offset: 0, ...more } });
  return takeBytes(stream);
}

export async function list({ link }: World, path: Uint8Array, entriesMax: number) {
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

export async function answerOf(stream: Stream): Promise<AetherFrame> {
  return unlessError(await stream.next());
}

/** Sends all bytes as far as credit goes, handing frames that are not credit to `other`. */
export function sendOnly(stream: Stream, bytes: Uint8Array) {
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

export async function sendBytes(stream: Stream, bytes: Uint8Array) {
  const send = sendOnly(stream, bytes);
  if (bytes.length === 0) stream.send('stdin', { offset: 0, data: bytes, end: true });
  send(WINDOW);
  for (;;) {
    const frame = await answerOf(stream);
    if (frame.type === 'credit') send(frame.offset);
    if (frame.type === 'done') return { bytes: frame.fields.bytes };
  }
}

export async function takeBytes(
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
