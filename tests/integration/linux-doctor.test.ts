import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type HostCheck, type HostReport, probeHost, renderHostReport } from '@dsec/linux';
import { beforeAll, describe, expect, it } from 'vitest';
import { isRoot, programOf, scratchDirectory } from './linux-support.ts';
import { tinyErofs } from './linux-tiny-erofs.ts';

const packageRoot = join(import.meta.dirname, '../../packages/linux');
const entry = join(packageRoot, 'dist/index.js');
const scratch = scratchDirectory();
const image = tinyErofs('probe').meta;

/**
 * The probe starts children from the compiled package, so that must be what this source says. Where there is
 * no compiler (the lab), the package was compiled before.
 */
beforeAll(() => {
  const compiler = programOf('typescript', 'bin/tsc');
  if (compiler === undefined) return;
  const built = spawnSync(process.execPath, [compiler, '-b', packageRoot], { encoding: 'utf8' });
  expect(built.stdout + built.stderr).toBe('');
});

/** What a probe could leave behind. */
function traces() {
  const unified = readFileSync('/proc/self/mountinfo', 'utf8').match(/ (\S+) \S+ - cgroup2 /)?.[1];
  const names = (path: string) => (existsSync(path) ? readdirSync(path) : []);
  return {
    mounts: readFileSync('/proc/self/mountinfo', 'utf8'),
    cgroups: names(unified ?? '').filter((name) => name.startsWith('dsec-doctor')),
    temporary: names(tmpdir()).filter((name) => name.startsWith('dsec-doctor')),
    descriptors: names('/proc/self/fd').length,
  };
}

const find = (report: HostReport, id: string): HostCheck => {
  const check = report.checks.find((candidate) => candidate.id === id);
  if (check === undefined) throw new Error(`no check ${id}`);
  return check;
};

describe.runIf(isRoot)('as root (needs root)', () => {
  let report: HostReport;
  let before: ReturnType<typeof traces>;
  beforeAll(async () => {
    before = traces();
    report = await probeHost({ erofsImage: image, stateDirectory: join(scratch, 'not/yet/there') });
  });

  it('leaves nothing behind', () => {
    const { descriptors, ...after } = traces();
    expect(after).toEqual({ mounts: before.mounts, cgroups: [], temporary: [] });
    expect(descriptors).toBeLessThanOrEqual(before.descriptors);
  });

  it('says of files and settings what they say', () => {
    const running = readFileSync('/proc/filesystems', 'utf8').includes('\terofs\n');
    if (running) expect(find(report, 'fs.erofs').status).toBe('ok');
    const pidMax = readFileSync('/proc/sys/kernel/pid_max', 'utf8').trim();
    expect(find(report, 'limit.kernel.pid_max').found.split(',')[0]).toBe(pidMax);
    expect(report.host.kernel).toBe(readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim());
    expect(find(report, 'machine.disk').found).toContain(scratch);
  });

  it('tried everything that it judges', () => {
    const unknown = report.checks.filter((check) => check.status === 'unknown');
    // A setting that this kernel lacks, or an architecture without a test guest, stays unknown.
    const excused = (check: HostCheck) =>
      check.id.startsWith('limit.') || (check.id === 'vm.kvm' && process.arch !== 'x64');
    expect(unknown.filter((check) => !excused(check))).toEqual([]);
  });

  it('mounts what this kernel mounts', () => {
    // The suite of mounts shows by itself that these work here, or is skipped.
    for (const id of ['fs.erofs-file', 'fs.overlay-path', 'fs.idmap']) {
      expect(find(report, id)).toMatchObject({ status: 'ok' });
    }
  });

  it('says that it cannot try EROFS without an image', async () => {
    const without = await probeHost({ stateDirectory: scratch });
    expect(find(without, 'fs.erofs-file')).toMatchObject({ status: 'unknown' });
    expect(find(without, 'fs.overlay-path')).toMatchObject({ status: 'ok' });
    expect(without.verdicts.layers.status).toBe('unknown');
  });

  it('reports a damaged image as a failure and goes on', async () => {
    const damaged = await probeHost({ erofsImage: Buffer.alloc(8192), stateDirectory: scratch });
    expect(find(damaged, 'fs.erofs-file')).toMatchObject({ status: 'missing' });
    expect(find(damaged, 'fs.overlay-path')).toMatchObject({ status: 'ok' });
  });

  it('ends at its limits when nothing can finish in time', async () => {
    const limits = { probeTimeoutMs: 1, kvmTimeoutMs: 1 };
    const report = await probeHost({ erofsImage: image, stateDirectory: scratch, ...limits });
    expect(find(report, 'fs.overlay-path').status).toBe('unknown');
    expect(find(report, 'vm.kvm').found).toBe('no answer within 1 ms');
    expect(report.verdicts.container.status).not.toBe('possible');
    const { mounts } = before;
    await expect.poll(traces).toMatchObject({ mounts, cgroups: [], temporary: [] });
  });
});

it('is readable and exact at once', async () => {
  const report = await probeHost({ stateDirectory: scratch });
  expect(JSON.parse(JSON.stringify(report))).toEqual(report);
  expect(renderHostReport(report, { color: false })).toContain('what this host can do');
});

describe.runIf(isRoot)('as an ordinary user (needs root)', () => {
  const NOBODY = 65_534;
  const drop = ['--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups'];
  const readable = spawnSync('setpriv', [...drop, 'test', '-r', packageRoot]).status === 0;

  it.runIf(readable)(
    'answers, and does not claim what it could not try (needs a repository that all may read)',
    () => {
      const script = join(scratch, 'probe.mjs');
      writeFileSync(
        script,
        `const { probeHost } = await import(${JSON.stringify(entry)});
       console.log(JSON.stringify(await probeHost({ stateDirectory: '/var/lib/dsec' })));`,
      );
      spawnSync('chmod', ['-R', 'a+rX', scratch]);
      const result = spawnSync('setpriv', [...drop, process.execPath, script], {
        encoding: 'utf8',
      });
      expect(result.stderr).toBe('');
      const report = JSON.parse(result.stdout) as HostReport;
      expect(report.host.uid).toBe(NOBODY);
      for (const id of ['privilege.root', 'fs.erofs-file', 'fs.overlay-path', 'bpf.cgroup-skb']) {
        expect(find(report, id).status, id).toBe('unknown');
      }
      expect(find(report, 'kernel.version').status).not.toBe('unknown');
      expect(find(report, 'security.seccomp').status).toBe('ok');
      expect(report.verdicts.container.status).not.toMatch(/possible|degraded/);
    },
  );
});

describe.runIf(isRoot && process.arch === 'x64' && existsSync('/dev/kvm'))(
  'KVM (needs root and /dev/kvm)',
  () => {
    it('answers for a device that is there', async () => {
      expect(statSync('/dev/kvm').isCharacterDevice()).toBe(true);
      const kvm = find(await probeHost({ stateDirectory: scratch }), 'vm.kvm');
      expect(kvm.status).not.toBe('unknown');
      expect(kvm.found).toMatch(/computed and halted|cannot run a kernel|did not finish|KVM_|exit/);
    });
  },
);
