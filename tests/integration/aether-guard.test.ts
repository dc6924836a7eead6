import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Aether, type AetherLink, run, startAether } from './aether-peer.ts';
import { isRoot } from './linux-support.ts';

const tool = join(tmpdir(), `dsec-aether-probe-${process.pid}`);

/** Each probe is tried on a process of the session's own, as a control, and on aether. Exit 0: it worked. */
const PROBE = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
static int open_of(const char *pid, const char *file, int flags)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
	return open(path, flags);
}
int main(int argc, char **argv)
{
	const char *what = argv[1], *name = argv[2];
	int pid = atoi(name);
	if (!strcmp(what, "ptrace"))
		return ptrace(PTRACE_SEIZE, pid, 0, 0) != 0;
	if (!strcmp(what, "mem") || !strcmp(what, "environ") || !strcmp(what, "maps"))
		return open_of(name, what, O_RDONLY) < 0;
	if (!strcmp(what, "fd") || !strcmp(what, "root") || !strcmp(what, "cwd"))
		return open_of(name, what, O_RDONLY | O_DIRECTORY) < 0 ||
		       (what[0] == 'f' && open_of(name, "fd/0", O_RDONLY) < 0);
	if (!strcmp(what, "pidfd_getfd"))
		return syscall(438, syscall(434, pid, 0), 1, 0) < 0;
	if (!strcmp(what, "prlimit")) {
		struct rlimit limit = { 64, 64 };
		return prlimit(pid, RLIMIT_NOFILE, &limit, NULL) != 0;
	}
	if (!strcmp(what, "kill"))
		return kill(pid, SIGWINCH) != 0;
	if (!strcmp(what, "setpriority"))
		return setpriority(PRIO_PROCESS, pid, 19) != 0;
	if (!strcmp(what, "affinity")) {
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(0, &one);
		return sched_setaffinity(pid, sizeof(one), &one) != 0;
	}
	if (!strcmp(what, "oom_score_adj"))
		return write(open_of(name, what, O_WRONLY), "500", 3) != 3;
	if (!strcmp(what, "vm_readv")) {
		char byte;
		struct iovec here = { &byte, 1 }, there = { (void *)0x400000, 1 };
		return process_vm_readv(pid, &here, 1, &there, 1, 0) < 0;
	}
	if (!strcmp(what, "ns")) {
		return setns(open_of(name, "ns/user", O_RDONLY), 0) != 0;
	}
	return 2;
}
`;

beforeAll(() => {
  writeFileSync(`${tool}.c`, PROBE);
  execFileSync('cc', ['-static', '-O1', '-w', '-o', tool, `${tool}.c`]);
});
afterAll(() => {
  for (const path of [tool, `${tool}.c`]) rmSync(path, { force: true });
});

describe.skipIf(!isRoot)('root of a session (needs root)', () => {
  let aether: Aether;
  let link: AetherLink;
  beforeAll(async () => {
    aether = await startAether({ sessions: true });
    link = await aether.connect();
  });
  afterAll(() => aether.stop());

  const PROBES = [
    'ptrace',
    'mem',
    'environ',
    'maps',
    'fd',
    'root',
    'cwd',
    'pidfd_getfd',
    'prlimit',
    'kill',
  ];
  test.each([...PROBES, 'setpriority', 'affinity', 'oom_score_adj'])(
    'cannot do %s to aether',
    async (what) => {
      const control = await run(link, `sleep 1 & ${tool} ${what} $!`);
      expect(control.exitCode).toBe(0);
      const attempt = await run(link, `${tool} ${what} ${aether.pid}`);
      expect(attempt.exitCode).toBe(1);
      // Neither to the keeper of the command itself.
      expect((await run(link, `${tool} ${what} $PPID`)).exitCode).toBe(1);
      await link.ping();
    },
  );

  test.each(['vm_readv', 'ns'])('cannot do %s to aether', async (what) => {
    expect((await run(link, `${tool} ${what} ${aether.pid}`)).exitCode).toBe(1);
  });

  test('is root of its own namespace alone, with few capabilities', async () => {
    const result = await run(
      link,
      'id -u; cat /proc/self/uid_map; grep -E "^Cap(Bnd|Eff|Amb|Inh)" /proc/self/status',
    );
    const lines = result.stdout
      .toString()
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/));
    expect(lines).toEqual([
      ['0'],
      ['0', '1', '65536'],
      ['CapInh:', '0000000000000000'],
      ['CapEff:', '00000000800005fb'],
      ['CapBnd:', '00000000800005fb'],
      ['CapAmb:', '0000000000000000'],
    ]);
    const plain = await run(link, 'grep ^CapEff /proc/self/status', { user: 'daemon' });
    expect(plain.stdout.toString()).toContain('0000000000000000');
  });

  test('all 64 signals to aether change nothing', async () => {
    const sent = await run(
      link,
      `for s in $(seq 1 64); do kill -$s ${aether.pid} && echo sent; done 2>/dev/null`,
    );
    expect(sent.stdout.toString()).toBe('');
    await link.ping();
  });
});

describe('aether itself', () => {
  let aether: Aether;
  beforeAll(async () => {
    aether = await startAether({ environment: { SECRET: 'x' } });
  });
  afterAll(() => aether.stop());

  test('idle, it is small', async () => {
    const link = await aether.connect();
    for (let i = 0; i < 20; i++)
      await run(link, 'head -c 3000000 /dev/zero; cat', { input: Buffer.alloc(200_000) });
    link.close();
    const other = await aether.connect();
    await other.ping();
    expect(anonymousKib(aether.pid)).toBeLessThan(100);
    expect(statSync(readlinkSync(`/proc/${aether.pid}/exe`)).size).toBeLessThan(1_100_000);
  });

  test('it holds no descriptors of commands that are over', async () => {
    const link = await aether.connect();
    const before = descriptors(aether.pid);
    for (let i = 0; i < 10; i++) await run(link, 'true', { input: 'x' });
    await run(link, 'true', { pty: { rows: 5, columns: 5 } });
    await link.ask('file-stat', { path: Buffer.from('/'), followSymlinks: true });
    await link.ping();
    expect(descriptors(aether.pid)).toBe(before);
  });

  test('signals that can be ignored are', async () => {
    const link = await aether.connect();
    for (let signal = 1; signal <= 64; signal++) {
      if (signal !== 9 && signal !== 19) execFileSync('kill', [`-${signal}`, String(aether.pid)]);
    }
    await link.ping();
    const status = readFileSync(`/proc/${aether.pid}/status`, 'utf8');
    expect(/SigPnd:\s+0+\n/.test(status)).toBe(true);
  });
});

function anonymousKib(pid: number): number {
  return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

function descriptors(pid: number): number {
  return Number(execFileSync('sh', ['-c', `ls /proc/${pid}/fd | wc -l`]).toString());
}
