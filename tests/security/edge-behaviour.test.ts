/** What commands do on real containers, asked of an edge: what the seam's own suite cannot see. */
import { createHash } from 'node:crypto';
import { decodeAttachData, encodeAttachData, ROUTES } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../integration/launcher-world.ts';
import { withBox } from './rows.ts';
import {
  type Box,
  bytesOf,
  context,
  openSecurityWorld,
  type SecurityWorld,
} from './security-world.ts';

const isRoot = process.getuid?.() === 0;
const FAILED_TO_START = { state: 'failed' };

describe.skipIf(!isRoot)('commands of an edge on containers (needs root)', () => {
  let world: SecurityWorld;
  let box: Box;

  beforeAll(async () => {
    world = await openSecurityWorld();
    box = await world.make({ pidsMax: 1024, memoryBytes: 512 * MIB });
  });

  afterAll(async () => {
    expect((await world?.close()) ?? []).toEqual([]);
  });

  it('ends with its leader, though a child holds its outputs', async () => {
    const { exec, stdout } = await box.run('sleep 600 & echo early; exit 5');
    expect(exec.exit).toMatchObject({ exitCode: 5 });
    expect(stdout).toBe('early\n');
  });

  it('gives 100 MB without a newline: all counted, head and tail kept', async () => {
    const spec = { outputBytesMax: MIB };
    const { exec } = await box.run('head -c 100000000 /dev/zero | tr "\\000" x', spec);
    expect(exec.exit).toMatchObject({ exitCode: 0 });
    expect(exec.stdout).toMatchObject({ totalBytes: 1e8, ended: true, truncated: true });
  });

  it('gives bytes of every value as they are', async () => {
    const bytes = Buffer.from(Array.from({ length: 65_536 }, (_, index) => (index * 7) % 256));
    await box.writeFile('/tmp/bytes', bytes);
    const { exec } = await box.run(['/bin/cat', '/tmp/bytes']);
    const query = { stream: 'stdout', follow: false } as const;
    const reply = await world.edge.exec.readOutput(box.entry, exec.id as never, query, context());
    const hash = (of: Uint8Array) => createHash('sha256').update(of).digest('hex');
    expect(hash(await bytesOf(reply.body))).toBe(hash(bytes));
  });

  it('says what is missing: program, directory, user', async () => {
    const missing = await box.run(['/bin/no-such-program']);
    expect(missing.exec).toMatchObject({
      ...FAILED_TO_START,
      error: { code: 'command-not-found' },
    });
    const directory = await box.run('true', { cwd: '/no/such' });
    expect(directory.exec).toMatchObject({ ...FAILED_TO_START, error: { code: 'not-found' } });
    const user = await box.run('true', { user: 'nobody-has-this-name' });
    expect(user.exec).toMatchObject({ ...FAILED_TO_START, error: { code: 'not-found' } });
  });

  it('runs 200 at once, each with its own output', async () => {
    const numbers = Array.from({ length: 200 }, (_, number) => `${number}`);
    const all = await Promise.all(
      numbers.map((number) => box.run(['/bin/sh', '-c', 'sleep 0.2; echo "$0"', number])),
    );
    expect(all.map(({ stdout }) => stdout)).toEqual(numbers.map((number) => `${number}\n`));
  });

  it('a client that leaves and returns goes on at its offset; a terminal follows its size', async () => {
    const pty = { rows: 5, columns: 6 };
    const script = 'read x; stty size; i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done';
    const exec = await box.start(['/bin/sh', '-c', script], '', { pty, stdin: true });
    const params = { sandboxId: box.entry.id, execId: exec.id as never };
    const first = await world.client.socket(ROUTES.attachExec, params, {});
    await first.send(JSON.stringify({ type: 'resize', rows: 11, columns: 22 }));
    await first.send(encodeAttachData({ channel: 'stdin', offset: 0, data: Buffer.from('\n') }));
    const head = await takeUntil(first, (text) => text.includes('11 22'));
    await first.close();
    const again = await world.client.socket(ROUTES.attachExec, params, {
      stdoutOffset: head.length,
    });
    const tail = await takeUntil(again, (text) => text.includes('1999'));
    await again.close();
    expect(head + tail).toBe(await whole(exec));
  });

  const whole = async (exec: { id: string }) => {
    await until('all is there', async () =>
      (await box.output(exec)).endsWith('1999\r\n') ? true : undefined,
    );
    return box.output(exec);
  };

  it('limits follow: processors, memory, open files, bytes and inodes', async () => {
    await withBox(world, async (small) => {
      expect((await small.run(['/bin/nproc'])).stdout).toBe('1\n');
      const { stdout } = await small.run('head -1 /proc/meminfo; ulimit -n');
      expect(stdout).toMatch(/^MemTotal: +196608 kB\n512\n$/);
      const full = await small.run('head -c 40000000 /dev/zero > /tmp/full');
      expect(full.stderr).toContain('No space left on device');
      await small.run('rm /tmp/full');
      const many = 'i=0; while [ $i -lt 5000 ]; do : > /tmp/name-$i; i=$((i+1)); done';
      expect((await small.run(many)).stderr).toMatch(/No space left|cannot create/);
      expect(small.entry.state).toBe('running');
    });
  });
});

async function takeUntil(
  channel: Awaited<ReturnType<SecurityWorld['client']['socket']>>,
  isEnough: (text: string) => boolean,
): Promise<string> {
  let text = '';
  for await (const message of channel.messages()) {
    if (typeof message === 'string') continue;
    const { data } = decodeAttachData(message);
    text += Buffer.from(data).toString('latin1');
    if (isEnough(text)) break;
  }
  return text;
}
