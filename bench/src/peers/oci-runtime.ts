import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MIB } from '@dsec/std';
import { openRoot, type Peer, type PeerWorld, run } from './peer.ts';

/** What docker gives a container, without what is absent in ours too. */
const CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FSETID',
  'FOWNER',
  'SETGID',
  'SETUID',
  'SETPCAP',
  'KILL',
];
const NAMESPACES = ['pid', 'network', 'ipc', 'uts', 'mount'];
const LIMITS = { memoryBytes: 1024 * MIB, pids: 256, cpuQuotaUs: 200_000, cpuPeriodUs: 100_000 };

/**
 * crun and runc by their common command line: a detached container, a command in it, and its removal. With
 * limits by cgroups, masked paths and few capabilities; without user namespace and system call filter.
 */
export function createOciRuntime(program: string, world: PeerWorld): Peer {
  const name = program.split('/').at(-1) ?? program;
  const state = ['--root', join(world.lives, `${name}-state`)];
  let lives = 0;

  const open = async () => {
    lives += 1;
    const id = `${name}-${lives}`;
    const root = openRoot(world, id);
    const config = configOf(`/${world.cgroupName}/${id}`);
    writeFileSync(join(root.directory, 'config.json'), JSON.stringify(config));
    await run(world, program, [...state, 'run', '--detach', '--bundle', root.directory, id]);
    return {
      runTrue: () => run(world, program, [...state, 'exec', id, '/bin/true']),
      async remove() {
        await run(world, program, [...state, 'delete', '--force', id]);
        root.remove();
      },
    };
  };
  return {
    program,
    async live() {
      const started = performance.now();
      const container = await open();
      const readyMs = performance.now() - started;
      await container.runTrue();
      const firstCommandMs = performance.now() - started;
      await container.remove();
      return { readyMs, firstCommandMs, stopMs: performance.now() - started - firstCommandMs };
    },
    async start() {
      const container = await open();
      await container.runTrue();
      return container.remove;
    },
    async trueMs(count) {
      const container = await open();
      const times: number[] = [];
      for (let index = 0; index < count; index += 1) {
        const started = performance.now();
        await container.runTrue();
        times.push(performance.now() - started);
      }
      await container.remove();
      return times;
    },
  };
}

function configOf(cgroupsPath: string) {
  const capabilities = CAPABILITIES.map((name) => `CAP_${name}`);
  const inert = ['nosuid', 'noexec', 'nodev'];
  const mount = (destination: string, type: string, options: readonly string[]) => ({
    ...{ destination, type, source: type, options },
  });
  return {
    ociVersion: '1.0.2',
    process: {
      ...{ terminal: false, user: { uid: 0, gid: 0 }, cwd: '/', noNewPrivileges: true },
      args: ['/bin/sleep', '100000'],
      env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin'],
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    },
    ...{ root: { path: 'rootfs' }, hostname: 'box' },
    mounts: [
      mount('/proc', 'proc', inert),
      mount('/dev', 'tmpfs', ['nosuid', 'mode=755', 'size=65536k']),
      mount('/dev/pts', 'devpts', [
        'nosuid',
        'noexec',
        'newinstance',
        'ptmxmode=0666',
        'mode=0620',
      ]),
      mount('/dev/shm', 'tmpfs', [...inert, 'mode=1777', 'size=65536k']),
      mount('/dev/mqueue', 'mqueue', inert),
      mount('/sys', 'sysfs', [...inert, 'ro']),
    ],
    linux: {
      ...{ cgroupsPath, namespaces: NAMESPACES.map((type) => ({ type })) },
      resources: {
        memory: { limit: LIMITS.memoryBytes },
        pids: { limit: LIMITS.pids },
        cpu: { quota: LIMITS.cpuQuotaUs, period: LIMITS.cpuPeriodUs },
      },
      maskedPaths: ['/proc/acpi', '/proc/kcore', '/proc/keys', '/proc/timer_list', '/sys/firmware'],
      readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
    },
  };
}
