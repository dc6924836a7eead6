import {
  ATTACH_WINDOW_BYTES,
  type AttachServerMessage,
  decodeAttachData,
  encodeAttachData,
} from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import type { WebSocketChannel, WebSocketMessage } from '@dsec/transport';
import { describe, expect, test } from 'vitest';
import { until } from './aether-peer.ts';
import { context, useExecWorld } from './exec-world.ts';

/** The client's end of a channel that is there in memory. */
interface TestClient {
  readonly channel: WebSocketChannel;
  readonly told: AttachServerMessage[];
  readonly bytes: { stdout: Buffer[]; stderr: Buffer[] };
  /** Acknowledges what comes; false: stops reading after one window. */
  acknowledges: boolean;
  say(message: object | Uint8Array): void;
  leave(): void;
}

function createTestClient(): TestClient {
  const waiting: WebSocketMessage[] = [];
  let wake = () => {};
  let left = false;
  const say = (message: object | Uint8Array) => {
    waiting.push(message instanceof Uint8Array ? message : JSON.stringify(message));
    wake();
  };
  const client: TestClient = {
    ...{ told: [], bytes: { stdout: [], stderr: [] }, acknowledges: true, say },
    leave() {
      left = true;
      wake();
    },
    channel: {
      async send(message: WebSocketMessage) {
        if (left) throw new DsecError('unavailable', 'the client is gone');
        if (typeof message === 'string') {
          client.told.push(JSON.parse(message));
          return;
        }
        const { channel, offset, data } = decodeAttachData(message);
        if (channel === 'stdin') throw new Error('stdin from a server');
        client.bytes[channel].push(Buffer.from(data));
        const upTo = offset + data.byteLength;
        if (client.acknowledges) say({ type: 'ack', channel, offset: upTo });
      },
      async *messages() {
        while (!left) {
          const next = waiting.shift();
          if (next !== undefined) yield next;
          else {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
        }
      },
    } as unknown as WebSocketChannel,
  };
  return client;
}

const textOf = (parts: Buffer[]) => Buffer.concat(parts).toString();

describe('an attached command', () => {
  const world = useExecWorld();
  const signal = new AbortController().signal;
  const start = async (spec: object) => {
    const { execs, entry } = world().edge;
    return (await execs.start(entry, spec, context())).exec;
  };
  const attach = (exec: { id: string }, client: TestClient, query = {}) =>
    world().edge.attach(world().edge.entry, exec.id as never, query, client.channel, signal);

  test('gives all output and then the exit', async () => {
    const exec = await start({ shell: 'echo out; echo err >&2; sleep 0.1; echo more; exit 4' });
    const clients = [createTestClient(), createTestClient(), createTestClient()];
    await Promise.all(clients.map((client) => attach(exec, client)));
    for (const { told, bytes } of clients) {
      expect(textOf(bytes.stdout)).toBe('out\nmore\n');
      expect(textOf(bytes.stderr)).toBe('err\n');
      const types = told.map(({ type }) => type);
      expect(types[0]).toBe('attached');
      expect(types.slice(-3).sort()).toEqual(['end', 'end', 'exit']);
      expect(told.at(-1)).toMatchObject({ exec: { state: 'exited', exit: { exitCode: 4 } } });
    }
    const late = createTestClient();
    await attach(exec, late, { stdoutOffset: 4, stderrOffset: 4 });
    expect(textOf(late.bytes.stdout)).toBe('more\n');
    expect(late.bytes.stderr).toEqual([]);
    expect(late.told.at(-1)?.type).toBe('exit');
  });

  test('stdin is taken, acknowledged, and never twice', async () => {
    const exec = await start({ argv: ['cat'], stdin: true });
    const first = createTestClient();
    const attached = attach(exec, first);
    first.say(encodeAttachData({ channel: 'stdin', offset: 0, data: Buffer.from('hello ') }));
    await until(() => first.told.some((m) => m.type === 'stdin-ack' && m.offset === 6), 'the ack');
    first.leave();
    await attached;
    const second = createTestClient();
    const again = attach(exec, second, { stdoutOffset: 0 });
    await until(() => second.told.length > 0, 'the greeting');
    expect(second.told[0]).toMatchObject({ type: 'attached', stdinOffset: 6 });
    second.say(encodeAttachData({ channel: 'stdin', offset: 0, data: Buffer.from('hello wor') }));
    second.say(encodeAttachData({ channel: 'stdin', offset: 9, data: Buffer.from('ld') }));
    second.say({ type: 'stdin-end', offset: 11 });
    await again;
    expect(textOf(second.bytes.stdout)).toBe('hello world');
  });

  test('a client that does not acknowledge gets a window, and holds up nobody', async () => {
    const exec = await start({ argv: ['head', '-c', '20000000', '/dev/zero'] });
    const slow = createTestClient();
    slow.acknowledges = false;
    const attached = attach(exec, slow);
    const quick = createTestClient();
    await attach(exec, quick);
    expect(quick.told.at(-1)).toMatchObject({
      type: 'exit',
      exec: { stdout: { totalBytes: 2e7 } },
    });
    const got = () => Buffer.concat(slow.bytes.stdout).length;
    expect(got()).toBeGreaterThan(0);
    expect(got()).toBeLessThanOrEqual(ATTACH_WINDOW_BYTES);
    slow.acknowledges = true;
    slow.say({ type: 'ack', channel: 'stdout', offset: got() });
    await attached;
    // What it missed was told, and what it got is all that is kept.
    const lost = slow.told
      .filter((message) => message.type === 'gap')
      .reduce((sum, { offset, nextOffset }) => sum + nextOffset - offset, 0);
    expect(lost).toBeGreaterThan(0);
    expect(got() + lost).toBe(2e7);
  });

  test('signals and sizes go to the command', async () => {
    const exec = await start({
      shell: 'read x; stty size; sleep 60',
      pty: { rows: 5, columns: 6 },
    });
    const client = createTestClient();
    const attached = attach(exec, client);
    client.say({ type: 'resize', rows: 11, columns: 22 });
    client.say(encodeAttachData({ channel: 'stdin', offset: 0, data: Buffer.from('\n') }));
    await until(() => textOf(client.bytes.stdout).includes('11 22'), 'the size');
    client.say({ type: 'signal', signal: 9, scope: 'tree' });
    await attached;
    expect(client.told.at(-1)).toMatchObject({ type: 'exit', exec: { state: 'exited' } });
  });

  test.each<[string, object | Uint8Array]>([
    ['text that is none', { type: 'odd' }],
    ['an ack of what was not sent', { type: 'ack', channel: 'stdout', offset: 999 }],
    ['output', encodeAttachData({ channel: 'stdout', offset: 0, data: Buffer.from('x') })],
  ])('%s from a client ends it with protocol, not the command', async (_, message) => {
    const exec = await start({ shell: 'sleep 0.3; echo fine' });
    const client = createTestClient();
    const attached = attach(exec, client);
    client.say(message);
    await expect(attached).rejects.toMatchObject({ code: 'protocol' });
    expect(client.told.at(-1)).toMatchObject({ type: 'error', error: { code: 'protocol' } });
    const after = createTestClient();
    await attach(exec, after);
    expect(textOf(after.bytes.stdout)).toBe('fine\n');
  });

  test('missing stdin is a conflict that says where to go on', async () => {
    const exec = await start({ argv: ['cat'], stdin: true });
    const client = createTestClient();
    const attached = attach(exec, client);
    client.say(encodeAttachData({ channel: 'stdin', offset: 5, data: Buffer.from('x') }));
    await expect(attached).rejects.toMatchObject({ code: 'conflict', details: { offset: 0 } });
    const { execs, entry } = world().edge;
    await execs.signal(entry, exec.id as never, { signal: 9 }, context());
  });
});
