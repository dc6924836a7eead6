import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { chooseAccelerator } from './accelerator.mjs';
import type { GuestFailure } from './failure.mjs';
import { runGuest } from './guest.mjs';
import { runInLab } from './lab.mjs';
import { QEMU } from './qemu.mjs';

let folder: string;
let temporary: string;

/** Puts a program in QEMU's place on PATH. It connects to its sockets, then does as a test says. */
function useQemu(behaviour: string): void {
  const program = `#!${process.execPath}
    const net = require('node:net');
    const fs = require('node:fs');
    const ports = {};
    for (const arg of process.argv) {
      const match = /^socket,id=(\\w+),path=(.*)$/.exec(arg);
      if (match) ports[match[1]] = net.connect(match[2]);
    }
    const consolePath = process.argv.find((arg) => arg.startsWith('file:')).slice(5);
    const initrd = fs.readFileSync(process.argv[process.argv.indexOf('-initrd') + 1], 'utf8');
    const tell = (line) => ports.milestones.write(line + '\\n');
    const end = () => { for (const port of Object.values(ports)) port.end(); };
    ${behaviour}`;
  writeFileSync(join(folder, QEMU), program);
  chmodSync(join(folder, QEMU), 0o755);
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dsec-lab-test-'));
  temporary = mkdtempSync(join(folder, 'tmp-'));
  vi.stubEnv('PATH', `${folder}${delimiter}${process.env.PATH}`);
  vi.stubEnv('TMPDIR', temporary);
  writeFileSync(join(folder, 'initrd'), 'initrd');
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });
});

const machine = () => ({
  accelerator: 'tcg' as const,
  memoryMib: 256,
  kernel: join(folder, 'kernel'),
  initrd: join(folder, 'initrd'),
  disks: [],
});

function newJob() {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const milestones: string[] = [];
  const events: Buffer[] = [];
  return {
    script: 'echo job',
    timeoutMs: 20_000,
    bootTimeoutMs: 20_000,
    stdout,
    stderr,
    onMilestone: ({ name }: { name: string }) => milestones.push(name),
    onEvents: (bytes: Buffer) => events.push(bytes),
    milestones,
    said: () => String(stdout.read() ?? ''),
    warned: () => String(stderr.read() ?? ''),
    told: () => Buffer.concat(events).toString(),
  };
}

const failureOf = (running: Promise<unknown>) =>
  running.then(
    () => {
      throw new Error('it should have failed');
    },
    (error: GuestFailure) => error,
  );

describe('a guest', () => {
  it('ends with the exit code of its job, and everything that it said is handed over', async () => {
    useQemu(`tell('job 2.5'); ports.stdout.write(initrd.includes('echo job') ? 'out' : 'no job');
      ports.stderr.write('err'); ports.events.write('e1\\ne2\\n'); ports.report.write('{}');
      tell('exit 3'); end();`);
    const job = newJob();
    const result = await runGuest(machine(), job);
    expect({ ...result, report: result.report.toString(), elapsedMs: 0 }).toEqual({
      code: 3,
      report: '{}',
      elapsedMs: 0,
    });
    expect([job.said(), job.warned(), job.told()]).toEqual(['out', 'err', 'e1\ne2\n']);
    expect(job.milestones).toEqual(['job', 'exit']);
    expect(readdirSync(temporary)).toEqual([]);
  });

  it.each([
    ['before its job', "tell('kernel 1')", 'boot', 71],
    ['with its job', "tell('job 1')", 'died', 70],
  ])(
    'that dies %s is told from others, with the last words of its kernel',
    async (_, first, kind, code) => {
      useQemu(
        `${first}; fs.writeFileSync(consolePath, 'Kernel panic'); console.error('qemu says'); end();`,
      );
      const failure = await failureOf(runGuest(machine(), newJob()));
      expect(failure).toMatchObject({ kind, exitCode: code });
      expect(failure.message).toMatch(/qemu says[\s\S]*Kernel panic/);
      expect(readdirSync(temporary)).toEqual([]);
    },
  );

  it.each([
    ['boots too slowly', { bootTimeoutMs: 300 }, 'boot'],
    ['runs for too long', { timeoutMs: 300 }, 'timeout'],
  ])('that %s is ended', async (_, limits, kind) => {
    useQemu('setInterval(() => {}, 1000);');
    const failure = await failureOf(runGuest(machine(), { ...newJob(), ...limits }));
    expect(failure.kind).toBe(kind);
    expect(readdirSync(temporary)).toEqual([]);
  });

  it('that does not end when it is asked to is killed', async () => {
    useQemu(
      "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); tell('job ' + process.pid);",
    );
    const abort = new AbortController();
    let pid = 0;
    const onMilestone = ({ uptimeMs }: { uptimeMs: number }) => {
      pid = uptimeMs / 1000;
      abort.abort();
    };
    const job = { ...newJob(), signal: abort.signal, onMilestone };
    expect((await failureOf(runGuest(machine(), job))).kind).toBe('died');
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });
});

describe('the lab', () => {
  const lab = () => ({ ...machine(), qemu: '10.0', release: '6.12' });

  it('boots again, and says so, when a guest died before its job', async () => {
    const marker = join(folder, 'booted');
    useQemu(`if (!fs.existsSync('${marker}')) { fs.writeFileSync('${marker}', ''); end(); }
      else { tell('job 1'); tell('exit 0'); end(); }`);
    const job = newJob();
    expect((await runInLab(lab(), 256, job)).code).toBe(0);
    expect(job.warned()).toContain('boot 1 of at most 3 failed');
  });

  it('gives up after three boots, and never starts a job twice', async () => {
    useQemu('end();');
    expect((await failureOf(runInLab(lab(), 256, newJob()))).kind).toBe('boot');
    useQemu("tell('job 1'); end();");
    const job = newJob();
    expect((await failureOf(runInLab(lab(), 256, job))).kind).toBe('died');
    expect(job.milestones).toEqual(['job']);
  });
});

describe('the accelerator', () => {
  it('is asked of a guest once, and of none without the device', async (context) => {
    const cache = join(folder, 'cache');
    const probe = vi.fn(async () => true);
    const answer = await chooseAccelerator(cache, '10.0', probe);
    context.skip(probe.mock.calls.length === 0, 'this machine has no /dev/kvm that we may open');
    expect(answer).toBe('kvm');
    expect(await chooseAccelerator(cache, '10.0', async () => false)).toBe('kvm');
    expect(await chooseAccelerator(cache, '10.1', async () => false)).toBe('tcg');
    expect(probe).toHaveBeenCalledTimes(1);
  });
});
