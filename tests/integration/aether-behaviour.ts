import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Aether,
  type AetherLink,
  type AetherOptions,
  type CommandOptions,
  follow,
  run,
  startAether,
  startFields,
  unlessError,
  until,
} from './aether-peer.ts';

const LONG = process.env.DSEC_TEST_LONG === '1';
const MIB = 1024 * 1024;

/** The behaviour that every way of running aether shares. */
export function describeBehaviour(name: string, options: AetherOptions): void {
  describe(name, () => {
    let aether: Aether;
    let link: AetherLink;
    beforeAll(async () => {
      aether = await startAether(options);
      link = await aether.connect();
    });
    afterAll(() => aether.stop());
    const sh = (text: string, more: CommandOptions = {}) => run(link, text, more);

    describeStatus(sh);
    describeStreams(sh);
    describeStart(sh, (argv, more) => run(link, argv, more));
    describeFailedStart(() => link);
    describeReturn(() => aether);
    describeOnce(() => aether);
  });
}

type Shell = (text: string, more?: CommandOptions) => ReturnType<typeof run>;
type Argv = (argv: string[], more?: CommandOptions) => ReturnType<typeof run>;

function describeStatus(sh: Shell): void {
  test('exit codes 0 to 255', async () => {
    const step = LONG ? 1 : 17;
    for (let code = 0; code <= 255; code += step) {
      const result = await sh(`exit ${code}`);
      expect([result.exitCode, result.signal, result.trusted]).toEqual([code, undefined, true]);
    }
  });

  test('signals, each as itself', async () => {
    for (const signal of LONG
      ? [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 13, 14, 15, 31, 34, 64]
      : [2, 9, 15, 34, 64]) {
      const result = await sh(`kill -${signal} $$; sleep 5`);
      expect([result.signal, result.exitCode]).toEqual([signal, undefined]);
    }
  });

  test('a stopped command goes on', async () => {
    const result = await sh('(sleep 0.05; kill -CONT $$) & kill -STOP $$; echo on');
    expect([result.exitCode, result.stdout.toString()]).toEqual([0, 'on\n']);
  });

  test('processor time and memory are the command’s own', async () => {
    const result = await sh('i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done');
    expect(result.cpuUserUs + result.cpuSystemUs).toBeGreaterThan(0);
    expect(result.memoryPeakBytes).toBeGreaterThan(100_000);
  });
}

function describeStreams(sh: Shell): void {
  test('without standard input a command reads its end at once', async () => {
    expect((await sh('cat; echo done')).stdout.toString()).toBe('done\n');
  });

  test('standard input of any bytes, to its end', async () => {
    const input = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 31) % 256));
    const result = await sh('cat', { input });
    expect(result.stdout.equals(input)).toBe(true);
    expect((await sh('wc -c', { input: '' })).stdout.toString().trim()).toBe('0');
  });

  test('a command that does not read its input', async () => {
    const result = await sh('exec <&-; sleep 0.05; echo over', { input: Buffer.alloc(300_000) });
    expect(result.stdout.toString()).toBe('over\n');
  });

  test('100 MB without a newline, every byte in its place', async () => {
    const bytes = (LONG ? 100 : 20) * MIB;
    const result = await sh(`head -c ${bytes} /dev/zero | tr '\\0' x`);
    expect(result.stdout.length).toBe(bytes);
    expect(result.stdoutBytes).toBe(bytes);
    expect(result.stdout.every((byte) => byte === 0x78)).toBe(true);
  });

  test('binary output on both channels', async () => {
    const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    const result = await sh('tee /dev/stderr', { input: every });
    expect([result.stdout.equals(every), result.stderr.equals(every)]).toEqual([true, true]);
  });

  test('a background process that holds the outputs does not hold the exit', async () => {
    const started = performance.now();
    const result = await sh('(sleep 3; echo late) & echo early; exit 4');
    expect([result.exitCode, result.stdout.toString()]).toEqual([4, 'early\n']);
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  test('a background process may write on for ever', async () => {
    const file = `/tmp/dsec-background-${process.pid}`;
    // More than a pipe holds, and the last step comes only if no write has stopped or killed it.
    const write = 'i=0; while [ $i -lt 400 ]; do printf %0500d 0; i=$((i+1)); sleep 0.001; done';
    await sh(`(${write}; echo end > ${file}) & exit 0`);
    await until(async () => (await sh(`test -e ${file} && rm ${file}`)).exitCode === 0, file);
  });

  test('nothing of the command is lost when its window is full at its end', async () => {
    const text = 'head -c 110000 /dev/zero; (sleep 2; echo late) & exit 0';
    const result = await sh(text, { windowBytes: 65_536, delayMs: 400 });
    expect([result.stdout.length, result.stdoutBytes]).toEqual([110_000, 110_000]);
  });

  test('/dev/stdout and /dev/stderr can be opened anew', async () => {
    const result = await sh('echo one > /dev/stdout; echo two > /dev/stderr');
    expect([result.stdout.toString(), result.stderr.toString()]).toEqual(['one\n', 'two\n']);
  });
}

function describeStart(sh: Shell, argv: Argv): void {
  test('arguments, environment and directory arrive as they are', async () => {
    const odd = 'a b\'"\\$\n\u{1f600}';
    const result = await argv(['sh', '-c', 'printf %s "$1|$V|$PWD"', 'sh', odd], {
      env: [`V=${odd}`],
      cwd: Buffer.from('/usr/bin'),
    });
    expect(result.stdout.toString()).toBe(`${odd}|${odd}|/usr/bin`);
  });

  test('the environment is what was asked for and a few defaults', async () => {
    const result = await argv(['env'], { env: ['A=1', 'PATH=/bin:/usr/bin'] });
    const names = result.stdout
      .toString()
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0]);
    expect(names.sort()).toEqual(['A', 'HOME', 'LOGNAME', 'PATH', 'SHELL', 'USER']);
  });

  test('exactly the descriptors 0, 1 and 2', async () => {
    const result = await sh('ls -l /proc/self/fd', { input: '' });
    const numbers = result.stdout
      .toString()
      .match(/ \d+ -> /g)
      ?.map((text) => Number(text.slice(1, -4)));
    // The fourth is the directory that ls itself reads.
    expect(numbers).toEqual([0, 1, 2, 3]);
    expect(result.stdout.toString()).toMatch(/3 -> \/proc\/\d+\/fd/);
  });

  test('signals are as in a new process', async () => {
    const result = await argv(['grep', '-E', '^Sig(Blk|Ign)', '/proc/self/status']);
    expect(result.stdout.toString()).toBe(
      `SigBlk:\t${'0'.repeat(16)}\nSigIgn:\t${'0'.repeat(16)}\n`,
    );
  });

  test('users by name, by number and with a group', async () => {
    const id = async (user: string) =>
      (await argv(['id', '-u', '-n'], { user })).stdout.toString().trim();
    expect(await id('daemon')).toBe('daemon');
    const numbers = (await sh('id -u; id -g', { user: '12345:23456' })).stdout.toString();
    expect(numbers).toBe('12345\n23456\n');
    expect((await sh('id -g', { user: 'daemon:bin' })).stdout.toString().trim()).not.toBe('1');
    const home = await sh('echo $HOME $USER $LOGNAME', { user: 'daemon' });
    expect(home.stdout.toString()).toBe('/usr/sbin daemon daemon\n');
  });

  test('bytes that are not text', async () => {
    const raw = Buffer.from([0xff, 0xfe, 0x80, 0x0a]);
    const script = Buffer.concat([Buffer.from("printf '%s' '"), raw, Buffer.from("'")]);
    const result = await sh('', { shell: script });
    expect(result.stdout.equals(raw)).toBe(true);
  });

  test('200 commands at a time', async () => {
    const results = await Promise.all(
      Array.from({ length: 200 }, (_, i) => sh(`sleep 0.05; echo ${i}; exit ${i}`)),
    );
    results.forEach((result, i) => {
      expect([result.exitCode, result.stdout.toString()]).toEqual([i, `${i}\n`]);
    });
  });
}

function describeFailedStart(link: () => AetherLink): void {
  test.each<[string, CommandOptions, string, string]>([
    [
      'a command that is not there',
      { argv: [Buffer.from('no-such-thing')] },
      'command-not-found',
      'command',
    ],
    [
      'a path that is not there',
      { argv: [Buffer.from('/no/such')] },
      'command-not-found',
      'command',
    ],
    [
      'a directory that is not there',
      { shell: Buffer.from('true'), cwd: Buffer.from('/nowhere') },
      'not-found',
      'working directory',
    ],
    [
      'a directory that is a file',
      { shell: Buffer.from('true'), cwd: Buffer.from('/etc/passwd') },
      'invalid-argument',
      'working directory',
    ],
    [
      'a user that is not there',
      { shell: Buffer.from('true'), user: 'nobody-here' },
      'not-found',
      'no such user',
    ],
    [
      'a group that is not there',
      { shell: Buffer.from('true'), user: 'root:no-group' },
      'not-found',
      'no such user or group',
    ],
    [
      'a file that may not be executed',
      { argv: [Buffer.from('/etc/passwd')] },
      'permission-denied',
      'command',
    ],
    ['a directory as a command', { argv: [Buffer.from('/etc')] }, 'permission-denied', 'command'],
    ['neither arguments nor shell text', {}, 'invalid-argument', 'either'],
  ])('%s is a clear error', async (_, options, code, text) => {
    await expect(run(link(), options)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(text),
    });
  });

  test('a program of no known format', async () => {
    const file = '/tmp/dsec-no-format';
    await run(link(), `printf '\\001\\002' > ${file}; chmod 755 ${file}`);
    await expect(run(link(), [file])).rejects.toMatchObject({ code: 'invalid-argument' });
    await run(link(), `rm ${file}`);
  });
}

function describeReturn(aether: () => Aether): void {
  test('a host that leaves and comes back at an offset misses nothing', async () => {
    const first = await aether().connect({ epoch: 5 });
    const shell = Buffer.from('i=0; while [ $i -lt 60000 ]; do echo $i; i=$((i+1)); done; exit 9');
    const fields = startFields({ shell, windowBytes: 65_536 });
    const stream = first.open();
    stream.send('exec-start', { offset: 0, fields });
    const parts: Buffer[] = [];
    let offset = 0;
    while (offset < 40_000) {
      const frame = unlessError(await stream.next());
      if (frame.type !== 'stdout') continue;
      parts.push(Buffer.from(frame.data));
      offset += frame.data.byteLength;
    }
    first.close();
    let result: Awaited<ReturnType<typeof follow>> | undefined;
    for (let visit = 0; result === undefined; visit++) {
      const again = await aether().connect({ epoch: 5 });
      const attached = again.open();
      attached.send('exec-attach', {
        offset: 0,
        fields: { execId: fields.execId, stdoutOffset: offset, stderrOffset: 0 },
      });
      if (visit === 2) {
        result = await follow(again, attached, fields);
        break;
      }
      for (let frames = 0; frames < 3; ) {
        const frame = unlessError(await attached.next());
        if (frame.type === 'exec-started') expect(frame.fields.attached).toBe(true);
        if (frame.type !== 'stdout') continue;
        expect(frame.offset).toBe(offset);
        parts.push(Buffer.from(frame.data));
        offset += frame.data.byteLength;
        frames += 1;
        if (frame.data.byteLength === 0) break;
        attached.send('ack', { offset, fields: { channel: 'stdout' } });
        attached.send('credit', { offset: offset + 65_536, fields: { channel: 'stdout' } });
      }
      again.close();
    }
    const whole = Buffer.concat([...parts, result.stdout]);
    const wanted = Array.from({ length: 60_000 }, (_, i) => `${i}\n`).join('');
    expect(result.exitCode).toBe(9);
    expect(result.stdoutBytes).toBe(wanted.length);
    expect(digest(whole)).toBe(digest(Buffer.from(wanted)));
  });
}

function describeOnce(aether: () => Aether): void {
  test('a result waits until it is acknowledged, and is then forgotten', async () => {
    const host = await aether().connect({ epoch: 5 });
    const fields = startFields({ shell: Buffer.from('echo kept; exit 6') });
    const stream = host.open();
    stream.send('exec-start', { offset: 0, fields });
    while (unlessError(await stream.next()).type !== 'exec-exit');
    const repeated = host.open();
    repeated.send('exec-start', { offset: 0, fields });
    const result = await follow(host, repeated, fields);
    expect([result.exitCode, result.stdout.toString()]).toEqual([6, 'kept\n']);
    const ids = { execId: fields.execId, stdoutOffset: 0, stderrOffset: 0 };
    await expect(host.ask('exec-attach', ids)).rejects.toMatchObject({ code: 'not-found' });
  });

  test('a start that failed is remembered like a result', async () => {
    const host = await aether().connect({ epoch: 5 });
    const fields = startFields({ argv: [Buffer.from('no-such-thing')] });
    const failed = { code: 'command-not-found' };
    await expect(host.ask('exec-start', fields)).rejects.toMatchObject(failed);
    const there = startFields({ ...fields, env: [], argv: [Buffer.from('true')] });
    await expect(host.ask('exec-start', { ...there, execId: fields.execId })).rejects.toMatchObject(
      failed,
    );
    const last = host.open();
    last.send('exec-exit-ack', { offset: 0, fields: { execId: fields.execId } });
    const result = await run(host, { ...there, env: [], execId: fields.execId });
    expect(result.exitCode).toBe(0);
  });

  test('nothing is started twice', async () => {
    const host = await aether().connect({ epoch: 5 });
    const file = `/tmp/dsec-once-${process.pid}`;
    const fields = startFields({ shell: Buffer.from(`echo x >> ${file}; sleep 0.1; cat ${file}`) });
    const streams = Array.from({ length: 20 }, () => host.open());
    for (const stream of streams) stream.send('exec-start', { offset: 0, fields });
    const last = streams.at(-1);
    if (last === undefined) throw new Error('no stream');
    expect((await follow(host, last, fields)).stdout.toString()).toBe('x\n');
    await run(host, `rm ${file}`);
  });
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
