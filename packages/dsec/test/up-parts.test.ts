import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@dsec/std';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { createBackoff } from '../src/up/backoff.ts';
import { edgeNameOf } from '../src/up/edge-name.ts';
import { openLogFile } from '../src/up/log-file.ts';
import { type Part, startPart } from '../src/up/part.ts';
import { lockState } from '../src/up/state-lock.ts';

const root = mkdtempSync(join(tmpdir(), 'dsec-up-'));
const parts: Part[] = [];
afterAll(async () => {
  await Promise.all(parts.map((part) => part.stop()));
  rmSync(root, { recursive: true });
});

let count = 0;
/** A part that is a script of a shell. */
function start(script: string, notices: string[] = []): Part {
  count += 1;
  const part = startPart({
    ...{ name: 'edge', clock: systemClock, notice: (text) => void notices.push(text) },
    argv: ['/bin/sh', '-c', script],
    log: openLogFile(join(root, `part-${count}.log`)),
  });
  parts.push(part);
  return part;
}
const isAlive = (pid: number | undefined) => {
  try {
    return process.kill(pid ?? -1, 0);
  } catch {
    return false;
  }
};

describe('startPart', () => {
  it('is ready when the process says so, and stop ends it', async () => {
    const part = start('echo noise; echo \'{"ready":true,"url":"x"}\'; exec sleep 1000');
    expect(await part.ready).toEqual({ ready: true, url: 'x' });
    const { pid } = part;
    await part.stop();
    expect(isAlive(pid)).toBe(false);
  });

  it('starts it again when it dies, and says so', async () => {
    const notices: string[] = [];
    const part = start('echo \'{"ready":true}\'; exec sleep 1000', notices);
    await part.ready;
    const { pid } = part;
    process.kill(pid ?? 0, 'SIGKILL');
    await vi.waitFor(() => expect(part.pid).not.toBe(pid), { timeout: 5000 });
    expect(notices[0]).toContain('edge ended with SIGKILL');
  });

  it('gives the error with which a process refuses to start', async () => {
    const body = '{"error":{"code":"unsupported","message":"no overlay here"}}';
    await expect(start(`echo '${body}'; exit 17`).ready).rejects.toMatchObject({
      ...{ code: 'unsupported', message: 'no overlay here' },
    });
  });

  it('tries again while something that passes is in the way', async () => {
    const flag = join(root, 'flag');
    const body = '{"error":{"code":"conflict","message":"the lock is held"}}';
    const script = `test -e ${flag} || { touch ${flag}; echo '${body}'; exit 7; }; `;
    const part = start(`${script} echo '{"ready":true}'; exec sleep 1000`);
    expect(await part.ready).toEqual({ ready: true });
  });

  it('says at once that an edge id is that of another state directory, and how to choose one', async () => {
    const notices: string[] = [];
    const message =
      'launcher did not start: it ended: edge id of another state root, choose another';
    const body = JSON.stringify({ error: { code: 'unavailable', message } });
    await expect(start(`echo '${body}'; exit 14`, notices).ready).rejects.toThrow('--edge-id');
    expect(notices).toEqual([]);
  });

  it('tells it to end with its standard input, which ends with us', async () => {
    const part = start('echo \'{"ready":true}\'; test "$DSEC_END_WITH_STDIN" = 1; exec cat');
    await part.ready;
    expect(isAlive(part.pid)).toBe(true);
  });
});

describe('createBackoff', () => {
  it('doubles to a limit, and begins anew after a long run', () => {
    const backoff = createBackoff();
    const waits = Array.from({ length: 9 }, () => backoff.next(10));
    expect(waits).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
    expect(backoff.next(60_000)).toBe(100);
  });
});

describe('edgeNameOf', () => {
  const usual = { edgeId: { value: 'local', source: 'default' } };

  it('gives a state directory a name of its own, once', () => {
    const [one, two] = ['one', 'two'].map((name) => join(root, name));
    for (const path of [one, two]) mkdirSync(String(path));
    const name = edgeNameOf(String(one), usual);
    expect(name).toMatch(/^l[0-9a-f]{8}$/);
    expect(edgeNameOf(String(one), usual)).toBe(name);
    expect(edgeNameOf(String(two), usual)).not.toBe(name);
  });

  it('takes the name that was said', () => {
    const said = { edgeId: { value: 'edge7', source: 'option --edge-id' } };
    expect(edgeNameOf(root, said)).toBe('edge7');
  });
});

describe('lockState', () => {
  it('lets one in, and tells the others who it is', () => {
    const lock = lockState(root);
    expect(() => lockState(root)).toThrow(new RegExp(`process ${process.pid}`));
    lock.release();
    lockState(root).release();
  });
});

describe('openLogFile', () => {
  it('gives the lines since a position, and makes room when the file is long', () => {
    const path = join(root, 'long.log');
    const log = openLogFile(path);
    writeFileSync(log.fd, 'before\n');
    const position = log.position();
    writeFileSync(log.fd, 'after\n');
    expect(log.tailFrom(position)).toBe('after\n');
    log.rotate();
    expect(log.position()).toBeGreaterThan(0);
    writeFileSync(log.fd, Buffer.alloc(33 * 2 ** 20));
    log.rotate();
    expect(log.position()).toBe(0);
    expect(statSync(`${path}.1`).size).toBeGreaterThan(32 * 2 ** 20);
    log.close();
  });
});
