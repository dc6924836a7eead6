/**
 * The memory of an import at the default limits (THREATS C12): what `dsec layer import` starts, the importing
 * process and its decoder together, stays below 256 MiB for the worst trees that the limits let in.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createWriteStream, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { FLOODS, type Flood, inBatches } from './tar-floods.ts';

const isLong = process.env.DSEC_TEST_LONG === '1';
const MEMORY_MIB_MAX = 256;
const SAMPLE_MS = 5;
const CLI = join(import.meta.dirname, '../../packages/dsec/dist/cli.js');

const work = mkdtempSync(join(tmpdir(), 'dsec-tar-memory-'));
const state = join(work, 'state');
const archive = join(work, 'archive.tar');
afterAll(() => rmSync(work, { recursive: true, force: true }));
afterEach(() => rmSync(state, { recursive: true, force: true }));
compileFirst();

interface Outcome {
  readonly ok: boolean;
  readonly message: string;
  /** The most that the worker had, and the most that it and its decoder had at one time. */
  readonly workerMib: number;
  readonly togetherMib: number;
  readonly decoderMib: number;
}

/** Imports as a user does, and watches all processes below the command. */
async function importByCommand(source: string): Promise<Outcome> {
  const ref = 'base/flood:1.0.0';
  const child = spawn(process.execPath, [CLI, '--state', state, 'layer', 'import', ref, source], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let message = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    message = (message + text).slice(-2000);
  });
  const watch = watchBelow(child);
  const code = await new Promise((resolve) => child.on('close', resolve));
  return { ok: code === 0, message: message.trim(), ...watch.stop() };
}

function watchBelow(command: ChildProcess) {
  let workerMib = 0;
  let decoderMib = 0;
  let togetherMib = 0;
  const timer = setInterval(() => {
    let now = 0;
    for (const worker of childrenOf(command.pid ?? 0)) {
      const own = memoryOf(worker);
      workerMib = Math.max(workerMib, own.peakMib);
      now += own.nowMib;
      for (const decoder of childrenOf(worker)) {
        const its = memoryOf(decoder);
        decoderMib = Math.max(decoderMib, its.peakMib);
        now += its.nowMib;
      }
    }
    togetherMib = Math.max(togetherMib, now);
  }, SAMPLE_MS);
  return {
    stop() {
      clearInterval(timer);
      return { workerMib, decoderMib, togetherMib: Math.max(togetherMib, workerMib) };
    },
  };
}

/** Empty for a process that is gone. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1')
        .split(' ')
        .filter(Boolean)
        .map(Number),
    );
  } catch {
    return [];
  }
}

function memoryOf(pid: number): { nowMib: number; peakMib: number } {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    const mib = (field: string) =>
      Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) / 1024;
    return { nowMib: mib('VmRSS'), peakMib: mib('VmHWM') };
  } catch {
    return { nowMib: 0, peakMib: 0 };
  }
}

async function write({ parts, countMax }: Flood): Promise<void> {
  const members = inBatches(parts(countMax));
  await pipeline(Readable.from(members), createWriteStream(archive));
}

function check(outcome: Outcome, accepts: boolean): void {
  const { ok, message, workerMib, decoderMib, togetherMib } = outcome;
  const figures = [workerMib, decoderMib, togetherMib].map((mib) => mib.toFixed(0)).join(' / ');
  console.log(`worker / decoder / together: ${figures} MiB ${ok ? '' : message.slice(0, 120)}`);
  if (accepts || !ok) expect(message).toMatch(accepts ? /^/ : /more than|asks for/);
  expect(ok).toBe(accepts);
  expect(workerMib).toBeGreaterThan(40);
  expect(togetherMib).toBeLessThan(MEMORY_MIB_MAX);
}

const options = { timeout: isLong ? 600_000 : 120_000 };

describe('an import stays below 256 MiB with', () => {
  // All shapes take minutes; by default the three that take most.
  const shapes = FLOODS.filter((flood) => isLong || flood.isWorst);
  it.each(shapes.map((flood) => [flood.name, flood] as const))('%s', options, async (_, flood) => {
    await write(flood);
    check(await importByCommand(archive), flood.accepts);
  });

  it('a window of zstd as large as the limit', options, async () => {
    const flood = FLOODS.find(({ name }) => name === 'directories with names of 20 bytes');
    if (flood === undefined) throw new Error('the shape is gone');
    await write(flood);
    const packed = join(work, 'archive.tar.zst');
    execFileSync('zstd', ['-q', '-f', '-1', '--long=26', archive, '-o', packed]);
    const outcome = await importByCommand(packed);
    check(outcome, true);
    expect(outcome.decoderMib).toBeGreaterThan(50);
    execFileSync('zstd', ['-q', '-f', '-1', '--long=27', archive, '-o', packed]);
    check(await importByCommand(packed), false);
  });
});
