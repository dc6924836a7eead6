/** `dsec edge` as a process of its own, and files of a real container through it. */
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { ROUTES, type Sandbox } from '@dsec/protocol';
import { createSeededRandom, MIB } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { createEdgeHost, type EdgeHost, type EdgeProcess, paramsOf } from '../chaos/edge-world.ts';
import { until } from './aether-peer.ts';
import { openBackendWorld, openSharedStore, type SharedStore } from './backend-container-world.ts';

const isRoot = process.getuid?.() === 0;
const KILLS = 20;

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

async function digestOf(query: { readonly path: string }): Promise<string> {
  const digest = createHash('sha256');
  const reply = await edge.client.call(ROUTES.readFile, { params: paramsOf(sandbox), query });
  for await (const part of reply.body) digest.update(part);
  return digest.digest('hex');
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
    expect(await digestOf({ path: '/tmp/large' })).toBe(sent.digest('hex'));
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

  it.each([
    ['change.after-intent', 'from'],
    ['change.after-answer', 'to'],
  ])('are never moved twice by a key whose answer was lost at %s', async (crashPoint, found) => {
    const params = paramsOf(sandbox);
    await shell('rm -f /tmp/from /tmp/to; echo x >/tmp/from');
    await edge.end('SIGTERM');
    edge = await host.start({ crashPoint });
    const body = { source: '/tmp/from', target: '/tmp/to' };
    const move = (idempotencyKey: string) =>
      edge.client.call(ROUTES.moveFile, { params, body }, { idempotencyKey });
    await expect(move(crashPoint)).rejects.toThrow();
    expect(await edge.ended).toBe('SIGKILL');
    edge = await host.start();
    const undecided = { code: 'state-conflict', details: { undecided: true } };
    await expect(move(crashPoint)).rejects.toMatchObject(undecided);
    expect(await shell('cd /tmp; ls from to 2>/dev/null')).toBe(`${found}\n`);
    // Nor later, when there is something to move again.
    await shell('rm -f /tmp/from /tmp/to; echo x >/tmp/from');
    await expect(move(crashPoint)).rejects.toMatchObject(undecided);
    expect(await shell('cd /tmp; ls from to 2>/dev/null')).toBe('from\n');
    await move(`${crashPoint}-again`);
    await move(`${crashPoint}-again`);
    expect(await shell('cd /tmp; ls from to 2>/dev/null')).toBe('to\n');
  });

  it('that were being written when the edge was killed are the old or the new ones', async () => {
    const params = paramsOf(sandbox);
    const query = { path: '/tmp/kept' };
    const random = createSeededRandom(7);
    await edge.client.call(ROUTES.writeFile, { params, query, body: Buffer.from('old') });
    let kept = createHash('sha256').update('old').digest('hex');
    const outcomes = { old: 0, new: 0 };
    for (let i = 0; i < KILLS; i += 1) {
      // The first half in the middle of the body, the others about its end.
      const isMiddle = i < KILLS / 2;
      const megabytes = 1 + random.int(20);
      const sent = createHash('sha256');
      const killed = edge;
      let end: Promise<void> | undefined;
      const body = (async function* () {
        yield* blocks(megabytes, (block) => sent.update(block));
        if (isMiddle) await killed.end('SIGKILL');
        else setTimeout(() => (end = killed.end('SIGKILL')), random.int(15));
        if (isMiddle) yield Buffer.alloc(1);
      })();
      const writing = edge.client.call(ROUTES.writeFile, { params, query, body });
      const isAnswered = await writing.then(
        () => true,
        () => false,
      );
      await until(() => !killed.isAlive(), 'the end of the edge');
      await end;
      edge = await host.start();
      const found = await digestOf(query);
      const written = sent.digest('hex');
      if (isMiddle) expect(found).toBe(kept);
      else if (isAnswered) expect(found).toBe(written);
      else expect([kept, written]).toContain(found);
      outcomes[found === kept ? 'old' : 'new'] += 1;
      kept = found;
    }
    expect(outcomes.old).toBeGreaterThanOrEqual(KILLS / 2);
    await until(async () => {
      const list = { params, query: { path: '/tmp' } };
      const { entries } = await edge.client.call(ROUTES.listFiles, list);
      return entries.every(({ name }) => !name.startsWith('.dsec-'));
    }, 'nothing half written');
  }, 300_000);
});
