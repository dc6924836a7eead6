/** `dsec shell` on a terminal, and much standard input, on containers. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MIB } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { type Cli, cliOf, type Running, startProgram } from './cli-world.ts';
import { CLI, type ServerWorld, startServerWorld } from './server-world.ts';

compileFirst(join(fileURLToPath(new URL('../../', import.meta.url)), 'packages/dsec'));

const isRoot = process.getuid?.() === 0;
const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
const INPUT_BYTES = (process.env.DSEC_TEST_LONG === '1' ? 2048 : 64) * MIB;
/** Node itself takes 90 MiB of it. */
const CLIENT_BYTES_MAX = 192 * MIB;

describe.skipIf(!isRoot)('on containers (needs root)', () => {
  let world: ServerWorld;
  let dsec: Cli;
  let id = '';
  beforeAll(async () => {
    world = await startServerWorld({ backend: 'container', base: { programs: ['sha256sum'] } });
    dsec = cliOf(world.state);
    id = (await dsec.run(['run', '--env', 'example', '--keep'])).stdout.trim();
  });
  afterAll(() => world?.stop());

  /** On a terminal of 31 rows; `beside` runs next to it in the same one. */
  const shell = (beside = 'true'): Running => {
    const argv = [process.execPath, CLI, '--state', world.state, 'shell', id];
    const words = argv.map((word) => `'${word}'`).join(' ');
    const line = `stty rows 31 columns 77; (${beside}) & exec ${words}`;
    return startProgram(['script', '-qec', line, '/dev/null'], { open: true });
  };
  const type = ({ child }: Running, text: string) => child.stdin?.write(text);

  it('shows the bytes of the shell as they are, and passes its exit code on', async () => {
    const running = shell();
    await running.said('# ');
    type(running, 'stty size; echo "A$((1+1))"\r');
    await running.said('A2');
    type(running, 'exit 7\r');
    const { end, stdout } = await running.ended;
    expect(end).toBe(7);
    expect(stdout).toContain('\r\n31 77\r\nA2\r\n');
  });

  it('gives Ctrl-C to what runs in the shell, and ends it at Ctrl-D', async () => {
    const running = shell();
    await running.said('# ');
    type(
      running,
      'sh -c \'trap "echo caught; exit 3" INT; echo "up$((1+1))"; while :; do sleep 0.1; done\'\r',
    );
    await running.said('up2');
    type(running, CTRL_C);
    await running.said('caught');
    type(running, 'echo "rc$?"\r');
    // Typed before the shell has the terminal again, it would not be an end.
    await running.said('# ', 'rc3');
    type(running, CTRL_D);
    expect((await running.ended).end).toBe(0);
  });

  it('follows the size of the terminal', async () => {
    const mark = join(world.state, 'resize');
    const running = shell(
      `while [ ! -e '${mark}' ]; do sleep 0.1; done; stty -F /dev/tty rows 40 columns 100`,
    );
    await running.said('# ');
    type(running, 'while [ "$(stty size)" != "40 100" ]; do sleep 0.1; done; echo "B$((1+1))"\r');
    writeFileSync(mark, '');
    await running.said('# ', 'B2');
    type(running, CTRL_D);
    expect((await running.ended).end).toBe(0);
  });

  it('passes much input on in constant memory', async () => {
    const running = dsec.start(['exec', id, '--', 'sha256sum'], { open: true });
    const { stdin, pid = 0 } = running.child;
    const hash = createHash('sha256');
    let peak = 0;
    for (let sent = 0; sent < INPUT_BYTES; sent += MIB) {
      const piece = Buffer.alloc(MIB, sent / MIB);
      hash.update(piece);
      if (stdin?.write(piece) === false) await once(stdin, 'drain');
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      peak = Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024;
    }
    stdin?.end();
    const { end, stdout } = await running.ended;
    expect({ end, digest: stdout.slice(0, 64) }).toEqual({ end: 0, digest: hash.digest('hex') });
    expect(peak).toBeGreaterThan(0);
    expect(peak).toBeLessThan(CLIENT_BYTES_MAX);
  });
});
