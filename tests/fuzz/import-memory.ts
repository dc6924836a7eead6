/** Imports with the command and watches the memory of the processes that it starts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';

const MEMORY_MIB_MAX = 256;
const SAMPLE_MS = 5;
const CLI = join(import.meta.dirname, '../../packages/dsec/dist/cli.js');

export interface Outcome {
  readonly ok: boolean;
  readonly message: string;
  /** The most that the worker had, and the most that it and its decoder had at one time. */
  readonly workerMib: number;
  readonly togetherMib: number;
  readonly decoderMib: number;
}

/** Imports as a user does, and watches all processes below the command. */
export async function importByCommand(state: string, source: string): Promise<Outcome> {
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

/** `accepts`: whether the default limits let the source in. */
export function checkMemory(outcome: Outcome, accepts: boolean): void {
  const { ok, message, workerMib, decoderMib, togetherMib } = outcome;
  const figures = [workerMib, decoderMib, togetherMib].map((mib) => mib.toFixed(0)).join(' / ');
  console.log(`worker / decoder / together: ${figures} MiB ${ok ? '' : message.slice(0, 120)}`);
  if (accepts || !ok) expect(message).toMatch(accepts ? /^/ : /more than|asks for/);
  expect(ok).toBe(accepts);
  expect(workerMib).toBeGreaterThan(40);
  expect(togetherMib).toBeLessThan(MEMORY_MIB_MAX);
}
