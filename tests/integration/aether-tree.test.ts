import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Aether,
  type AetherLink,
  follow,
  run,
  startAether,
  startFields,
  unlessError,
  until,
} from './aether-peer.ts';
import { isRoot } from './linux-support.ts';

const LONG = process.env.DSEC_TEST_LONG === '1';
const directory = join(tmpdir(), `dsec-aether-tree-${process.pid}`);
const tool = `${directory}-tool`;

/** Ways to get away from a parent, each leaving processes that carry the mark in their environment. */
const ESCAPES: Record<string, string> = {
  'a plain child': 'sleep 60',
  'a background child': 'sleep 60 & wait',
  'a new session': 'setsid sleep 60 & sleep 60',
  'a double fork': '(setsid sh -c "setsid sleep 60 &" &) ; sleep 60',
  'a leader that is gone': '(trap "" HUP TERM INT; sleep 60) & sleep 60 & wait',
  'a stopped child': '(kill -STOP $(sh -c "echo \\$PPID"); sleep 60) & sleep 60',
  'one that ignores what can be ignored': 'trap "" HUP INT QUIT TERM; while :; do sleep 60; done',
  'one that is started again and again': 'while :; do sh -c "sleep 60"; done',
};

/** A program whose processes fork faster than a walk through /proc can follow. */
const RUNNER = `
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	signal(SIGCHLD, SIG_IGN);
	if (argc > 1 && !strcmp(argv[1], "comet")) {
		for (;;)
			if (fork() > 0)
				_exit(0);
	}
	if (argc > 1 && !strcmp(argv[1], "vfork")) {
		for (int depth = 0; depth < 200; depth++)
			if (vfork() == 0)
				execl(argv[0], argv[0], "sleep", NULL);
		pause();
	}
	if (argc > 1 && !strcmp(argv[1], "sleep"))
		for (;;)
			pause();
	for (int i = 0; i < 64; i++)
		if (fork() == 0)
			for (;;) {
				if (fork() == 0)
					_exit(0);
			}
	pause();
}
`;

function marked(mark: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`MARK=${mark}`);
    } catch {
      return false;
    }
  });
}

let aether: Aether;
let link: AetherLink;
beforeAll(async () => {
  writeFileSync(`${tool}.c`, RUNNER);
  execFileSync('cc', ['-O1', '-w', '-o', tool, `${tool}.c`]);
  aether = await startAether();
  link = await aether.connect();
});
afterAll(async () => {
  await aether.stop();
  for (const path of [tool, `${tool}.c`]) rmSync(path, { force: true });
});

describe('a timeout', () => {
  test.each(Object.entries(ESCAPES))('leaves nothing of %s', async (name, text) => {
    const mark = `escape-${process.pid}-${name.replaceAll(' ', '-')}`;
    const result = await run(link, `echo partial; ${text}`, {
      env: [`MARK=${mark}`],
      limitMs: 300,
    });
    expect(result.timedOut).toBe(true);
    expect(result.signal).toBe(9);
    expect(result.stdout.toString()).toBe('partial\n');
    expect(marked(mark)).toEqual([]);
  });

  test.each(['comet', 'vfork', 'swarm'])(
    'leaves nothing of a %s of forks',
    async (form) => {
      for (let round = 0; round < (LONG ? 20 : 2); round++) {
        const mark = `fork-${process.pid}-${form}-${round}`;
        const result = await run(link, `echo partial; ${tool} ${form} & sleep 60`, {
          env: [`MARK=${mark}`],
          limitMs: 200,
        });
        expect([result.timedOut, result.stdout.toString()]).toEqual([true, 'partial\n']);
        expect(marked(mark)).toEqual([]);
      }
    },
    60_000,
  );

  test('does not touch what ends before', async () => {
    const result = await run(link, 'echo done', { timeoutMs: 5000 });
    expect([result.timedOut, result.exitCode]).toEqual([false, 0]);
  });

  test('can be set, and taken back, while the command runs', async () => {
    const fields = startFields({ shell: Buffer.from('sleep 60'), timeoutMs: 60_000 });
    const stream = link.open();
    stream.send('exec-start', { offset: 0, fields });
    stream.send('timeout', { offset: 0, fields: {} });
    stream.send('timeout', { offset: 0, fields: { timeoutMs: 100 } });
    const result = await follow(link, stream, fields);
    expect([result.timedOut, result.signal]).toEqual([true, 9]);
    expect(result.runningMs).toBeGreaterThanOrEqual(100);
  });

  test.runIf(isRoot)(
    'ends what somebody inside stopped before it could run (needs root)',
    async () => {
      const shared = await startAether({ pidNamespace: true, sessions: true });
      const host = await shared.connect();
      const hostile = startFields({ shell: Buffer.from('while :; do kill -STOP -1; done') });
      const stream = host.open();
      stream.send('exec-start', { offset: 0, fields: hostile });
      expect(unlessError(await stream.next()).type).toBe('exec-started');
      for (let round = 0; round < (LONG ? 400 : 40); round++) {
        const result = await run(host, ['/bin/true'], { timeoutMs: 50 });
        expect([result.exitCode, result.signal]).toContain(result.timedOut ? 9 : 0);
      }
      await shared.stop();
    },
    60_000,
  );

  test('does not count the time that aether was stopped', async () => {
    const paused = await startAether();
    const host = await paused.connect();
    const fields = startFields({ shell: Buffer.from('sleep 60'), timeoutMs: 6000 });
    const stream = host.open();
    stream.send('exec-start', { offset: 0, fields });
    expect(unlessError(await stream.next()).type).toBe('exec-started');
    paused.process.kill('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 7000));
    paused.process.kill('SIGCONT');
    await host.ping();
    await run(host, 'sleep 1');
    // Seven seconds of pause would have ended it; at most one tick of them counts.
    stream.send('signal', { offset: 0, fields: { signal: 15, scope: 'leader' } });
    const result = await follow(host, stream, fields);
    expect([result.timedOut, result.signal]).toEqual([false, 15]);
    await paused.stop();
  }, 30_000);
});

describe('signals', () => {
  test('reach the leader alone, or the tree', async () => {
    const mark = `signal-${process.pid}`;
    const text = 'trap "echo got" USR1; (trap "" USR1; sleep 60) & echo ready; wait; wait';
    const fields = startFields({ shell: Buffer.from(text), env: [`MARK=${mark}`] });
    const stream = link.open();
    stream.send('exec-start', { offset: 0, fields });
    let output = '';
    const hear = async (word: string) => {
      while (!output.includes(word)) {
        const frame = unlessError(await stream.next());
        if (frame.type === 'stdout') output += Buffer.from(frame.data).toString();
      }
    };
    await hear('ready');
    stream.send('signal', { offset: 0, fields: { signal: 10, scope: 'leader' } });
    await hear('got');
    expect(marked(mark).length).toBeGreaterThanOrEqual(2);
    stream.send('signal', { offset: 0, fields: { signal: 9, scope: 'tree' } });
    expect((await follow(link, stream, fields)).signal).toBe(9);
    expect(marked(mark)).toEqual([]);
  });

  test('a tree that outlives its leader can be killed until the result is acknowledged', async () => {
    const mark = `late-${process.pid}`;
    const fields = startFields({
      shell: Buffer.from('setsid sleep 60 & exit 0'),
      env: [`MARK=${mark}`],
    });
    const stream = link.open();
    stream.send('exec-start', { offset: 0, fields });
    while (unlessError(await stream.next()).type !== 'exec-exit');
    expect(marked(mark)).toHaveLength(1);
    stream.send('signal', { offset: 0, fields: { signal: 9, scope: 'tree' } });
    await until(() => marked(mark).length === 0, 'the tree to be gone');
    stream.send('exec-exit-ack', { offset: 0, fields: { execId: fields.execId } });
  });
});

describe('what a command left behind', () => {
  test('lives on, is reaped when it ends, and takes its keeper with it', async () => {
    const mark = `left-${process.pid}`;
    await run(link, 'sleep 0.5 & sleep 0.3 & exit 0', { env: [`MARK=${mark}`] });
    expect(marked(mark).length).toBeGreaterThan(0);
    await until(() => marked(mark).length === 0, 'the children to end');
    const left = () => childrenOf(aether.pid);
    await until(
      () => left().length === 0,
      () => `the keeper to end: ${left().map(describeProcess)}`,
    );
  });
});

/** What a process does, and what is below it, for the message of a test that fails. */
function describeProcess(pid: string): string {
  try {
    const [, text = ''] = readFileSync(`/proc/${pid}/status`, 'utf8').split('Name:');
    const seen = text.match(/^(State|PPid|SigPnd|ShdPnd|SigBlk|SigCgt):.*$/gm) ?? [];
    const below = childrenOf(Number(pid)).map(describeProcess).join();
    const syscall = readFileSync(`/proc/${pid}/syscall`, 'utf8').trim();
    return `${pid} ${text.split('\n')[0]} ${seen.join(' ')} ${syscall} [${below}]`;
  } catch (error) {
    return `${pid} ${error}`;
  }
}

function childrenOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
}

describe.skipIf(!isRoot)('as process 1 (needs root)', () => {
  test('orphans are reaped and signals from inside change nothing', async () => {
    const first = await startAether({ pidNamespace: true });
    const host = await first.connect();
    // Its own parent is the command's keeper; only what loses even that comes to process 1.
    await run(host, 'i=0; while [ $i -lt 50 ]; do (setsid sh -c "exit 0" &); i=$((i+1)); done');
    const signals = await run(
      host,
      'for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; exit 7',
    );
    expect(signals.exitCode).toBe(7);
    await until(async () => {
      const seen = await run(host, 'cat /proc/[0-9]*/stat | grep -c " Z " ; true');
      return seen.stdout.toString().trim() === '0';
    }, 'no orphan to be left unreaped');
    await host.ping();
    await first.stop();
  });
});
