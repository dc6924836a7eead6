import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type AetherLink, run, startAether, until } from './aether-peer.ts';
import { isRoot } from './linux-support.ts';

const binary = new URL('../../native/build/aether', import.meta.url).pathname;
const points = execFileSync(binary, ['--crash-points']).toString().trim().split('\n');

// As process 1, whose end is that of all others.
describe.skipIf(!isRoot)('a crash of aether (needs root)', () => {
  test('has its points', () => {
    expect(points.length).toBeGreaterThan(10);
    expect(new Set(points).size).toBe(points.length);
  });

  test.each(points)('at %s is reached, and leaves nothing running', async (point) => {
    const mark = `crash-${process.pid}-${point}`;
    const aether = await startAether({
      pidNamespace: true,
      environment: { DSEC_CRASH_POINT: point },
    });
    // A write that is cut off leaves its unfinished file beside the target.
    const directory = mkdtempSync(join(tmpdir(), 'dsec-aether-crash-'));
    const file = join(directory, 'file');
    // Fails where the crash takes the link away.
    const outcome = await aether
      .connect()
      .then((link) => everything(link, mark, file))
      .then(
        () => 'survived',
        () => 'lost',
      );
    expect(outcome).toBe('lost');
    expect((await aether.ended).code).toBe(137);
    await until(() => marked(mark).length === 0, 'every process to be gone');
    await aether.stop();
    rmSync(directory, { recursive: true });
  });

  test('at the n-th time only', async () => {
    const aether = await startAether({ environment: { DSEC_CRASH_POINT: 'exec-forked:3' } });
    const link = await aether.connect();
    expect((await run(link, 'exit 1')).exitCode).toBe(1);
    expect((await run(link, 'exit 2')).exitCode).toBe(2);
    await expect(run(link, 'exit 3')).rejects.toMatchObject({ code: 'unavailable' });
    await aether.stop();
  });
});

/** Comes by every crash point. */
async function everything(link: AetherLink, mark: string, file: string): Promise<void> {
  const env = [`MARK=${mark}`];
  await run(link, 'sleep 60 & cat; echo err >&2', { env, input: 'in' });
  await run(link, 'sleep 60', { env, timeoutMs: 50 });
  await link.ask('session-open', { sessionId: 's', env: env.map((line) => Buffer.from(line)) });
  await run(link, 'sleep 60 & true', { sessionId: 's' });
  const stream = link.open();
  const fields = { path: Buffer.from(file), createParents: false, exclusive: false };
  stream.send('file-write', { offset: 0, fields });
  stream.send('stdin', { offset: 0, data: Buffer.from('x'), end: true });
  while ((await stream.next()).type !== 'done');
  await link.ask('quiesce', {});
  await link.ask('session-rules', { capabilities: 0, handledAccess: 0, trees: [] });
}

function marked(mark: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`MARK=${mark}`);
    } catch {
      return false;
    }
  });
}
