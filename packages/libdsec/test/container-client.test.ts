import type { SandboxCreate } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { DSecClient, DSecContainerRunArgs } from '../src/index.ts';
import { API_KEY, sandboxInfo, startFake } from './support/fake-server.ts';

async function bodyOf(fields: ConstructorParameters<typeof DSecContainerRunArgs>[0]) {
  const bodies: SandboxCreate[] = [];
  const url = await startFake({
    getVersion: async () => ({ version: '1', api: 'v1', frames: 1 }),
    async createSandbox({ body }) {
      bodies.push(body);
      return sandboxInfo();
    },
  });
  await using client = await new DSecClient({ url, apiKey: API_KEY }).open();
  await client.runContainer(new DSecContainerRunArgs(fields), { timeout: 10 });
  return bodies[0];
}

describe('the form of the report', () => {
  it('is a create of a container', async () => {
    expect(
      await bodyOf({
        ...{ containerImage: 'example', memoryLimitMb: 4096, cpuCoresLimit: 0.5 },
        ...{ ttlRunningStop: 300, networkRules: {}, initUser: 'root' },
      }),
    ).toEqual({
      ...{ environment: 'example', backend: 'container', user: 'root', network: [] },
      limits: { memoryBytes: 4096 * 1024 * 1024, cpuMillicores: 500 },
      ttl: { lifetimeMs: 300_000 },
    });
  });

  it('names images as layers, bases or environments, and rules by their kind', async () => {
    const layer = await bodyOf({ containerImage: 'workspace/x:^1' });
    expect(layer).toMatchObject({ layers: ['workspace/x:^1'] });
    const base = await bodyOf({ containerImage: 'debian:12.0.0' });
    expect(base).toMatchObject({ layers: ['base/debian:12.0.0'] });
    const rules = {
      ...{ domain: ['example.org', '*.example.net'], service: ['mirror'] },
      ...{ npm: false, pypi: true },
    };
    expect(await bodyOf({ containerImage: 'x', networkRules: rules })).toMatchObject({
      network: [
        { kind: 'domain', target: 'example.org' },
        { kind: 'domain', target: '*.example.net' },
        { kind: 'service', target: 'mirror' },
        { kind: 'service', target: 'pypi' },
      ],
    });
  });

  it('is opened first, and sees then that the server answers', async () => {
    const client = new DSecClient({ url: await startFake({}), apiKey: API_KEY });
    expect(() => client.runContainer({ containerImage: 'x' })).toThrow(/open\(\)/);
    await expect(client.open()).rejects.toMatchObject({ code: 'not-found' });
    await client.close();
  });
});
