import type { StreamFrame } from '@dsec/backend';
import { DsecError, type SandboxId } from '@dsec/std';
import type { WebSocketChannel, WebSocketMessage } from '@dsec/transport';
import { describe, expect, it } from 'vitest';
import type { OperationContext } from '../../src/operation.ts';
import { createPorts, type PortsOptions } from '../../src/ports/ports.ts';

const ID = 'sb-s1-e1-aaaaaaaaaaaaaaaa' as SandboxId;
const TRACE = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
const GONE = new DsecError('cancelled', 'the caller is gone');

const stdout = (text: string, end = false) =>
  ({
    ...{ type: 'stdout', stream: 1, epoch: 1, offset: 0, end },
    data: Buffer.from(text),
  }) as StreamFrame;
const answer = (type: string) =>
  ({ type, stream: 1, epoch: 1, offset: 0, fields: {} }) as unknown as StreamFrame;

/** Gives what a test has put in, then waits, as a connection does. An error is thrown. */
function source<T>(items: readonly (T | DsecError)[]) {
  const left = [...items];
  return async (signal?: AbortSignal): Promise<T> => {
    const item = left.shift();
    if (item instanceof DsecError) throw item;
    if (item !== undefined) return item;
    return new Promise((_, reject) => {
      const onAbort = () => reject(signal?.reason);
      if (signal?.aborted) onAbort();
      signal?.addEventListener('abort', onAbort);
    });
  };
}

interface Script {
  /** What the caller says; `null` closes the WebSocket. */
  readonly messages?: readonly (WebSocketMessage | null | DsecError)[];
  readonly frames?: readonly (StreamFrame | DsecError)[];
  readonly signal?: AbortSignal;
  readonly linkError?: DsecError;
}

async function connect({ messages = [], frames = [], signal, linkError }: Script) {
  const sent: unknown[] = [];
  const written: string[] = [];
  const told: string[] = [];
  const closed: DsecError[] = [];
  const held = { now: 0, times: 0 };
  const stream = {
    send: async (type: string, fields: object) => void sent.push([type, fields]),
    receive: source(frames),
    write: async (data: Uint8Array) => void written.push(Buffer.from(data).toString()),
    endInput: async () => void written.push('END'),
    leave: (how: { cancel: boolean }) => void sent.push(['leave', how]),
  };
  const receive = source<WebSocketMessage | null>(messages);
  const channel = {
    receive: async (by?: AbortSignal) => (await receive(by)) ?? undefined,
    send: async (data: Uint8Array) => void told.push(Buffer.from(data).toString() || 'END'),
  } as unknown as WebSocketChannel;
  const ports = createPorts({
    sandboxes: {
      requireRunning: async (id: SandboxId) => ({ id, key: { id, generation: 1 } }),
      hold() {
        held.now += 1;
        held.times += 1;
        return () => {
          held.now -= 1;
        };
      },
    },
    agents: {
      async link() {
        if (linkError !== undefined) throw linkError;
        return { open: () => stream, close: (error: DsecError) => void closed.push(error) };
      },
    },
  } as unknown as PortsOptions);
  const context = { signal: signal ?? new AbortController().signal, traceparent: TRACE };
  const error = await ports.connect(ID, 80, channel, context as unknown as OperationContext).then(
    () => undefined,
    (thrown) => thrown,
  );
  return { error, sent, written, told, closed, held };
}

describe('a port', () => {
  it('is asked for by number alone, and left when it is done', async () => {
    const { error, sent, held } = await connect({ frames: [answer('done')] });
    expect(error).toBeUndefined();
    const trace = Buffer.from(`${'1'.repeat(32)}${'2'.repeat(16)}01`, 'hex');
    expect(sent).toEqual([
      ['port-open', { port: 80, trace }],
      ['leave', { cancel: true }],
    ]);
    expect(held).toEqual({ now: 0, times: 1 });
  });

  it('carries bytes out, and the end of that direction', async () => {
    const frames = [stdout('ab'), stdout(''), stdout('c', true), answer('done')];
    expect((await connect({ frames })).told).toEqual(['ab', 'c', 'END']);
  });

  it('carries bytes in, and the end of that direction', async () => {
    const messages = [Buffer.from('ab'), Buffer.from('c'), Buffer.alloc(0), null];
    const { error, written } = await connect({ messages });
    expect([error, written]).toEqual([undefined, ['ab', 'c', 'END']]);
  });

  it.each([
    ['text', ['text']],
    ['bytes after the end', [Buffer.alloc(0), Buffer.from('x')]],
    ['a second end', [Buffer.alloc(0), Buffer.alloc(0)]],
  ])('takes no %s', async (_, messages) => {
    const { error, sent, held } = await connect({ messages });
    expect(error).toMatchObject({ code: 'invalid-argument' });
    expect(sent.at(-1)).toEqual(['leave', { cancel: true }]);
    expect(held.now).toBe(0);
  });

  it('says what the agent says', async () => {
    const refused = new DsecError('unavailable', 'nothing listens');
    expect((await connect({ frames: [refused] })).error).toBe(refused);
    const own = new DsecError('unauthenticated', 'whatever');
    expect((await connect({ frames: [own] })).error).toMatchObject({ code: 'protocol' });
  });

  it('breaks the link of an agent that answers something else', async () => {
    const { error, closed } = await connect({ frames: [answer('file-entries')] });
    expect(error).toMatchObject({ code: 'protocol' });
    expect(closed).toEqual([error]);
  });

  it('ends with its caller, however it goes', async () => {
    const lost = new DsecError('unavailable', 'the WebSocket was lost');
    expect((await connect({ messages: [lost] })).error).toBe(lost);
    const { error, held } = await connect({ signal: AbortSignal.abort(GONE) });
    expect(error).toBe(GONE);
    expect(held.now).toBe(0);
    const later = new AbortController();
    const connecting = connect({ signal: later.signal });
    setImmediate(() => later.abort(GONE));
    expect((await connecting).error).toBe(GONE);
  });

  it('is in use by nobody when the agent is not there', async () => {
    const lost = new DsecError('agent-lost', 'no agent');
    const { error, held } = await connect({ linkError: lost });
    expect(error).toBe(lost);
    expect(held).toEqual({ now: 0, times: 0 });
  });
});
