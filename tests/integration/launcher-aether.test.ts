import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileSeccomp } from '@dsec/backend-container';
import { SANDBOX_ID_COUNT, SANDBOX_ID_FIRST } from '@dsec/protocol';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import { type AetherLink, follow, openLink, run, startFields } from './aether-peer.ts';
import {
  ATTRIBUTES,
  buildNative,
  type LauncherWorld,
  mountLayers,
  NATIVE,
  openLauncherWorld,
  SESSION_IDS,
  until,
} from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

const SLOT = 3;
const BASE = SANDBOX_ID_FIRST + SLOT * SANDBOX_ID_COUNT;
/** What aether needs, to give pipes and terminals away. */
const CHOWN = 1;
const EACCES = 13;
const key = { name: 'box', generation: 1 };

const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
const oomScoreOf = (pid: number) => Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'));

/** Nothing inherits what may spare PID 1 when memory is short, nor takes it. */
async function expectYielding(link: AetherLink, pid: number): Promise<void> {
  expect((await run(link, ['/bin/attack', 'spare'])).stdout.toString()).toBe(`${EACCES}`);
  const fields = startFields({ argv: ['/bin/attack', 'wait'].map((word) => Buffer.from(word)) });
  const stream = link.open();
  stream.send('exec-start', { offset: 0, fields });
  expect((await stream.next()).type).toBe('exec-started');
  const [keeper = 0] = childrenOf(pid);
  expect([keeper, ...childrenOf(keeper)].map(oomScoreOf)).toEqual([900, 1000]);
  stream.send('signal', { offset: 0, fields: { signal: 9, scope: 'tree' } });
  await follow(link, stream, fields);
}

describe.runIf(canMount)('aether in a sandbox of the launcher (needs root)', () => {
  let world: LauncherWorld;

  beforeAll(buildNative);
  beforeEach(() => {
    world = openLauncherWorld({ seccomp: compileSeccomp(), agent: 'aether' });
  });
  afterEach(() => world.close());

  it('says hello, and runs commands as root of the sandbox alone', async () => {
    const { client } = await world.start();
    // The one program of this root is static: aether itself, which can print something and end.
    const program = readFileSync(join(NATIVE, 'build/aether'));
    const attacker = readFileSync(join(NATIVE, 'build/launcher_pid1'));
    const base = world.buildLayer((builder) => {
      const file = builder.file('bin/tool', ATTRIBUTES, program.length);
      file.write(program);
      file.end();
      const attack = builder.file('bin/attack', ATTRIBUTES, attacker.length);
      attack.write(attacker);
      attack.end();
    });
    await mountLayers(client, [base]);
    const { pid } = await client.spawn(
      world.spec(key, {
        layers: [base],
        slot: SLOT,
        change: (spec) => ({ ...spec, capabilities: CHOWN }),
      }),
    );

    const link = await openLink(join(world.stateRoot, 'run/sb/box-1.sock'), 1);
    const result = await run(link, ['/bin/tool', '--crash-points']);
    expect(result).toMatchObject({ exitCode: 0, trusted: true });
    expect(result.stdout.toString()).toMatch(/^accept\n/);

    const uid = /Uid:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    expect(uid).toBe(`${BASE + SESSION_IDS}`);

    // Pipes and terminals are made by aether, and belong to the user of the command.
    const streams = await run(link, ['/bin/attack', '/dev/stdout']);
    expect(streams.stdout.toString()).toBe('0 0');
    const pty = { rows: 24, columns: 80 };
    const terminal = await run(link, ['/bin/attack', '/dev/stdout'], { pty });
    expect(terminal.stdout.toString()).toBe('0 1');
    const asUser = await run(link, ['/bin/attack', '/dev/stdout'], { pty, user: '1000:1000' });
    expect(asUser.stdout.toString()).toBe('0 1');

    // A user's processes can be ended too.
    const waiting = await run(link, ['/bin/attack', 'wait'], { timeoutMs: 300, user: '1000' });
    expect(waiting).toMatchObject({ timedOut: true, signal: 9 });

    await expectYielding(link, pid);

    // Root inside against aether, with the same attempts on its own child as the control.
    const outcomes = async (what: string) => {
      const { stdout } = await run(link, ['/bin/attack', what]);
      return stdout
        .toString()
        .split(' ')
        .map((outcome) => outcome.split('='));
    };
    const own = await outcomes('attack-own');
    expect(own.filter(([, errno]) => errno === '0').length).toBeGreaterThan(9);
    const first = await outcomes('attack-first');
    expect(first.map(([name]) => name)).toEqual(own.map(([name]) => name));
    expect(first.filter(([, errno]) => errno === '0')).toEqual([]);
    expect((await run(link, ['/bin/tool', '--crash-points'])).exitCode).toBe(0);
    link.close();
    await client.kill(key);
    await client.release(key);
    await until('nothing is left', () => world.leftovers().length === 0 || undefined);
  });
});
