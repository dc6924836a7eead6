import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileSeccomp } from '@dsec/backend-container';
import { SANDBOX_ID_COUNT, SANDBOX_ID_FIRST } from '@dsec/protocol';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import { openLink, run } from './aether-peer.ts';
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
const key = { name: 'box', generation: 1 };

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
    const base = world.buildLayer((builder) => {
      const file = builder.file('bin/tool', ATTRIBUTES, program.length);
      file.write(program);
      file.end();
    });
    await mountLayers(client, [base]);
    const { pid } = await client.spawn(world.spec(key, { layers: [base], slot: SLOT }));

    const link = await openLink(join(world.stateRoot, 'run/sb/box-1.sock'), 1);
    const result = await run(link, ['/bin/tool', '--crash-points']);
    expect(result).toMatchObject({ exitCode: 0, trusted: true });
    expect(result.stdout.toString()).toMatch(/^accept\n/);

    const uid = /Uid:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    expect(uid).toBe(`${BASE + SESSION_IDS}`);
    link.close();
    await client.kill(key);
    await client.release(key);
    await until('nothing is left', () => world.leftovers().length === 0 || undefined);
  });
});
