import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { compileSeccomp, type LauncherClient } from '@dsec/backend-container';
import { umount } from '@dsec/linux';
import { SANDBOX_ID_COUNT, SANDBOX_ID_FIRST, type SpawnFields } from '@dsec/protocol';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import {
  ATTRIBUTES,
  buildNative,
  type LauncherWorld,
  mountLayers,
  openLauncherWorld,
  SESSION_IDS,
  type TestLayer,
  until,
} from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

const SLOT = 1;
const BASE = SANDBOX_ID_FIRST + SLOT * SANDBOX_ID_COUNT;
const key = { name: 'box', generation: 1 };
const CAP_SYS_RESOURCE = 24n;
const EPERM = 1;
const EACCES = 13;
const bytes = (text: string) => Buffer.from(text);
const NAMESPACES = ['mnt', 'pid', 'uts', 'ipc', 'net', 'cgroup', 'user'];

const read = (pid: number | 'self', name: string) => readFileSync(`/proc/${pid}/${name}`, 'utf8');
const statusOf = (pid: number | 'self') =>
  new Map(
    read(pid, 'status')
      .split('\n')
      .map((line) => line.split(/:\s+/) as [string, string]),
  );

describe.runIf(canMount)('a sandbox as the host sees it (needs root)', () => {
  let world: LauncherWorld;
  let client: LauncherClient;
  let base: TestLayer;

  beforeAll(buildNative);
  beforeEach(async () => {
    world = openLauncherWorld({ seccomp: compileSeccomp() });
    ({ client } = await world.start());
    base = world.buildLayer((builder) => {
      builder.directory('etc', ATTRIBUTES);
      builder.directory('home', { ...ATTRIBUTES, uid: 1000, gid: 1000 });
      const file = builder.file('etc/hello', ATTRIBUTES, 2);
      file.write(bytes('hi'));
      file.end();
    });
    await mountLayers(client, [base]);
  });
  afterEach(() => world.close());

  const spawn = (change?: (spec: SpawnFields) => SpawnFields, layers = [base]) =>
    client.spawn(world.spec(key, { layers, slot: SLOT, ...(change && { change }) }));

  it('has a range of ids, and PID 1 has one that sessions lack', async () => {
    const { pid } = await spawn();
    const own = `${BASE + SESSION_IDS}`;
    for (const map of ['uid_map', 'gid_map']) {
      const numbers = read(pid, map).trim().split(/\s+/);
      expect(numbers, map).toEqual(['0', own, '1', '1', `${BASE}`, `${SESSION_IDS}`]);
    }
    const status = statusOf(pid);
    expect(status.get('Uid')).toBe([own, own, own, own].join('\t'));
    expect(status.get('Gid')).toBe([own, own, own, own].join('\t'));
    expect(status.get('Groups')?.trim()).toBe('');
    // What a session sees of the outside: its root is the root of the range.
    const file = await world.ask(key, 'session write /home/made');
    expect(file).toBe('0');
    expect(statSync(`/proc/${pid}/root/home/made`).uid).toBe(BASE);
    expect(statSync(`/proc/${pid}/root/home`).uid).toBe(BASE + 1000);
  });

  it('has no capability, no new privileges, and a filter', async () => {
    const { pid } = await spawn();
    const status = statusOf(pid);
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
      expect(status.get(set), set).toBe('0000000000000000');
    }
    expect(status.get('NoNewPrivs')).toBe('1');
    expect(status.get('Seccomp')).toBe('2');
    expect(status.get('Seccomp_filters')).toBe('1');
  });

  it('has its filter also where set-user-id programs keep their meaning', async () => {
    const { pid } = await spawn((spec) => ({ ...spec, noNewPrivileges: false }));
    const status = statusOf(pid);
    expect(status.get('NoNewPrivs')).toBe('0');
    expect(status.get('Seccomp')).toBe('2');
    expect(status.get('CapPrm')).toBe('0000000000000000');
  });

  it('keeps the capabilities that it is given, in every set', async () => {
    const kept = 2n ** 0n + 2n ** 7n;
    const { pid } = await spawn((spec) => ({ ...spec, capabilities: Number(kept) }));
    const status = statusOf(pid);
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
      expect(BigInt(`0x${status.get(set)}`), set).toBe(kept);
    }
  });

  it('shares no namespace with the host', async () => {
    const { pid } = await spawn();
    for (const name of NAMESPACES) {
      const own = readlinkSync(`/proc/self/ns/${name}`);
      expect(readlinkSync(`/proc/${pid}/ns/${name}`), name).not.toBe(own);
    }
  });

  it('inherits nothing: descriptors, environment, directory, limits, signals', async () => {
    const { pid } = await spawn();
    const descriptors = readdirSync(`/proc/${pid}/fd`).map(
      (number) => [number, readlinkSync(`/proc/${pid}/fd/${number}`)] as const,
    );
    expect(descriptors.map(([number]) => number)).toEqual(['0', '1', '2', '3', '4']);
    for (const [number, target] of descriptors.slice(0, 3)) {
      expect(target, number).toMatch(/null$/);
    }
    expect(descriptors[3]?.[1]).toMatch(/^socket:/);
    expect(descriptors[4]?.[1]).toMatch(/^user:/);
    expect(read(pid, 'environ')).toBe('');
    expect(readlinkSync(`/proc/${pid}/cwd`)).toBe('/');
    expect(readlinkSync(`/proc/${pid}/exe`)).toMatch(/memfd:aether/);
    // Spared where its launcher may do so.
    const maySpare = (BigInt(`0x${statusOf('self').get('CapEff')}`) >> CAP_SYS_RESOURCE) & 1n;
    expect(read(pid, 'oom_score_adj').trim()).toBe(maySpare ? '-1000' : '0');
    const limits = read(pid, 'limits');
    expect(limits).toMatch(/Max core file size\s+0\s+0/);
    expect(limits).toMatch(/Max open files\s+1024\s+4096/);
    expect(limits).toMatch(/Max locked memory\s+65536\s+65536/);
    const status = statusOf(pid);
    expect(status.get('SigBlk')).toBe('0000000000000000');
    expect(status.get('SigIgn')).toBe('0000000000000000');
    expect(status.get('Umask')).toBe('0022');
  });

  it('is in its life directory and in its limits, and sees neither', async () => {
    const { pid } = await spawn();
    const groups = read(pid, 'cgroup').trim().split('\n');
    const life = `/dsec-${world.edgeId}/box-1`;
    expect(groups).toContain(`0::${life}`);
    const limits = groups.filter((line) => /:(pids|memory|cpu):/.test(line));
    for (const line of limits) expect(line.endsWith(life), line).toBe(true);
    expect(await world.ask(key, 'session read /proc/self/cgroup')).not.toMatch(/dsec/);
  });

  it('has the mounts that were asked for, and none that tells of the host', async () => {
    const { pid } = await spawn();
    const mounts = read(pid, 'mountinfo').trim().split('\n');
    const at = (path: string) => mounts.filter((line) => line.split(' ')[4] === path).at(-1) ?? '';
    expect(at('/')).toMatch(/ rw,nodev,.* - overlay /);
    expect(at('/')).toMatch(/redirect_dir=nofollow/);
    expect(at('/proc')).toMatch(/nosuid,nodev,noexec/);
    expect(at('/proc/sys')).toMatch(/^\S+ \S+ \S+ \S+ \S+ ro,/);
    expect(at('/proc/timer_list')).toMatch(/ ro,/);
    expect(at('/sys')).toMatch(/ ro,nosuid,nodev,noexec/);
    expect(at('/dev')).toMatch(/ ro,nosuid/);
    expect(at('/dev/pts')).toMatch(/max=32/);
    expect(mounts.join('\n')).not.toContain(world.stateRoot);
    const devices = new Set(mounts.map((line) => line.split(' ')[2]));
    expect(devices.size, 'file systems in sight').toBeLessThanOrEqual(8);
    expect(await world.ask(key, 'session read /proc/timer_list')).toBe('');
    expect(await world.ask(key, 'session read /proc/mounts')).not.toContain('/tmp/');
  });

  it('shifts layers, and limits what is written over them', async () => {
    await spawn();
    expect(await world.ask(key, 'session read /etc/hello')).toBe('hi');
    const ENOSPC = 28;
    // 8 MiB of upper, in blocks of 64 KiB.
    expect(await world.ask(key, 'session fill 100')).toBe('0');
    expect(await world.ask(key, 'session fill 1000')).toBe(`${ENOSPC}`);
  });

  it('keeps root inside from PID 1, whatever it may do to its own', async () => {
    const { pid } = await spawn();
    const before = ['oom_score_adj', 'limits', 'timerslack_ns'].map((name) => read(pid, name));
    const attempts = ['kill', 'prlimit', 'priority', 'affinity', 'scheduler', 'ioprio'];
    const files = ['oom_score_adj', 'timerslack_ns', 'mem', 'environ'];
    const names = [...attempts, 'getfd', 'readv', ...files, 'ptrace'];
    const own = await world.ask(key, 'session attack-own');
    const filtered = ['getfd', 'readv'];
    expect(own.split(' ')).toEqual(
      names.map((name) => `${name}=${filtered.includes(name) ? EPERM : 0}`),
    );
    const first = await world.ask(key, 'session attack-first');
    // The kernel lets anybody open a timerslack, and asks at the write.
    const unopened = files.filter((name) => name !== 'timerslack_ns');
    expect(first.split(' ')).toEqual(
      names.map((name) => `${name}=${unopened.includes(name) ? EACCES : EPERM}`),
    );
    const after = ['oom_score_adj', 'limits', 'timerslack_ns'].map((name) => read(pid, name));
    expect(after).toEqual(before);
    // As the kernel sees it: what PID 1 owns, sessions have no name for.
    expect(statSync(`/proc/${pid}/oom_score_adj`).uid).toBe(BASE + SESSION_IDS);
    await until('PID 1 still answers', () => world.ask(key, 'session read /etc/hello'));
  });

  it('keeps sessions from new namespaces and from what all sandboxes share', async () => {
    await spawn();
    const ENOSYS = 38;
    const answers = await world.ask(key, 'session attack');
    expect(answers.split(' ')).toEqual([
      `hostname=${EPERM}`,
      `mount=${EPERM}`,
      `unshare=${EPERM}`,
      `mknod=${EPERM}`,
      `aio=${ENOSYS}`,
      `sysctl=${EACCES}`,
    ]);
  });

  it('has a share of the terminals of the host, and no more', async () => {
    const other = { name: 'other', generation: 1 };
    await spawn();
    await client.spawn(world.spec(other, { layers: [base], slot: SLOT + 1 }));
    const ENOSPC = 28;
    const [first, second] = await Promise.all([
      world.ask(key, 'session terminals'),
      world.ask(other, 'session terminals'),
    ]);
    expect([first, second]).toEqual([`32 ${ENOSPC}`, `32 ${ENOSPC}`]);
  });

  it('may use low ports and ping, by its own network namespace', async () => {
    const { pid } = await spawn();
    expect(read(pid, 'net/dev')).toMatch(/lo:/);
    expect(read(pid, 'net/dev').trim().split('\n')).toHaveLength(3);
    expect(await world.ask(key, 'session read /proc/sys/net/ipv4/ip_unprivileged_port_start')).toBe(
      '0\n',
    );
  });

  it('reads a layer beside its root, which nothing inside can change', async () => {
    const tools = world.buildLayer((builder) => builder.directory('bin', ATTRIBUTES));
    await mountLayers(client, [tools]);
    const { pid } = await spawn((spec) => ({
      ...spec,
      mounts: [
        ...spec.mounts,
        { kind: 'layer', target: bytes('/.dsec'), source: bytes(tools.layerId), flags: 0 },
      ],
    }));
    expect(readdirSync(`/proc/${pid}/root/.dsec`)).toEqual(['bin']);
    expect(await world.ask(key, 'session write /.dsec/x')).toBe('30');
  });

  it('sees what is mounted below the state root after its start', async () => {
    const place = (name: string) => join(world.stateRoot, name);
    mkdirSync(place('later'));
    execFileSync('mount', ['-t', 'tmpfs', 'later', place('later')]);
    writeFileSync(place('later/shown'), 'later');
    try {
      await spawn((spec) => ({
        ...spec,
        mounts: [
          ...spec.mounts,
          { kind: 'bind', target: bytes('/mnt/shown'), source: bytes('later'), flags: 0 },
        ],
      }));
      expect(await world.ask(key, 'session read /mnt/shown/shown')).toBe('later');
      expect(await world.ask(key, 'session write /mnt/shown/x')).toBe('30');
    } finally {
      umount(place('later'), { detach: true });
    }
  });

  it('sees files of its own over parts of /proc', async () => {
    const place = (name: string) => join(world.stateRoot, name);
    mkdirSync(place('views'));
    const views = {
      loadavg: '0.00 0.00 0.00 1/1 1\n',
      meminfo: 'MemTotal: 65536 kB\n',
      stat: 'cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n',
      'sys/kernel/random/boot_id': '11111111-2222-4333-8444-555555555555\n',
    };
    const names = Object.keys(views);
    for (const [name, text] of Object.entries(views)) {
      writeFileSync(place(`views/${name.replaceAll('/', '-')}`), text);
    }
    await spawn((spec) => ({
      ...spec,
      mounts: [
        ...spec.mounts.filter(({ target }) => !names.includes(`${target}`.slice('/proc/'.length))),
        ...names.map((name) => ({
          kind: 'bind' as const,
          target: bytes(`/proc/${name}`),
          source: bytes(`views/${name.replaceAll('/', '-')}`),
          flags: 0,
        })),
      ],
    }));
    for (const [name, text] of Object.entries(views)) {
      expect(await world.ask(key, `session read /proc/${name}`), name).toBe(text);
      expect(await world.ask(key, `session write /proc/${name}`), name).toBe(`${EACCES}`);
    }
  });

  it('runs on the processors that it is given, and not without one that is there', async () => {
    const cpus = Uint8Array.of(1);
    const { pid } = await spawn((spec) => ({ ...spec, cpus }));
    expect(statusOf(pid).get('Cpus_allowed_list')).toBe('0');
    expect(await world.ask(key, 'session processors')).toBe('1');
    await client.kill(key);
    await client.release(key);
    const nowhere = new Uint8Array(64);
    nowhere[63] = 128;
    await expect(spawn((spec) => ({ ...spec, cpus: nowhere }))).rejects.toMatchObject({
      code: 'invalid-argument',
      details: { step: 'processors' },
    });
    expect(world.leftovers()).toEqual([]);
  });

  it('may have a procfs of processes alone', async () => {
    await spawn((s) => ({
      ...s,
      mounts: s.mounts
        .filter(({ target }) => !`${target}`.startsWith('/proc/'))
        .map((m) => (m.kind === 'proc' ? { ...m, options: [bytes('subset=pid')] } : m)),
    }));
    expect(await world.ask(key, 'session read /proc/meminfo')).toBe('error 2');
    expect(await world.ask(key, 'session read /proc/self/comm')).not.toBe('');
  });
});
