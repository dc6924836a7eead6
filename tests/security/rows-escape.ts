/** Escape and kernel surface. */
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { expectRefused, type Row, withBox } from './rows.ts';
import { type Box, PROBE } from './security-world.ts';
import { countOf, outcomesOf, runHost, runPlain } from './unprotected.ts';

/** Namespaces and mount tables of a sandbox are those that it was made with. */
async function expectSameWorld(box: Box, attack: () => Promise<void>): Promise<void> {
  const before = { namespaces: box.host.namespaces(), mounts: box.host.mounts() };
  await attack();
  expect({ namespaces: box.host.namespaces(), mounts: box.host.mounts() }).toEqual(before);
}

/** A set-user-id program that another user runs, where nothing is against it. */
function setUserIdOnHost(): string {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-setuid-'));
  const program = join(directory, 'probe');
  try {
    chmodSync(directory, 0o755);
    copyFileSync(PROBE, program);
    chmodSync(program, 0o4755);
    return runHost(
      'setpriv',
      '--reuid',
      '1000',
      '--regid',
      '1000',
      '--clear-groups',
      program,
      'ids',
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const HOST_SETTINGS = [
  ...['/proc/sys/kernel/hostname', '/proc/sys/kernel/core_pattern', '/proc/sys/vm/swappiness'],
  ...['/proc/sys/kernel/modprobe', '/proc/sys/fs/file-max', '/proc/sys/kernel/pid_max'],
  '/proc/modules',
];

const hostSettings = () =>
  HOST_SETTINGS.filter(existsSync).map((path) => readFileSync(path, 'utf8'));

/** Named after kernels: no container of this kind needs them, and many kernels do not have them. */
const RARE_SOCKETS = [
  ...['alg', 'key', 'rxrpc', 'vsock', 'xdp', 'bluetooth', 'can', 'tipc', 'smc', 'kcm', 'qipcrtr'],
  ...['mctp', 'sctp', 'dccp', 'crypto', 'rdma', 'connector', 'netfilter', 'generic', 'xfrm'],
].map((name) => `socket-${name}`);

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '');

/** What a sandbox would free itself with, of its own cgroup. */
const filesOfGroup = (group: string) =>
  ['cgroup.procs', 'cgroup.freeze', 'cgroup.subtree_control', 'cgroup.max.descendants'].map(
    (name) => join(group, name),
  );

const readable = (path: string) => readFileSync(path, 'utf8').replace(/\d+/g, 'n');

/** Files at the top of each hierarchy, by the names that they have on the host. */
function cgroupRoots(): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '));
  const points = mounts
    .filter(([, , type]) => type?.startsWith('cgroup'))
    .map(([, path = '']) => path);
  return points
    .flatMap((path) => [join(path, 'cgroup.procs'), join(path, 'release_agent')])
    .filter((path) => existsSync(path));
}

/** Looks for them by name below `from`, opens them to write, and mounts a hierarchy. Changes nothing. */
function reachScript(from: string, paths: readonly string[]): string {
  const open = paths.map((path) => `(: >> ${path}) 2> /dev/null && echo "opened ${path}";`);
  return (
    'for name in cgroup.procs release_agent notify_on_release pids.max memory.max; do ' +
    `[ -n "$(find ${from} -name $name 2> /dev/null | head -1)" ] && echo "named $name"; done; ` +
    `${open.join(' ')} mkdir -p /tmp/own-cgroup; ` +
    'mount -t cgroup2 none /tmp/own-cgroup 2> /dev/null && echo mounted && umount /tmp/own-cgroup; true'
  );
}

export const ESCAPE_ROWS: readonly Row[] = [
  {
    ...{ id: 47, name: 'newns', expected: 'no namespace is made or entered' },
    check: (world) =>
      withBox(world, (box) =>
        expectSameWorld(box, () =>
          expectRefused(box, {
            words: ['namespaces'],
            // One is in that namespace already.
            unproven: ['setns-user', 'setns-pidfd-user'],
          }),
        ),
      ),
  },
  {
    ...{
      id: 48,
      name: 'mount-api',
      expected: 'every call that mounts or tells of mounts is refused',
    },
    check: (world) =>
      withBox(world, (box) =>
        expectSameWorld(box, () => expectRefused(box, { words: ['mounts'] })),
      ),
  },
  {
    ...{
      id: 49,
      name: 'inode-flags',
      expected: 'by ioctl and by file_setattr: refused or harmless',
    },
    check: (world) =>
      withBox(world, (box) =>
        expectRefused(box, {
          words: ['inode-flags'],
          refusals: ['EPERM', 'EOPNOTSUPP'],
          // Not every file system of a host can do these; older kernels have no file_setattr.
          unproven: ['swapext', 'exchange-range', 'move-ext', 'ficlone', 'file-setattr'],
        }),
      ),
  },
  {
    ...{
      id: 52,
      name: 'proc-walk',
      expected: 'all of /proc and /sys: nothing written, nothing of the host',
    },
    async check(world) {
      const settings = hostSettings();
      const control = outcomesOf(runPlain('walk', '/proc/sys/net/ipv4/conf/lo', 'write'));
      const opened = [...control.keys()].filter((item) => item.startsWith('write:'));
      expect(opened.length).toBeGreaterThan(0);
      await withBox(world, async (box) => {
        for (const directory of ['/proc', '/sys']) {
          const { stdout, exec } = await box.probe('walk', directory, 'write');
          expect(exec.exit).toMatchObject({ exitCode: 0 });
          expect(countOf(stdout, 'read-bytes')).toBeGreaterThan(0);
          const written = [...outcomesOf(stdout)].filter(
            ([item, outcome]) => item.startsWith('write:') && outcome === 'ok',
          );
          expect(written, directory).toEqual([]);
        }
        const hostBoot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8');
        const { stdout } = await box.run(
          'cat /proc/sys/kernel/random/boot_id /proc/modules /proc/diskstats /proc/interrupts /proc/keys',
        );
        expect(stdout).not.toContain(hostBoot.trim());
        expect(stdout.trim().split('\n')).toHaveLength(1);
      });
      expect(hostSettings()).toEqual(settings);
    },
  },
  {
    ...{
      id: 54,
      name: 'cgroup-reach',
      expected: 'no cgroup file can be opened, nor a cgroup mounted',
    },
    async check(world) {
      await withBox(world, async (box) => {
        const group = box.host.group();
        const paths = [...filesOfGroup(group), ...cgroupRoots()];
        const plain = linesOf(
          runHost('unshare', '-mpuinC', '--fork', 'sh', '-c', reachScript('/sys/fs', paths)),
        );
        expect(plain.filter((line) => line.startsWith('named')).length).toBeGreaterThan(0);
        expect(plain.filter((line) => line.startsWith('opened')).length).toBeGreaterThan(3);
        expect(plain).toContain('mounted');
        const before = filesOfGroup(group).map((path) => readable(path));
        expect((await box.run(reachScript('/', paths))).stdout).toBe('');
        expect(filesOfGroup(group).map((path) => readable(path))).toEqual(before);
        expect(box.host.mounts().join('\n')).not.toMatch(/ - cgroup2? /);
      });
    },
  },
  {
    ...{
      id: 55,
      name: 'dev-sweep',
      expected: 'no device is made or opened beside those of every container',
    },
    check: (world) =>
      withBox(world, async (box) => {
        await expectRefused(box, { words: ['devices', 'few'], unproven: [] });
        const { exec } = await box.probe('devices');
        const outcomes = [...outcomesOf(await box.output(exec))];
        expect(outcomes.length).toBeGreaterThan(4000);
        expect(outcomes.filter(([, outcome]) => outcome === 'ok')).toEqual([]);
      }),
  },
  {
    ...{
      id: 56,
      name: 'tty-push',
      expected: 'the terminal takes no order; escape sequences stay bytes',
    },
    later: 'what the command line shows of output is shown by tests/e2e',
    check: (world) =>
      withBox(world, async (box) => {
        const control = outcomesOf(
          runHost('script', '-qec', `${PROBE} terminal host`, '/dev/null').replaceAll('\r', ''),
        );
        expect(control.get('open-tty')).toBe('ok');
        expect(control.get('push-input')).not.toBe('EPERM');
        const pty = { rows: 24, columns: 80 };
        const { stdout } = await box.run(['/bin/probe', 'terminal'], { pty });
        const outcomes = outcomesOf(stdout.replaceAll('\r', ''));
        expect(outcomes.get('open-tty')).toBe('ok');
        for (const item of ['push-input', 'console-order', 'console-redirect', 'line-discipline']) {
          expect(outcomes.get(item), item).toBe('EPERM');
        }
        const escapes = '\u001b]0;title\u0007\u001b[21t\u001b]52;c;eA==\u0007';
        expect((await box.run(['/bin/cat'], { stdin: false })).stdout).toBe('');
        const printed = await box.run(['/bin/sh', '-c', 'printf "%s" "$0"', escapes]);
        expect(printed.stdout).toBe(escapes);
      }),
  },
  {
    ...{
      id: 57,
      name: 'setuid-copyup',
      expected: 'set-user-id gives nothing, below and copied up',
    },
    check: (world) =>
      withBox(world, async (box) => {
        expect(setUserIdOnHost()).toContain('euid 0');
        await box.run('cp /bin/sleep /tmp/own && chown 0:0 /tmp/own && chmod 6755 /tmp/own');
        await box.run('chmod u+w /bin/probe-setuid && echo >> /bin/probe-setuid');
        await box.run('chmod 4755 /bin/probe-setuid');
        // The agent has the last id of the sandbox's range.
        const base = Number(box.host.agentState().ids?.split('\t')[0]) - 65_535;
        expect(base).toBeGreaterThanOrEqual(2 ** 30);
        const ids = [1000, 1000, 1000, 1000].map((id) => base + id).join('\t');
        for (const [name, ...words] of [
          ['probe-setuid', 'pool', 'files', '1'],
          ['own', '60'],
        ]) {
          const path = name === 'own' ? '/tmp/own' : `/bin/${name}`;
          await box.run([path, ...words], { user: 'user', waitMs: 300, stdin: true });
          const found = box.host.processes().find((process) => process.name === name);
          const status = readFileSync(`/proc/${found?.pid}/status`, 'utf8');
          expect(status).toContain(`Uid:\t${ids}\n`);
          expect(status).toMatch(/^NoNewPrivs:\t1$/m);
        }
        const { stdout } = await box.run('stat -c %u:%a /bin/probe-setuid /tmp/own');
        expect(stdout).toBe('0:4755\n0:6755\n');
      }),
  },
  {
    ...{
      id: 58,
      name: 'bpf-perf',
      expected: 'calls that act on the machine are refused, by every ABI',
    },
    check: (world) =>
      withBox(world, async (box) => {
        await expectRefused(box, {
          words: ['kernel'],
          refusals: ['EPERM', 'ENOSYS', 'EINVAL'],
          // Without modules, kexec, quotas, dcookies, port access or core scheduling in the kernel.
          unproven: [
            ...['init-module', 'finit-module', 'delete-module', 'kexec-load', 'kexec-file-load'],
            ...['reboot', 'bpf-other', 'dcookie', 'iopl', 'ioperm', 'core-scheduling', 'quotactl'],
            ...['memory-merge', 'userfaultfd', 'modify-ldt', 'fanotify'],
          ],
        });
        await expectRefused(box, {
          words: ['sockets'],
          harmless: ['socket-unix', 'socket-tcp', 'socket-route'],
          unproven: [...RARE_SOCKETS, 'tcp-ulp', 'udp-encap'],
        });
        for (const abi of ['i386', 'x32']) {
          const { exec } = await box.probe('foreign-abi', abi);
          expect(exec.exit, abi).toMatchObject({ signal: 31 });
        }
        // Some kernels have neither; then the process ends by itself.
        expect(runPlain('foreign-abi', 'i386')).toMatch(/received/);
      }),
  },
];
