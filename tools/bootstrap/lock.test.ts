import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BootstrapFailure } from './failure.mjs';
import { takeLock } from './lock.mjs';

let folder = '';
let path = '';
const children: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'dsec-lock-'));
  path = join(folder, 'sub/bootstrap.lock');
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

/** A process that takes the lock, hands it to a child of its own and says so. */
async function holder(): Promise<{ child: ChildProcess; grandchild: number }> {
  const url = pathToFileURL(join(import.meta.dirname, 'lock.mjs')).href;
  const script = `
    import { spawn } from 'node:child_process';
    import { takeLock } from ${JSON.stringify(url)};
    const fd = await takeLock(${JSON.stringify(path)}, () => {});
    const sleep = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
    console.log(sleep.pid);
    await new Promise(() => setInterval(() => {}, 1000));
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const line = await new Promise<string>((resolve) => {
    child.stdout?.once('data', (data: Buffer) => resolve(data.toString()));
  });
  return { child, grandchild: Number(line) };
}

describe('takeLock', () => {
  it('names its holder and keeps another process out', async () => {
    const { child, grandchild } = await holder();
    expect(readFileSync(path, 'utf8')).toContain(`process ${child.pid},`);
    const waits: string[] = [];
    const refused = takeLock(path, (who) => waits.push(who), 1);
    await expect(refused).rejects.toBeInstanceOf(BootstrapFailure);
    await expect(refused).rejects.toMatchObject({ kind: 'locked', exitCode: 9 });
    expect(waits).toEqual([expect.stringContaining(`process ${child.pid},`)]);
    process.kill(grandchild, 'SIGKILL');
  });

  it('says who may build where it cannot be written', async () => {
    // No file can be made there, by root neither.
    const refused = takeLock('/sys/kernel/bootstrap.lock', () => {});
    await expect(refused).rejects.toMatchObject({ kind: 'rights', exitCode: 4 });
  });

  it('is free after its holder was killed, but not before the holder’s commands have ended', async () => {
    const { child, grandchild } = await holder();
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    await expect(takeLock(path, () => {}, 1)).rejects.toMatchObject({ kind: 'locked' });
    process.kill(grandchild, 'SIGKILL');
    const fd = await takeLock(path, () => {}, 20);
    expect(readFileSync(path, 'utf8')).toContain(`process ${process.pid},`);
    closeSync(fd);
  });
});
