import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LAUNCHER_FRAMES, type LauncherFrame } from '@dsec/protocol';
import { digestOfHex } from '@dsec/std';
import { createFramedChannel, type FramedChannel } from '@dsec/transport';
import { afterEach, describe, expect, it } from 'vitest';
import { connectLauncher, type LauncherClientOptions } from '../src/index.ts';

type Channel = FramedChannel<LauncherFrame>;
/** The frames that answer one, without what every answer repeats. */
type Answer = (frame: LauncherFrame, channel: Channel) => readonly Partial<LauncherFrame>[];

const open: { server: Server; directory: string; channels: Channel[] }[] = [];
afterEach(async () => {
  for (const { server, directory, channels } of open.splice(0)) {
    for (const channel of channels) channel.close();
    await new Promise((resolve) => server.close(resolve));
    rmSync(directory, { recursive: true });
  }
});

const instance = new Uint8Array(16).fill(7);
const welcome: Answer = (frame) =>
  frame.type === 'hello'
    ? [
        {
          type: 'welcome',
          fields: { nonce: frame.fields.nonce, version: 1, launcherVersion: '0.1.0', instance },
        },
      ]
    : [];

/** A launcher that says what the test wants, to whatever comes after the hello. */
async function fakeLauncher(answer: Answer, hello: Answer = welcome) {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-client-'));
  const socketPath = join(directory, 'sock');
  const channels: Channel[] = [];
  const server = createServer((socket) => {
    const channel = createFramedChannel(socket, { protocol: LAUNCHER_FRAMES, side: 'server' });
    channels.push(channel);
    void serve(channel, (frame) => (frame.type === 'hello' ? hello : answer)(frame, channel));
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  open.push({ server, directory, channels });
  const connectTo = (options: Partial<LauncherClientOptions> = {}) =>
    connectLauncher({ socketPath, edgeId: 'e1', epoch: 3, ...options });
  return { connect: connectTo, channels };
}

async function serve(channel: Channel, answer: (frame: LauncherFrame) => ReturnType<Answer>) {
  try {
    for await (const frame of channel.frames()) {
      for (const part of answer(frame)) {
        const { stream, epoch } = frame;
        await channel.send({ stream, epoch, offset: 0, ...part } as LauncherFrame);
      }
    }
  } catch {
    // The test closed it.
  }
}

const key = { name: 'a', generation: 1 };
const done: Answer = () => [{ type: 'done', fields: {} }];

describe('connectLauncher', () => {
  it('says hello with its epoch, and tells who answered', async () => {
    const seen: LauncherFrame[] = [];
    const { connect } = await fakeLauncher(done, (frame, channel) => {
      seen.push(frame);
      return welcome(frame, channel);
    });
    const client = await connect();
    expect(client.instance).toEqual(instance);
    expect(client.launcherVersion).toBe('0.1.0');
    expect(seen).toMatchObject([{ type: 'hello', epoch: 3, fields: { edgeId: 'e1' } }]);
  });

  it('fails with the reason of the launcher', async () => {
    const { connect } = await fakeLauncher(done, () => [
      { type: 'error', fields: { code: 'conflict', message: 'a newer edge' } },
    ]);
    await expect(connect()).rejects.toMatchObject({ code: 'conflict' });
  });

  it('does not take an answer to another hello', async () => {
    const nonce = new Uint8Array(16);
    const { connect } = await fakeLauncher(done, () => [
      { type: 'welcome', fields: { nonce, version: 1, launcherVersion: 'x', instance } },
    ]);
    await expect(connect()).rejects.toMatchObject({ code: 'protocol' });
  });

  it('is unavailable where nobody listens', async () => {
    const options = { socketPath: '/nonexistent/sock', edgeId: 'e1', epoch: 1 };
    await expect(connectLauncher(options)).rejects.toMatchObject({ code: 'unavailable' });
  });
});

describe('a client of the launcher', () => {
  it('matches answers to requests, in whatever order they come', async () => {
    const held: LauncherFrame[] = [];
    const { connect } = await fakeLauncher((frame) => {
      held.push(frame);
      if (held.length < 3) return [];
      return held.toReversed().map(({ stream, ...request }) => {
        const { name } = request.fields as { name: string };
        return name === 'b'
          ? { type: 'error', stream, fields: { code: 'not-found', message: 'no b' } }
          : { type: 'done', stream, fields: {} };
      }) as ReturnType<Answer>;
    });
    const client = await connect();
    const kill = (name: string) => client.kill({ name, generation: 1 });
    const outcomes = await Promise.allSettled([kill('a'), kill('b'), kill('c')]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('tells the step and errno of a failure', async () => {
    const fields = { code: 'storage-full', message: 'no space', errnoValue: 28, step: 'upper' };
    const { connect } = await fakeLauncher(() => [{ type: 'error', fields }]);
    const client = await connect();
    await expect(client.release(key)).rejects.toMatchObject({
      code: 'storage-full',
      details: { step: 'upper', errno: 28 },
    });
  });

  it('reads every page of a list', async () => {
    const digests = ['a', 'b', 'c'].map((letter) => digestOfHex(letter.repeat(64)));
    const { connect } = await fakeLauncher((frame) => {
      if (frame.type !== 'layer-list') return [];
      const at =
        frame.fields.after === undefined ? 0 : digests.indexOf(frame.fields.after as never) + 1;
      const layers = [{ layerId: digests[at] ?? '', users: at }];
      return [{ type: 'layers-listed', fields: { layers, more: at < 2 } }];
    });
    const client = await connect();
    expect((await client.listLayers()).map(({ layerId }) => layerId)).toEqual(digests);
  });

  it('hears of what ended', async () => {
    const { connect } = await fakeLauncher(() => [
      { type: 'exited', stream: 0, fields: { ...key, exitCode: 3, oomKilled: false } },
      { type: 'done', fields: {} },
    ]);
    const exited: unknown[] = [];
    const client = await connect({ onExited: (message) => exited.push(message) });
    await client.kill(key);
    expect(exited).toMatchObject([{ ...key, exitCode: 3 }]);
  });

  it('ends what waits when the connection is lost', async () => {
    const { connect, channels } = await fakeLauncher(() => []);
    const client = await connect();
    const waiting = client.kill(key);
    await new Promise((resolve) => setTimeout(resolve, 20));
    channels[0]?.close();
    await expect(waiting).rejects.toMatchObject({ code: 'unavailable' });
    expect((await client.closed).code).toBe('unavailable');
    await expect(client.kill(key)).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('lets a caller go, and still takes the answer', async () => {
    const { connect, channels } = await fakeLauncher((frame) =>
      frame.type === 'kill' ? [] : [{ type: 'done', fields: {} }],
    );
    const client = await connect();
    const caller = new AbortController();
    const waiting = client.kill(key, caller.signal);
    caller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'cancelled' });
    await channels[0]?.send({ type: 'done', stream: 1, epoch: 3, offset: 0, fields: {} });
    await client.release(key);
  });

  it('closes a connection that answers what was not asked', async () => {
    const { connect } = await fakeLauncher(() => [
      { type: 'listed', fields: { objects: [], more: false } },
    ]);
    const client = await connect();
    const kill = client.kill(key);
    await expect(kill).rejects.toMatchObject({ code: 'protocol' });
    expect((await client.closed).code).toBe('protocol');
  });
});
