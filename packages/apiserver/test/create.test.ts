/** When an edge is asked, and when a caller is answered, with a store that is slow to be durable. */
import type { Sandbox } from '@dsec/protocol';
import {
  type Digest,
  DsecError,
  type PrincipalId,
  type ProjectId,
  parseEdgeId,
  parseShardId,
  systemClock,
  systemRandom,
} from '@dsec/std';
import { createMemoryStore, type KeyStore } from '@dsec/store';
import { expect, test } from 'vitest';
import { createCreate } from '../src/create/create.ts';
import type { CreateContext, CreateParts } from '../src/create/send-create.ts';

const edge = parseEdgeId('e1');

interface World {
  readonly told: string[];
  /** The disk has it, or an error. */
  flushed(error?: DsecError): void;
  create(key?: string): Promise<Sandbox>;
}

/** `told` is what happens, in order. */
function open({ isLocal }: { readonly isLocal: boolean }): World {
  const told: string[] = [];
  const { keys } = createMemoryStore();
  let flushed: (error?: DsecError) => void = () => {};
  const disk = new Promise<DsecError | undefined>((resolve) => {
    flushed = resolve;
  });
  const slow: KeyStore = {
    ...keys,
    async create(key, value, options) {
      const revision = await keys.create(key, value);
      options?.onCarriedOut?.();
      told.push('written');
      const error = await disk;
      if (error !== undefined) throw error;
      return revision;
    },
  };
  const link = {
    ...{ edgeId: edge, shardId: parseShardId('s1'), isLocal },
    async call({ method }: { method: string }, { newSandbox }: { newSandbox?: string }) {
      told.push(newSandbox === undefined ? 'stopped' : 'asked');
      if (method === 'GET') throw new Error('nobody looks');
      return { id: newSandbox };
    },
  };
  const parts = {
    fleet: { link: () => link, links: [link] },
    placer: { choose: async () => [edge], own: { begin: () => () => {} } },
    ...{ keys: slow, quota: { take: () => {} }, clock: systemClock, random: systemRandom },
    layersOf: async () => [],
  } as unknown as CreateParts;
  const create = createCreate(parts);
  const context = (idempotencyKey: string | undefined): CreateContext => ({
    identity: {
      ...{ keyId: 'k', scopes: [] },
      ...{ project: 'p' as ProjectId, principal: 'u' as PrincipalId },
    },
    ...{ idempotencyKey, bodyDigest: `sha256:${'a'.repeat(64)}` as Digest },
    ...{ requestId: 'r', traceparent: 't', signal: new AbortController().signal },
  });
  return {
    told,
    flushed: (error) => flushed(error),
    async create(key) {
      const sandbox = await create({ layers: ['base/x:1.0.0'] }, context(key));
      told.push('answered');
      return sandbox;
    },
  };
}

const aWhile = () => new Promise((resolve) => setTimeout(resolve, 20));

test('an edge of this machine is asked while the record is flushed; nobody is answered before', async () => {
  const { told, flushed, create } = open({ isLocal: true });
  const creating = create('k');
  await aWhile();
  expect(told).toEqual(['asked', 'written']);
  flushed();
  const { id } = await creating;
  expect(told).toEqual(['asked', 'written', 'answered']);
  expect((await create('k')).id).toBe(id);
});

test('an edge that a loss of power would spare is asked when the record is on the disk', async () => {
  const { told, flushed, create } = open({ isLocal: false });
  const creating = create('k');
  await aWhile();
  expect(told).toEqual(['written']);
  flushed();
  await creating;
  expect(told).toEqual(['written', 'asked', 'answered']);
});

test('a disk that fails fails the create, and what was made is stopped', async () => {
  const { told, flushed, create } = open({ isLocal: true });
  const creating = create('k');
  await aWhile();
  flushed(new DsecError('unavailable', 'EIO'));
  await expect(creating).rejects.toMatchObject({ code: 'unavailable' });
  expect(told).toEqual(['asked', 'written', 'stopped']);
});

test('without a key nothing is written', async () => {
  const { told, create } = open({ isLocal: true });
  await create();
  expect(told).toEqual(['asked', 'answered']);
});
