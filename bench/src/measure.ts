import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface ProcessCost {
  readonly wallMs: number;
  /** User and system time of the process and of every descendant that was waited for. */
  readonly cpuMs: number;
  /** The largest single process. */
  readonly peakRssBytes: number;
}

export interface MeasureOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a program to its end under GNU time. Throws with the program's stderr when it fails. */
export async function measureProcess(
  argv: readonly [string, ...string[]],
  options: MeasureOptions = {},
): Promise<ProcessCost> {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-bench-'));
  const report = join(directory, 'time');
  try {
    const started = process.hrtime.bigint();
    await runToEnd('/usr/bin/time', ['-o', report, '-f', '%U %S %M', ...argv], options);
    const wallMs = Number(process.hrtime.bigint() - started) / 1e6;
    const [user, system, kib] = readFileSync(report, 'utf8').trim().split(' ').map(Number);
    if (user === undefined || system === undefined || kib === undefined) {
      throw new Error(`GNU time wrote no figures for ${argv.join(' ')}`);
    }
    return { wallMs, cpuMs: (user + system) * 1000, peakRssBytes: kib * 1024 };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function runToEnd(file: string, args: readonly string[], options: MeasureOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-8192);
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${args.slice(4).join(' ')}: ${code ?? signal}\n${stderr}`));
    });
  });
}

/** Calls `sample` every `everyMs` while `work` runs; returns the largest value seen. */
export async function maximumWhile(
  everyMs: number,
  sample: () => number,
  work: () => Promise<void>,
): Promise<number> {
  let largest = sample();
  const timer = setInterval(() => {
    largest = Math.max(largest, sample());
  }, everyMs);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return Math.max(largest, sample());
}
