/** Neighbours, the node, and what one sandbox leaves for the next. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MIB } from '@dsec/std';
import { expect } from 'vitest';
import { until } from '../integration/launcher-world.ts';
import { expectedCeiling, nodeCeiling } from '../integration/node-ceiling.ts';
import { expectRefused, expectUnharmed, type Row, withBox } from './rows.ts';
import { type Box, context, PROBE, type SecurityWorld } from './security-world.ts';
import { countOf, holdPlain, outcomesOf, runHost, runPlain } from './unprotected.ts';

const LONG = process.env.DSEC_TEST_LONG === '1';
const BOMBS = LONG ? 64 : 8;
const hash = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');
const backwards = (word: string) => [...word].reverse().join('');

/** Kinds of memory; of some a kernel gives less than asked for, without a word. */
const MEMORY_KINDS = [
  ...['anonymous', 'shm', 'memory-file', 'tmpfs', 'disk'],
  ...['pipes', 'sockets', 'page-tables', 'dentries'],
];
const MEMORY_MIB = { limit: 64, wanted: 160 };

/**
 * The kernel gives page tables back some milliseconds after their owner has ended. Until then whatever is
 * started next finds the sandbox full, and nobody but the agent to end.
 */
async function givenBack(world: SecurityWorld, box: Box): Promise<void> {
  await until('page tables are given back', async () => {
    const { memoryBytes } = await world.edge.backend.stats(box.entry.key);
    return memoryBytes < (MEMORY_MIB.limit * MIB) / 2 || undefined;
  });
}

async function expectMemoryBounded(world: SecurityWorld, kind: string): Promise<void> {
  const control = await holdPlain('memory', kind, `${MEMORY_MIB.wanted}`);
  await control.release();
  expect(control.output, `${kind} without limit`).toContain('all-taken 0');
  const limits = { memoryBytes: MEMORY_MIB.limit * MIB, diskBytes: 16 * MIB, pidsMax: 128 };
  await withBox(
    world,
    (box) =>
      expectUnharmed(box, async () => {
        const { exec } = await box.probe('memory', kind, `${MEMORY_MIB.wanted}`);
        expect(exec.state).toBe('exited');
        const { memoryPeakBytes } = await world.edge.backend.stats(box.entry.key);
        expect(memoryPeakBytes, kind).toBeLessThanOrEqual(MEMORY_MIB.limit * MIB);
        if (kind === 'page-tables') await givenBack(world, box);
      }),
    limits,
  );
}

const SHARED_TEXT = 'as all have it\n';

function scribbledTogether(): string {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-shared-'));
  const [one, other] = ['one', 'other'].map((name) => join(directory, name));
  const script =
    'mkdir "$1" "$2" && mount -t tmpfs none "$1" && mount --bind "$1" "$2" && ' +
    'printf "%s" "$3" > "$1/file" && ' +
    '"$4" scribble "$1/file" open > /dev/null; cat "$2/file"; umount "$2" "$1"';
  try {
    const words = ['sh', '-c', script, 'sh', one ?? '', other ?? '', SHARED_TEXT, PROBE];
    return runHost('unshare', '-m', ...words);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Whatever one does to a file of a shared layer: neither its neighbour nor the store sees it. */
async function expectOwnCopies(world: SecurityWorld, box: Box, other: Box): Promise<void> {
  const hashes = 'find . -type f | sort | xargs sha256sum';
  const store = () => runHost('sh', '-c', `cd ${world.node.stateRoot}/store && ${hashes}`);
  const before = store();
  expect((await other.readFile('/etc/shared')).toString()).toBe(SHARED_TEXT);
  // First as somebody who may only read: not even its own sandbox sees a change.
  const { stdout } = await box.run(['/bin/probe', 'scribble', '/etc/shared'], { user: 'user' });
  expect(outcomesOf(stdout).get('raced')).toBe('ok');
  expect((await box.readFile('/etc/shared')).toString()).toBe(SHARED_TEXT);
  await box.run(['/bin/probe', 'scribble', '/etc/shared', 'open']);
  expect((await box.readFile('/etc/shared')).toString()).toBe('M');
  await box.run('echo x >> /bin/probe-setuid; rm /etc/passwd');
  expect((await other.readFile('/etc/shared')).toString()).toBe(SHARED_TEXT);
  expect((await other.readFile('/etc/passwd')).length).toBeGreaterThan(0);
  expect(hash(await other.readFile('/bin/probe-setuid'))).toBe(hash(readFileSync(PROBE)));
  expect(store()).toBe(before);
}

/** Above what there is when the bombs go off: room for three to begin, not for what they may have. */
const CEILING_ROOM = 300;
const OWN_PIDS_MAX = 140;

/** Bombs that never give up, in sandboxes that may have more together than the node gives to all. */
async function expectNodeBounded(world: SecurityWorld): Promise<void> {
  const { edgeId } = world.node;
  expect(nodeCeiling(edgeId).max).toBe(expectedCeiling());
  const boxes = await Promise.all([1, 2, 3].map(() => world.make({ pidsMax: OWN_PIDS_MAX })));
  const neighbour = await world.make();
  const ceiling = nodeCeiling(edgeId);
  const max = ceiling.lower(CEILING_ROOM);
  try {
    const bomb = ['/bin/probe', 'forks', '9', 'again'];
    for (const box of boxes) await box.start(bomb, 'held', { stdin: true });
    await until('they have it all', () => ceiling.current() >= max || undefined);
    expect(ceiling.current()).toBe(max);
    expect(spawnSync('/bin/true').status).toBe(0);
    const { exec } = await neighbour.run('true');
    expect(exec).toMatchObject({ state: 'failed', error: { code: 'overloaded' } });
    // With the ceiling off the same bombs take more, so it is what holds them.
    ceiling.lift();
    await until('they take more', () => ceiling.current() > max || undefined);
    await Promise.all(boxes.map((box) => box.stop()));
    expect((await neighbour.run('sleep 0.01 & wait; echo forked')).stdout).toBe('forked\n');
  } finally {
    ceiling.lift();
    await Promise.all([...boxes, neighbour].map((box) => box.stop()));
  }
}

const CANARY = 'canary-of-a-neighbour';
const PLACES = ['found-abstract', 'found-shm', 'found-semaphore', 'found-messages', 'found-queue'];

/** In the sandbox that has it, the word is found everywhere: that is what shows that the search works. */
async function plantIn(box: Box): Promise<void> {
  await box.start(['/bin/probe', 'plant', CANARY], 'held', { stdin: true });
  const own = [...outcomesOf((await box.probe('sweep', backwards(CANARY))).stdout).keys()];
  for (const place of [...PLACES, 'found-in:/tmp/', 'found-name:/dev/shm/', 'found-in:/proc/']) {
    expect(
      own.some((item) => item.startsWith(place)),
      place,
    ).toBe(true);
  }
}

const sweep = async (box: Box) => [
  ...outcomesOf((await box.probe('sweep', backwards(CANARY))).stdout).keys(),
];

/** Ends a process, and lets another one have its number. */
async function takePid(pid: number): Promise<ReturnType<typeof spawn>> {
  process.kill(pid, 'SIGKILL');
  await until(`${pid} is gone`, () => (existsSync(`/proc/${pid}`) ? undefined : true));
  return until('its number is taken', () => {
    writeFileSync('/proc/sys/kernel/ns_last_pid', `${pid - 1}`);
    const stranger = spawn('/bin/sleep', ['600'], { stdio: 'ignore' });
    if (stranger.pid === pid) return stranger;
    stranger.kill('SIGKILL');
    return undefined;
  });
}

export const NEIGHBOUR_ROWS: readonly Row[] = [
  {
    ...{ id: 51, name: 'pagecache-write', expected: 'what one writes, no other and no layer has' },
    later: 'the calls that newer faults need are refused in row 58; a patched kernel shows no more',
    async check(world) {
      // Two views of one directory, without layers between: what one writes, the other has.
      expect(scribbledTogether()).not.toBe(SHARED_TEXT);
      await withBox(world, (box) => withBox(world, (other) => expectOwnCopies(world, box, other)));
    },
  },
  {
    ...{
      id: 63,
      name: 'fork-bomb-64',
      expected: 'bombs stay within their limits, and within that of the node; host can fork',
    },
    async check(world) {
      const control = await holdPlain('forks', '300');
      expect(countOf(control.output, 'taken')).toBe(300);
      await control.release();
      const boxes = await Promise.all(
        Array.from({ length: BOMBS }, () => world.make({ pidsMax: 64 })),
      );
      await Promise.all(
        boxes.map(async (box) => {
          const exec = await box.start(['/bin/probe', 'forks', '100000'], 'held', { stdin: true });
          expect(countOf(await box.output(exec), 'taken')).toBeLessThan(64);
          expect(box.host.processes().length).toBeGreaterThan(32);
        }),
      );
      await withBox(world, async (box) => {
        expect((await box.run('sleep 0.01 & wait; echo forked')).stdout).toBe('forked\n');
      });
      expect(spawnSync('/bin/true').status).toBe(0);
      await Promise.all(boxes.map((box) => box.stop()));
      await expectNodeBounded(world);
    },
  },
  {
    ...{
      id: 65,
      name: 'mem-kinds',
      expected: 'the limit holds for each kind; agent and node live',
    },
    async check(world) {
      for (const kind of MEMORY_KINDS) await expectMemoryBounded(world, kind);
    },
  },
  {
    ...{
      id: 66,
      name: 'cpu-hog',
      expected: 'a storm of threads and timers gets its share and no more',
    },
    later: 'what a latency-sensitive neighbour feels is not measured yet',
    check: (world) =>
      withBox(
        world,
        async (box) => {
          const usedBy = async (work: () => Promise<unknown>) => {
            const { cpuUs } = await world.edge.backend.stats(box.entry.key);
            const startedMs = performance.now();
            await work();
            const ms = performance.now() - startedMs;
            return ((await world.edge.backend.stats(box.entry.key)).cpuUs - cpuUs) / 1000 / ms;
          };
          const share = await usedBy(() => box.probe('storm', '60', '3000'));
          expect(share).toBeLessThan(0.3);
          // A shell of the host that runs the same tells what its children have used, in hundredths.
          const ms = 2000;
          const control = runHost('sh', '-c', `${PROBE} storm 60 ${ms}; cat /proc/$$/stat`);
          expect(countOf(control, 'threads')).toBe(60);
          const [user = 0, system = 0] =
            control.split(') ').at(-1)?.split(' ').slice(13, 15).map(Number) ?? [];
          expect(((user + system) * 10) / ms).toBeGreaterThan(0.3);
        },
        { cpuMillicores: 200 },
      ),
  },
  {
    ...{
      id: 67,
      name: 'covert-mincore',
      expected: 'nothing tells which pages of a shared layer are in memory',
    },
    check: (world) =>
      withBox(world, (box) =>
        expectRefused(box, { words: ['spy', '/bin/sleep'], unproven: ['cachestat'] }),
      ),
  },
  {
    ...{
      id: 68,
      name: 'neighbour-sweep',
      expected: 'a word that one has is found nowhere by another',
    },
    later: 'packets and DNS are shown by rows 79 to 85',
    check: (world) =>
      withBox(world, async (box) => {
        await plantIn(box);
        await withBox(world, async (neighbour) =>
          expect(await sweep(neighbour)).toEqual(['looked']),
        );
      }),
  },
  {
    ...{ id: 70, name: 'uid-reuse', expected: 'the next one with the same ids finds nothing' },
    async check(world) {
      const first = await world.make();
      const { slot } = first.entry.plan;
      const { ids } = first.host.agentState();
      await plantIn(first);
      await first.stop();
      await withBox(world, async (next) => {
        expect(next.entry.plan.slot).toBe(slot);
        expect(next.host.agentState().ids).toBe(ids);
        expect(await sweep(next)).toEqual(['looked']);
      });
    },
  },
  {
    ...{
      id: 72,
      name: 'freeze-resist',
      expected: 'pause is bounded; nothing runs meanwhile; all goes on',
    },
    later: 'a stalled layer needs the blob daemon (step C); pack_diff is not there yet',
    check: (world) =>
      withBox(world, async (box) => {
        const stopped = 'sh -c "kill -STOP \\$\\$" & sh -c "sleep 600 & wait" & ';
        const counting = 'i=0; while :; do i=$((i+1)); echo $i > /tmp/count; done';
        await box.start(`${stopped} echo begins; ${counting}`, 'begins');
        await world.edge.lifecycle.pause(box.entry, context());
        expect(box.entry.state).toBe('paused');
        const events = () => readFileSync(join(box.host.group(), 'cgroup.events'), 'utf8');
        expect(events()).toContain('frozen 1');
        const { cpuUs } = await world.edge.backend.stats(box.entry.key);
        await new Promise((resolve) => setTimeout(resolve, 200));
        const later = (await world.edge.backend.stats(box.entry.key)).cpuUs;
        expect(later - cpuUs).toBeLessThan(20_000);
        await world.edge.lifecycle.resume(box.entry, context());
        expect(events()).toContain('frozen 0');
        const before = (await box.readFile('/tmp/count')).toString();
        await until('it counts on', async () =>
          (await box.readFile('/tmp/count')).toString() !== before ? true : undefined,
        );
      }),
  },
  {
    ...{
      id: 76,
      name: 'clock-warp',
      expected: 'no clock can be set; lifetimes go by the time since boot',
    },
    later: 'a host whose clock is stepped is shown with virtual time by the unit tests of the edge',
    check: (world) =>
      withBox(world, async (box) => {
        const control = outcomesOf(runPlain('kernel'));
        const { stdout } = await box.probe('kernel');
        for (const call of ['clock-settime', 'settimeofday', 'clock-adjtime', 'adjtimex']) {
          expect(control.get(call), call).toBe('ok');
          expect(outcomesOf(stdout).get(call), call).toBe('EPERM');
        }
        await world.edge.lifecycle.renew(box.entry, { lifetimeMs: 300 }, context());
        await until('it has ended', () => (box.entry.state === 'stopped' ? true : undefined));
        expect(box.entry.endReason).toBe('ttl');
      }),
  },
  {
    ...{
      id: 77,
      name: 'time-random',
      expected: 'boot id, hostname, randomness and addresses differ',
    },
    later: 'branches of one sandbox are not there yet',
    async check(world) {
      const script =
        'cat /proc/sys/kernel/random/boot_id /proc/sys/kernel/hostname; head -c 16 /dev/urandom | ' +
        'tr -dc a-zA-Z0-9; echo; head -1 /proc/self/maps';
      // Plain containers of one host share what the kernel has once.
      const plain = () => runHost('unshare', '-mpu', '--fork', '--mount-proc', 'sh', '-c', script);
      expect(plain().split('\n')[0]).toBe(plain().split('\n')[0]);
      const said = await Promise.all(
        Array.from({ length: 4 }, () => withBox(world, (box) => box.run(script))),
      );
      const lines = said.map(({ stdout }) => stdout.split('\n'));
      for (const line of [0, 1, 2, 3]) {
        expect(new Set(lines.map((each) => each[line])).size, `line ${line}`).toBe(4);
      }
      expect(lines.map(([bootId]) => bootId)).not.toContain(plain().split('\n')[0]);
    },
  },
  {
    ...{
      id: 99,
      name: 'pid-reuse',
      expected: 'a stranger with the old number is left alone; the sandbox is failed',
    },
    async check(world) {
      const box = await world.make();
      const { pid } = box.host.agent();
      let stranger: ReturnType<typeof spawn> | undefined;
      await world.reopen(async () => {
        stranger = await takePid(pid);
      });
      const entry = world.edge.sandboxes.get(box.entry.id);
      await until('it is failed', () => (entry.state === 'failed' ? true : undefined));
      expect(stranger?.pid).toBe(pid);
      expect(readFileSync(`/proc/${pid}/comm`, 'utf8')).toBe('sleep\n');
      stranger?.kill('SIGKILL');
    },
  },
];
