import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Aether,
  type AetherLink,
  type CommandOptions,
  follow,
  run,
  type Stream,
  startAether,
  startFields,
  unlessError,
} from './aether-peer.ts';
import { isRoot } from './linux-support.ts';

describe('terminals', () => describeTerminals({}));
describe.skipIf(!isRoot)('terminals of a session namespace (needs root)', () =>
  describeTerminals({ sessions: true }),
);

function describeTerminals(options: { sessions?: boolean }): void {
  let aether: Aether;
  let link: AetherLink;
  beforeAll(async () => {
    aether = await startAether(options);
    link = await aether.connect();
  });
  afterAll(() => aether.stop());
  const pty = { rows: 31, columns: 101 };

  function start(text: string, more: CommandOptions = {}) {
    const fields = startFields({ shell: Buffer.from(text), pty, stdinOpen: true, ...more });
    const stream = link.open();
    stream.send('exec-start', { offset: 0, fields });
    return { fields, stream, hear: hearing(stream) };
  }

  test('a terminal of the asked size that follows a resize', async () => {
    const { fields, stream, hear } = start(
      'trap "stty size; exit 3" WINCH; stty size; while :; do sleep 0.05; done',
    );
    await hear('31 101');
    stream.send('resize', { offset: 0, fields: { rows: 50, columns: 132 } });
    await hear('50 132');
    expect((await follow(link, stream, fields)).exitCode).toBe(3);
  });

  test('is one, is the controlling one, and belongs to the user', async () => {
    const text =
      'tty; test -t 0 && test -t 1 && test -t 2 && echo yes > /dev/tty; echo err > /dev/stderr';
    const result = await run(link, text, { pty, user: 'daemon' });
    expect(result.stdout.toString()).toMatch(/^\/dev\/pts\/\d+\r\nyes\r\nerr\r\n$/);
    expect(result.exitCode).toBe(0);
  });

  test('input is echoed, and its end is told', async () => {
    const result = await run(link, 'cat; echo over', { pty, input: 'line\n' });
    expect(result.stdout.toString()).toBe('line\r\nline\r\nover\r\n');
  });

  test('control characters and signals reach the foreground group', async () => {
    const typed = start('trap "echo int" INT; echo ready; sleep 5; exit 4');
    await typed.hear('ready');
    typed.stream.send('stdin', { offset: 0, data: Buffer.from([3]), end: false });
    expect((await follow(link, typed.stream, typed.fields)).exitCode).toBe(4);
    const sent = start('trap "echo term; exit 5" TERM; echo ready; while :; do sleep 0.05; done');
    await sent.hear('ready');
    sent.stream.send('signal', { offset: 0, fields: { signal: 15, scope: 'leader' } });
    expect((await follow(link, sent.stream, sent.fields)).exitCode).toBe(5);
  });

  test('much output, complete to its end', async () => {
    const result = await run(link, 'seq 1 20000', { pty });
    const lines = result.stdout.toString().split('\r\n');
    expect([lines.length, lines[19_999]]).toEqual([20_001, '20000']);
  });

  test('TERM is set', async () => {
    expect((await run(link, 'echo $TERM', { pty })).stdout.toString()).toBe('xterm-256color\r\n');
  });
}

/** Waits until the stream's output holds a text. */
function hearing(stream: Stream) {
  let heard = '';
  return async (text: string) => {
    while (!heard.includes(text)) {
      const frame = unlessError(await stream.next());
      if (frame.type === 'stdout') heard += Buffer.from(frame.data).toString();
    }
  };
}
