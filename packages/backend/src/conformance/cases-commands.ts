import assert from 'node:assert/strict';
import { MIB, newExecId } from '@dsec/std';
import { type ConformanceTest, refused } from './bench.ts';
import { createFollower, execFields, run, sha256 } from './command-run.ts';

const SIGTERM = 15;
const SIGKILL = 9;
/** Those that end a process; 32 and 33 are the C library's. */
const SIGNALS = [...range(1, 16), 24, 25, 26, 27, 29, 30, 31, ...range(34, 64)];
const CODES = range(0, 255);
const COMMANDS_AT_A_TIME = 200;
/** All that an argument may hold. */
const ANY_BYTES = Uint8Array.from(range(1, 255));
/** Longer than any case takes. */
const LONG_MS = 600_000;

export const commandCases: Readonly<Record<string, ConformanceTest>> = {
  'exit codes 0 to 255': async (bench) => {
    const { link } = await bench.start();
    for (const code of CODES) {
      const result = await run(link, bench.commands.exit(code));
      assert.deepEqual(
        [result.exitCode, result.signal, result.trusted, result.timedOut],
        [code, undefined, true, false],
      );
    }
  },

  'signals, each as itself': async (bench) => {
    const { link } = await bench.start();
    for (const signal of SIGNALS) {
      const result = await run(link, bench.commands.raise(signal));
      assert.deepEqual([result.signal, result.exitCode], [signal, undefined]);
    }
  },

  'standard input of any bytes, to its end': async (bench) => {
    const { link } = await bench.start();
    const input = bench.random.bytes(300_000);
    for (const bytes of [new Uint8Array(0), input.subarray(0, 1), input]) {
      const result = await run(link, bench.commands.copyInput(), { input: bytes });
      assert.deepEqual(
        [result.exitCode, result.stdout.sha256, result.stdoutBytes],
        [0, sha256(bytes), bytes.length],
      );
    }
    const closed = await run(link, bench.commands.copyInput());
    assert.deepEqual([closed.exitCode, closed.stdout.bytes], [0, 0]);
  },

  'output of any bytes': async (bench) => {
    const { link } = await bench.start();
    // Every byte after every other one.
    const input = Uint8Array.from({ length: 256 * 256 * 2 }, (_, i) =>
      i % 2 === 0 ? (i >> 1) & 0xff : i >> 9,
    );
    const { stdout } = await run(link, bench.commands.copyInput(), { input });
    assert.equal(Buffer.compare(Buffer.from(stdout.text, 'latin1'), input), 0);
  },

  'arguments and directories of any bytes': async (bench) => {
    const { link } = await bench.start();
    const text = (bytes: Uint8Array) => `${Buffer.from(bytes).toString('latin1')}\n`;
    const words = bench.commands.say('', 'stdout').slice(0, -1);
    const said = await run(link, [...words, ANY_BYTES]);
    assert.equal(said.stdout.text, text(ANY_BYTES));
    const name = ANY_BYTES.filter((byte) => byte !== 0x2f);
    const path = Buffer.concat([Buffer.from('/tmp/'), name]);
    await link.request('file-mkdir', { path, createParents: false });
    const printed = await run(link, bench.commands.directory(), { cwd: path });
    assert.equal(printed.stdout.text, text(path));
  },

  'a command that does not read its input': async (bench) => {
    const { link } = await bench.start();
    const input = bench.random.bytes(400_000);
    assert.equal((await run(link, bench.commands.exit(6), { input })).exitCode, 6);
  },

  'both outputs, each on its own channel': async (bench) => {
    const { link } = await bench.start();
    for (const channel of ['stdout', 'stderr'] as const) {
      const result = await run(link, bench.commands.say(`on ${channel}`, channel));
      const texts = [result.stdout.text, result.stderr.text];
      const spoken = `on ${channel}\n`;
      assert.deepEqual(texts, channel === 'stdout' ? [spoken, ''] : ['', spoken]);
    }
  },

  'environment and directory are what was asked for': async (bench) => {
    const { link } = await bench.start();
    const env = ['DSEC_ODD=a b\'"\\$ \u{1f600}', 'EMPTY='];
    const printed = await run(link, bench.commands.environment(), { env });
    const lines = Buffer.from(printed.stdout.text, 'latin1').toString().split('\n');
    assert.ok(
      env.every((line) => lines.includes(line)),
      printed.stdout.text,
    );
    const directory = await run(link, bench.commands.directory(), { cwd: '/tmp' });
    assert.equal(directory.stdout.text, '/tmp\n');
  },

  'what cannot be started is a clear error': async (bench) => {
    const { link } = await bench.start();
    const { exit } = bench.commands;
    await refused('command-not-found', run(link, ['no-such-command-anywhere']));
    await refused('command-not-found', run(link, ['/no/such/command']));
    await refused('permission-denied', run(link, ['/etc/passwd']));
    await refused('not-found', run(link, exit(0), { cwd: '/no/such/directory' }));
    await refused('invalid-argument', run(link, exit(0), { cwd: '/etc/passwd' }));
    await refused('not-found', run(link, exit(0), { user: 'nobody-has-this-name' }));
    assert.equal((await run(link, exit(7))).exitCode, 7);
  },

  'a child in the background that holds the outputs does not hold the exit': async (bench) => {
    const { link } = await bench.start();
    const result = await run(link, bench.commands.holdOutputs(4));
    assert.deepEqual([result.exitCode, result.stdout.text], [4, 'early\n']);
  },

  '200 commands at a time': async (bench) => {
    const { link } = await bench.start({}, { pidsMax: 4096, memoryBytes: 512 * MIB });
    const results = await Promise.all(
      Array.from({ length: COMMANDS_AT_A_TIME }, async (_, i) => {
        const { exitCode, stdout } = await run(link, bench.commands.count(i + 1));
        return [exitCode, stdout.text.split('\n').length - 1];
      }),
    );
    assert.deepEqual(
      results,
      results.map((_, i) => [0, i + 1]),
    );
  },

  'an id starts one command, however often it is sent': async (bench) => {
    const { link } = await bench.start();
    const fields = execFields(bench.commands.copyInput(), { input: new Uint8Array(0) });
    const streams = Array.from({ length: 5 }, () => createFollower(fields).open(link));
    for (const stream of streams) await stream.send('exec-start', fields);
    for (const stream of streams.slice(0, -1)) {
      const taken = async () => {
        for (;;) await stream.receive();
      };
      await refused('conflict', taken());
    }
    const [last] = streams.slice(-1);
    assert.ok(last !== undefined);
    const input = bench.random.bytes(1000);
    const result = await createFollower(fields).toEnd(last, input);
    assert.equal(result.stdout.sha256, sha256(input));
    await last.send('exec-exit-ack', { execId: fields.execId });
  },

  'a result is kept until it is acknowledged, then forgotten': async (bench) => {
    const { link } = await bench.start();
    const fields = execFields(bench.commands.exit(9));
    for (let time = 0; time < 3; time += 1) {
      const follower = createFollower(fields);
      const stream = follower.open(link);
      await stream.send('exec-start', fields);
      assert.equal((await follower.toEnd(stream)).exitCode, 9);
    }
    const parting = link.open();
    await parting.send('exec-exit-ack', { execId: fields.execId });
    parting.leave();
    await refused('not-found', createFollower(fields).attach(link));
  },

  'a start that was refused is remembered like a result': async (bench) => {
    const { link } = await bench.start();
    const execId = newExecId();
    const fields = execFields(['no-such-command-anywhere'], { execId });
    await refused('command-not-found', link.request('exec-start', fields));
    const other = execFields(bench.commands.exit(0), { execId });
    await refused('command-not-found', link.request('exec-start', other));
    const parting = link.open();
    await parting.send('exec-exit-ack', { execId });
    parting.leave();
    assert.equal((await run(link, bench.commands.exit(0), { execId })).exitCode, 0);
  },

  'a command outlives its connection, and is found by its id': async (bench) => {
    const { plan, link } = await bench.start();
    const fields = execFields(bench.commands.copyInput(), { input: new Uint8Array(0) });
    const stream = createFollower(fields).open(link);
    await stream.send('exec-start', fields);
    assert.equal((await stream.receive()).type, 'exec-started');
    const next = await bench.connect(plan);
    await link.closed;
    await refused('state-conflict', next.request('exec-exit-ack', { execId: fields.execId }));
    const follower = createFollower(fields);
    const again = follower.open(next);
    await again.send('exec-start', fields);
    const input = bench.random.bytes(100_000);
    assert.equal((await follower.toEnd(again, input)).stdout.sha256, sha256(input));
  },

  'a host that comes back may say the end of standard input again': async (bench) => {
    const { plan, link } = await bench.start();
    const input = bench.random.bytes(20_000);
    const fields = execFields(bench.commands.copyInput(), { input });
    const stream = createFollower(fields).open(link);
    await stream.send('exec-start', fields);
    const started = await stream.receive();
    assert.ok(started.type === 'exec-started');
    stream.openInput(started.fields.stdinOffset, started.fields.stdinCredit);
    await stream.write(input);
    await stream.endInput();
    await link.ping();
    const next = await bench.connect(plan);
    const follower = createFollower(fields);
    const again = follower.open(next);
    await again.send('exec-start', fields);
    const result = await follower.toEnd(again, input);
    assert.deepEqual([result.exitCode, result.stdout.sha256], [0, sha256(input)]);
  },

  'a timeout ends the tree and returns what was printed': async (bench) => {
    const { key, link } = await bench.start();
    await run(link, bench.commands.exit(0));
    const { pids } = await bench.backend.stats(key);
    const fields = execFields(bench.commands.tree(), { timeoutMs: LONG_MS });
    const follower = createFollower(fields);
    const stream = follower.open(link);
    await stream.send('exec-start', fields);
    const ending = follower.toEnd(stream);
    await bench.until(() => follower.text.includes('grown'));
    await stream.send('timeout', { timeoutMs: 1 });
    const result = await ending;
    assert.deepEqual([result.timedOut, result.signal, result.stdout.text], [true, 9, 'grown\n']);
    await bench.until(async () => (await bench.backend.stats(key)).pids <= pids);
  },

  'signals reach the leader, or the tree': async (bench) => {
    const { key, link } = await bench.start();
    const { pids } = await bench.backend.stats(key);
    const asleep = execFields(bench.commands.sleep(LONG_MS));
    const sleeper = createFollower(asleep);
    const stream = sleeper.open(link);
    await stream.send('exec-start', asleep);
    const ending = sleeper.toEnd(stream);
    await stream.send('signal', { signal: SIGTERM, scope: 'leader' });
    assert.equal((await ending).signal, SIGTERM);
    const fields = execFields(bench.commands.tree());
    const follower = createFollower(fields);
    const tree = follower.open(link);
    await tree.send('exec-start', fields);
    const end = follower.toEnd(tree);
    await bench.until(() => follower.text.includes('grown'));
    await tree.send('signal', { signal: SIGKILL, scope: 'tree' });
    assert.equal((await end).signal, SIGKILL);
    await bench.until(async () => (await bench.backend.stats(key)).pids <= pids);
  },

  'a terminal of the asked size that follows a resize': async (bench) => {
    const { link } = await bench.start();
    const pty = { rows: 31, columns: 101 };
    const fields = execFields(bench.commands.terminalSize(), { pty });
    const follower = createFollower(fields);
    const stream = follower.open(link);
    await stream.send('exec-start', fields);
    const ending = follower.toEnd(stream);
    await bench.until(() => follower.text.includes('31 101'));
    await stream.send('resize', { rows: 50, columns: 132 });
    await bench.until(() => follower.text.includes('50 132'));
    await stream.send('signal', { signal: SIGKILL, scope: 'tree' });
    assert.equal((await ending).signal, SIGKILL);
  },

  'memory without end kills the command, or ends the sandbox as oom': async (bench) => {
    const { key, plan, link } = await bench.start();
    const neighbour = await bench.start();
    const before = (await bench.backend.stats(key)).oomKills ?? 0;
    const ending = run(link, bench.commands.fillMemory()).then(
      ({ signal, exitCode }) => signal === SIGKILL || exitCode !== 0,
      () => false,
    );
    const wasKilled = await ending;
    if (!wasKilled) await bench.until(() => bench.exits.length > 0);
    assert.deepEqual(
      bench.exits.map(({ reason }) => reason),
      wasKilled ? [] : ['oom'],
    );
    if (wasKilled) {
      assert.equal((await run(link, bench.commands.exit(1))).exitCode, 1);
      const { memoryPeakBytes, oomKills = 0 } = await bench.backend.stats(key);
      assert.ok(oomKills > before, 'nothing says that it was for memory');
      const { memoryBytes } = plan.limits;
      assert.ok(memoryPeakBytes <= memoryBytes, `${memoryPeakBytes} of ${memoryBytes} bytes`);
    }
    assert.equal((await run(neighbour.link, bench.commands.exit(2))).exitCode, 2);
    await bench.backend.stop(key);
  },
};

/** The numbers from the first to the last. */
function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
