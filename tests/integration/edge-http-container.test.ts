/** `dsec edge` as a process of its own, and files of a real container through it. */
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { ROUTES, type Sandbox } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { createEdgeHost, type EdgeHost, type EdgeProcess, paramsOf } from '../chaos/edge-world.ts';
import { until } from './aether-peer.ts';
import { openBackendWorld, openSharedStore, type SharedStore } from './backend-container-world.ts';

const isRoot = process.getuid?.() === 0;

let shared: SharedStore;
let host: EdgeHost;
let edge: EdgeProcess;
let sandbox: Sandbox;

compileFirst(join(import.meta.dirname, '../../packages/dsec'));

async function* blocks(count: number, seen?: (block: Buffer) => void) {
  const block = randomBytes(MIB);
  for (let i = 0; i < count; i += 1) {
    block.writeUInt32LE(i, 0);
    seen?.(block);
    yield Buffer.from(block);
  }
}

async function shell(text: string): Promise<string> {
  const body = { shell: text, waitMs: 20_000 };
  const { stdout } = await edge.client.call(ROUTES.startExec, {
    ...{ params: paramsOf(sandbox), body },
  });
  return stdout?.text ?? '';
}

describe.skipIf(!isRoot)('files of a container (needs root)', () => {
  beforeAll(async () => {
    shared = await openSharedStore();
    const world = await openBackendWorld(shared);
    await world.backend.close();
    host = createEdgeHost(world);
    edge = await host.start();
    const body = { layers: ['base/small:1.0.0'] };
    sandbox = await edge.client.call(ROUTES.createSandbox, { body });
  }, 120_000);

  afterAll(async () => {
    await edge?.end('SIGTERM');
    await host?.world.close();
    shared?.remove();
  });

  it('go in and out whole, with the rights of the user inside', async () => {
    const params = paramsOf(sandbox);
    const sent = createHash('sha256');
    const body = blocks(100, (block) => sent.update(block));
    const query = { path: '/tmp/large', mode: 0o640 };
    const entry = await edge.client.call(ROUTES.writeFile, { params, query, body });
    expect(entry).toMatchObject({ sizeBytes: 100 * MIB, mode: 0o640, uid: 0 });
    const received = createHash('sha256');
    const reply = await edge.client.call(ROUTES.readFile, {
      params,
      query: { path: '/tmp/large' },
    });
    for await (const part of reply.body) received.update(part);
    expect(received.digest('hex')).toBe(sent.digest('hex'));
    expect(await shell('stat -c "%s %a %u" /tmp/large')).toBe(`${100 * MIB} 640 0\n`);
  });

  it('are those that the user may reach, by whatever link (A8)', async () => {
    const params = paramsOf(sandbox);
    const secret = { path: '/root/s', mode: 0o600 };
    await edge.client.call(ROUTES.writeFile, {
      params,
      query: secret,
      body: Buffer.from('secret'),
    });
    const read = async (query: object) => {
      const reply = await edge.client.call(ROUTES.readFile, { params, query });
      let text = '';
      for await (const part of reply.body) text += Buffer.from(part).toString();
      return text;
    };
    // /usr is a link to the root.
    expect(await read({ path: '/usr/root/s' })).toBe('secret');
    await expect(read({ path: '/usr/root/s', user: '1000' })).rejects.toMatchObject({
      code: 'permission-denied',
    });
    // Not even root inside reads what is the agent's.
    for (const path of ['/proc/1/root/etc/passwd', '/proc/1/environ', '/proc/1/fd/3']) {
      await expect(read({ path })).rejects.toMatchObject({ code: 'permission-denied' });
    }
  });

  it('that were half written when the edge was killed are as they were', async () => {
    const params = paramsOf(sandbox);
    const query = { path: '/tmp/kept' };
    await edge.client.call(ROUTES.writeFile, { params, query, body: Buffer.from('old') });
    for (const megabytes of [1, 5, 20]) {
      const body = (async function* () {
        yield* blocks(megabytes);
        await edge.end('SIGKILL');
        yield Buffer.alloc(1);
      })();
      await expect(edge.client.call(ROUTES.writeFile, { params, query, body })).rejects.toThrow();
      edge = await host.start();
      expect(await shell('cat /tmp/kept')).toBe('old');
    }
    await until(async () => {
      const list = { params, query: { path: '/tmp' } };
      const { entries } = await edge.client.call(ROUTES.listFiles, list);
      return entries.every(({ name }) => !name.startsWith('.dsec-'));
    }, 'nothing half written');
  });
});
