import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { mountErofs, overlayFormOf, probeHost } from '@dsec/linux';
import { expect, it, onTestFinished } from 'vitest';
import { tinyErofs } from '../integration/linux-tiny-erofs.ts';
import { isLinux612, newDirectory, onlyInGuest, shell } from './guest.ts';

const CGROUPS = '/sys/fs/cgroup';

onlyInGuest();

/** A cgroup below the root, with limits, until the test ends. */
function newCgroup(name: string, limits: Readonly<Record<string, string>>): string {
  const path = join(CGROUPS, name);
  mkdirSync(path);
  onTestFinished(() => rmdirSync(path));
  for (const [file, value] of Object.entries(limits)) writeFileSync(join(path, file), value);
  return path;
}

/** `memory.events` and its like. */
function eventsOf(path: string): ReadonlyMap<string, number> {
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  return new Map(lines.map((line) => [line.split(' ')[0] ?? '', Number(line.split(' ')[1])]));
}

it('runs Linux 6.12', (context) => {
  context.skip(!isLinux612, `this distribution has no Linux 6.12, only ${release()}`);
  expect(overlayFormOf(release())).toBe('path');
});

it('has cgroups of version 2 and no others', () => {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const types = mounts
    .map((line) => line.split(' '))
    .filter(([, , type]) => /^cgroup/.test(type ?? ''));
  expect(types.map(([, place, type]) => [place, type])).toEqual([[CGROUPS, 'cgroup2']]);
  const controllers = readFileSync(join(CGROUPS, 'cgroup.subtree_control'), 'utf8').split(/\s+/);
  expect(controllers).toEqual(expect.arrayContaining(['cpu', 'cpuset', 'io', 'memory', 'pids']));
});

it('ends what needs more memory than its cgroup may have', () => {
  const path = newCgroup('lab-memory', { 'memory.max': `${32 << 20}`, 'memory.oom.group': '1' });
  const fill = 'echo $$ >"$1/cgroup.procs"; exec head -c 256M /dev/zero | tail';
  const { code } = shell(fill, path);
  expect(code).not.toBe(0);
  expect(eventsOf(join(path, 'memory.events')).get('oom_kill')).toBeGreaterThan(0);
  expect(Number(readFileSync(join(path, 'memory.peak'), 'utf8'))).toBeLessThanOrEqual(32 << 20);
});

it('refuses processes beyond a limit', () => {
  const path = newCgroup('lab-pids', { 'pids.max': '4' });
  const { stderr } = shell(
    'echo $$ >"$1/cgroup.procs"; for n in 1 2 3 4 5 6; do sleep 1 & done; wait',
    path,
  );
  expect(stderr).toMatch(/fork/i);
  expect(eventsOf(join(path, 'pids.events')).get('max')).toBeGreaterThan(0);
});

it('holds a cgroup to its share of processor time', () => {
  const path = newCgroup('lab-cpu', { 'cpu.max': '5000 100000' });
  const count = 'echo $$ >"$1/cgroup.procs"; n=0; while [ $n -lt 5000 ]; do n=$((n + 1)); done';
  expect(shell(count, path).code).toBe(0);
  expect(eventsOf(join(path, 'cpu.stat')).get('nr_throttled')).toBeGreaterThan(0);
});

it('denies a program what its AppArmor profile does not grant', () => {
  const place = newDirectory();
  const secret = join(place, 'secret');
  const reader = join(place, 'cat');
  const profile = join(place, 'profile');
  writeFileSync(secret, 'hidden');
  writeFileSync(join(place, 'open'), 'shown');
  expect(shell('cp /lab/busybox "$1"', reader).code).toBe(0);
  // Through a pipe of the shell: the sockets that Node gives its children are mediated as well.
  const script = 'out=$("$1" "$2" 2>&1); code=$?; printf %s "$out"; exit $code';
  const read = (name: string) => shell(script, reader, join(place, name));
  expect(read('secret').stdout).toBe('hidden');

  writeFileSync(
    profile,
    `profile lab-reader ${reader} {\n  ${reader} mr,\n  ${place}/open r,\n}\n`,
  );
  expect(shell('apparmor_parser --replace --skip-cache "$1"', profile)).toMatchObject({ code: 0 });
  onTestFinished(() => {
    shell('apparmor_parser --remove "$1"', profile);
  });
  const loaded = readFileSync('/sys/kernel/security/apparmor/profiles', 'utf8');
  expect(loaded).toContain('lab-reader (enforce)');
  expect(read('secret').code).toBe(1);
  expect(read('secret').stdout).toContain('Permission denied');
  expect(read('open').stdout).toBe('shown');
});

it('mounts an EROFS image from a file, without a loop device', () => {
  const meta = join(newDirectory(), 'meta.erofs');
  writeFileSync(meta, tinyErofs('from a file').meta);
  const mount = mountErofs({ metaPath: meta, devices: [] });
  onTestFinished(() => mount.close());
  expect(readFileSync(`/proc/self/fd/${mount.fd}/hello`, 'utf8')).toBe('from a file');
  expect(shell('losetup --list --noheadings').stdout).toBe('');
});

it('is judged rightly by the host probe', async () => {
  const report = await probeHost({
    erofsImage: tinyErofs('probe').meta,
    stateDirectory: newDirectory(),
    probeTimeoutMs: 120_000,
  });
  const takesDescriptors = overlayFormOf(release()) === 'descriptor';
  const found = Object.fromEntries(report.checks.map(({ id, status }) => [id, status]));
  expect(found).toMatchObject({
    'kernel.version': takesDescriptors ? 'ok' : 'degraded',
    'cgroup.memory': 'ok',
    'cgroup.cpu': 'ok',
    'cgroup.pids': 'ok',
    'fs.erofs': 'ok',
    'fs.erofs-file': 'ok',
    'fs.overlay-path': 'ok',
    'fs.overlay-descriptor': takesDescriptors ? 'ok' : 'missing',
    'fs.idmap': 'ok',
    'security.apparmor': 'ok',
    'security.landlock': 'ok',
    'bpf.lsm': 'ok',
  });
  expect(report.verdicts.layers.status).not.toBe('impossible');
});
