import { once } from 'node:events';
import { WINDOW_BYTES_MIN } from '@dsec/protocol';
import { createManualClock, createSeededRandom, systemClock } from '@dsec/std';
import { describe, expect, test } from 'vitest';
import { createBytePipe } from '../src/sim/byte-pipe.ts';
import { createSimFiles } from '../src/sim/files.ts';
import { createInlet } from '../src/sim/inlet.ts';
import { createOutlet } from '../src/sim/outlet.ts';
import { createProcessTable, type SimProcess } from '../src/sim/processes.ts';
import { createRunningTime } from '../src/sim/running-time.ts';

describe('running time', () => {
  test('stands still while frozen, and sleepers with it', async () => {
    const clock = createManualClock();
    const time = createRunningTime(clock);
    let isAwake = false;
    const sleeping = time.sleep(100).then(() => {
      isAwake = true;
    });
    clock.advance(60);
    time.freeze();
    clock.advance(1000);
    await Promise.resolve();
    expect([time.nowMs(), isAwake]).toEqual([60, false]);
    time.thaw();
    await new Promise((resolve) => setImmediate(resolve));
    expect(isAwake).toBe(false);
    clock.advance(40);
    await sleeping;
    expect(time.nowMs()).toBe(100);
  });

  test('a sleep that is given up', async () => {
    const time = createRunningTime(createManualClock());
    time.freeze();
    const giveUp = new AbortController();
    const sleeping = time.sleep(100, giveUp.signal);
    giveUp.abort(new Error('enough'));
    await expect(sleeping).rejects.toThrow('enough');
  });
});

describe('outlet', () => {
  const options = { windowBytes: WINDOW_BYTES_MIN, keeps: true, onReady: () => {} };

  test('keeps what is not acknowledged, at most one window', async () => {
    const outlet = createOutlet(options);
    const bytes = createSeededRandom(1).bytes(3 * WINDOW_BYTES_MIN);
    let isWritten = false;
    const writing = outlet.write(bytes).then(() => {
      isWritten = true;
    });
    const parts: Uint8Array[] = [];
    while (!isWritten) {
      const piece = outlet.take();
      if (piece === undefined) {
        outlet.acknowledge(outlet.head);
        outlet.grant(outlet.head + WINDOW_BYTES_MIN);
        await new Promise((resolve) => setImmediate(resolve));
        continue;
      }
      expect(outlet.head - outlet.base).toBeLessThanOrEqual(WINDOW_BYTES_MIN);
      parts.push(piece.data);
    }
    await writing;
    outlet.end();
    for (let piece = outlet.take(); piece !== undefined; piece = outlet.take()) {
      parts.push(piece.data);
    }
    expect(outlet.isDone).toBe(true);
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
  });

  test('goes on from any kept offset, and refuses others', async () => {
    const outlet = createOutlet(options);
    await outlet.write(Buffer.from('0123456789'));
    outlet.take();
    outlet.acknowledge(4);
    expect([outlet.resume(3), outlet.resume(11)]).toEqual([false, false]);
    expect(outlet.resume(6)).toBe(true);
    expect(Buffer.from(outlet.take()?.data ?? []).toString()).toBe('6789');
    expect(() => outlet.acknowledge(11)).toThrow(expect.objectContaining({ code: 'protocol' }));
  });

  test('what is written after the end is dropped', async () => {
    const outlet = createOutlet(options);
    outlet.end();
    await outlet.write(new Uint8Array(10 * WINDOW_BYTES_MIN));
    expect(outlet.take()).toEqual({ offset: 0, data: Buffer.alloc(0), end: true });
  });
});

describe('inlet', () => {
  test('gives credit for what was read, and acknowledges what was taken', async () => {
    const inlet = createInlet(true, () => {});
    inlet.take(0, new Uint8Array(WINDOW_BYTES_MIN), false);
    expect(inlet.answer()).toEqual({ type: 'ack', offset: WINDOW_BYTES_MIN });
    expect(inlet.answer()).toBeUndefined();
    expect((await inlet.read())?.length).toBe(WINDOW_BYTES_MIN);
    expect(inlet.answer()).toEqual({ type: 'credit', offset: 2 * WINDOW_BYTES_MIN });
    inlet.take(WINDOW_BYTES_MIN, Buffer.from('end'), true);
    expect(Buffer.from((await inlet.read()) ?? []).toString()).toBe('end');
    expect(await inlet.read()).toBeUndefined();
    inlet.take(WINDOW_BYTES_MIN + 3, new Uint8Array(0), true);
    const more = () => inlet.take(WINDOW_BYTES_MIN + 3, new Uint8Array(1), true);
    expect(more).toThrow(expect.objectContaining({ code: 'protocol' }));
  });

  test.each([
    ['a gap', 1, 10],
    ['more than the credit', 0, WINDOW_BYTES_MIN + 1],
  ])('%s is a violation', (_, offset, length) => {
    const inlet = createInlet(true, () => {});
    const broken = expect.objectContaining({ code: 'protocol' });
    expect(() => inlet.take(offset, new Uint8Array(length), false)).toThrow(broken);
  });

  test('nobody reads: the rest is taken and dropped', () => {
    const inlet = createInlet(true, () => {});
    inlet.close();
    inlet.take(0, new Uint8Array(WINDOW_BYTES_MIN), false);
    inlet.answer();
    expect(inlet.answer()).toEqual({ type: 'credit', offset: 2 * WINDOW_BYTES_MIN });
  });
});

describe('processes', () => {
  const open = () =>
    createProcessTable({
      time: createRunningTime(systemClock),
      memoryBytesMax: 1_000_000,
      pidsMax: 3,
    });

  test('end with a code, by a signal, or for want of memory', async () => {
    const table = open();
    const tree = new Set<SimProcess>();
    const coded = table.start('a', tree, async () => 300);
    const signalled = table.start('b', tree, ({ sleep }) => sleep(60_000).then(() => 0));
    const hungry = table.start('c', tree, ({ allocate }) => allocate(2_000_000).then(() => 0));
    expect(() => table.start('d', tree, async () => 0)).toThrow('3 processes');
    signalled.signal(15);
    expect(await Promise.all([coded.ended, signalled.ended, hungry.ended])).toEqual([
      { exitCode: 44 },
      { signal: 15 },
      { signal: 9 },
    ]);
    expect([table.count, tree.size, table.memoryBytes, table.oomKills]).toEqual([0, 0, 0, 1]);
  });

  test('handle, ignore, stop and go on', async () => {
    const table = open();
    const heard: string[] = [];
    const process = table.start('a', new Set(), async ({ onSignal, sleep }) => {
      onSignal(15, undefined);
      onSignal(10, () => heard.push('10'));
      await sleep(20);
      return 1;
    });
    await new Promise((resolve) => setImmediate(resolve));
    for (const number of [19, 15, 10]) process.signal(number);
    const first = await Promise.race([process.ended, systemClock.sleep(60).then(() => 'stopped')]);
    expect([first, heard]).toEqual(['stopped', []]);
    process.signal(18);
    expect(await process.ended).toEqual({ exitCode: 1 });
    expect(heard).toEqual(['10']);
  });
});

describe('files', () => {
  const open = () =>
    createSimFiles({ clock: createManualClock(1_700_000_000_500), bytesMax: 1000, inodesMax: 20 });
  const refusal = (code: string) => expect.objectContaining({ code });

  test('links are followed, and lead nowhere out', () => {
    const files = open();
    files.write('/tmp/target', Buffer.from('1'), { mode: 0o600 });
    files.symlink('target', '/tmp/link');
    files.symlink('../../../..', '/tmp/up');
    files.symlink('/tmp/loop', '/tmp/loop');
    files.write('/tmp/link', Buffer.from('22'));
    expect(Buffer.from(files.read('/tmp/target')).toString()).toBe('22');
    expect(files.stat('/tmp/link', false)).toMatchObject({
      kind: 'symlink',
      symlinkTarget: Buffer.from('target'),
    });
    expect(files.stat('/tmp/up/tmp/target', true)).toMatchObject({ mode: 0o600, sizeBytes: 2 });
    expect(() => files.read('/tmp/loop')).toThrow(refusal('invalid-argument'));
  });

  test('what the disk holds is bounded, and counted', () => {
    const files = open();
    const before = [files.usedBytes, files.usedInodes];
    files.mkdir('/tmp/a/b', { createParents: true });
    files.write('/tmp/a/b/c', new Uint8Array(900));
    expect(() => files.write('/tmp/d', new Uint8Array(200))).toThrow(refusal('storage-full'));
    files.write('/tmp/a/b/c', new Uint8Array(10));
    files.write('/tmp/d', new Uint8Array(200));
    const fill = () => {
      for (let file = 0; file < 20; file += 1) files.write(`/tmp/${file}`, new Uint8Array(0));
    };
    expect(fill).toThrow(refusal('storage-full'));
    for (const { name } of files.list('/tmp')) {
      files.remove(`/tmp/${Buffer.from(name).toString('latin1')}`, true);
    }
    expect([files.usedBytes, files.usedInodes]).toEqual(before);
  });

  test('a directory does not move into itself, nor over a full one', () => {
    const files = open();
    files.mkdir('/tmp/a/b', { createParents: true });
    files.mkdir('/tmp/c/d', { createParents: true });
    const into = () => files.move('/tmp/a', '/tmp/a/b/e', false);
    expect(into).toThrow(refusal('invalid-argument'));
    expect(() => files.move('/tmp/a', '/tmp/c', true)).toThrow(refusal('state-conflict'));
    files.move('/tmp/a', '/tmp/c/d', true);
    expect(files.stat('/tmp/c/d/b', true).kind).toBe('directory');
  });

  test('rights of a user', () => {
    const files = open();
    files.write('/tmp/secret', Buffer.from('s'), { mode: 0o600 });
    const daemon = { uid: 1, gid: 1 };
    expect(() => files.read('/tmp/secret', daemon)).toThrow(refusal('permission-denied'));
    files.write('/tmp/own', Buffer.from('o'), { mode: 0o400, user: daemon });
    expect(Buffer.from(files.read('/tmp/own', daemon)).toString()).toBe('o');
  });
});

describe('byte pipe', () => {
  test('has backpressure and proper ends', async () => {
    const { host, agent } = createBytePipe(systemClock);
    const bytes = createSeededRandom(1).bytes(1_000_000);
    host.end(bytes);
    const parts: Buffer[] = [];
    agent.on('data', (part) => parts.push(part));
    await once(agent, 'end');
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
    const closed = once(host, 'close');
    agent.end('bye');
    const [answer] = await once(host, 'data');
    expect(String(answer)).toBe('bye');
    await closed;
  });

  test('an end that is destroyed breaks the other', async () => {
    const { host, agent } = createBytePipe(systemClock);
    host.resume();
    const broken = once(host, 'error').catch((error) => [error]);
    agent.destroy();
    expect((await broken)[0]).toMatchObject({ code: 'ECONNRESET' });
  });
});
