/** An edge as its callers see it: tickets in front, a simulated node behind. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSimBackend, createSimWorld, type HostileMode } from '@dsec/backend/sim';
import { createSeededRandom, parseEdgeId, parseShardId, systemClock } from '@dsec/std';
import { onTestFinished } from 'vitest';
import { defaultNodePolicy, openEdge, startEdgeServer } from '../../src/index.ts';
import { BOOT_ID, ENVIRONMENTS, HOST } from '../core-world.ts';
import { createTicketedClient, KEY_ID, newTicketKeys } from './ticketed-client.ts';

export const EDGE = parseEdgeId('e1');
export const SHARD = parseShardId('s1');

/** With `hostile` every agent has been taken over. */
export async function startEdge(hostile?: HostileMode) {
  const stateRoot = mkdtempSync(join(tmpdir(), 'dsec-edge-server-'));
  const random = createSeededRandom(11);
  const world = createSimWorld({
    ...{ clock: systemClock, random },
    ...(hostile === undefined ? {} : { hostile }),
  });
  const edge = await openEdge(
    {
      ...{ stateRoot, random, clock: systemClock, bootId: BOOT_ID, environments: ENVIRONMENTS },
      ...{ edgeId: EDGE, shardId: SHARD, policy: defaultNodePolicy(HOST), probe: () => HOST },
      openBackend: async () => createSimBackend(world),
      log: { info: () => undefined, warn: () => undefined },
      ...{ version: '0.1.0', platformProject: 'platform' as never },
      doctor: async () => ({ version: 1, takenAt: 'now' }) as never,
    },
    new AbortController().signal,
  );
  const keys = newTicketKeys();
  const log = { debug() {}, info() {}, warn() {}, error() {} } as never;
  const server = await startEdgeServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, edgeId: EDGE, clock: systemClock, log },
    ...{ sandboxes: edge.sandboxes, handlers: edge.handlers, metrics: edge.metrics },
    publicKeys: new Map([[KEY_ID, keys.publicKey]]),
  });
  const baseUrl = `http://127.0.0.1:${'port' in server.address ? server.address.port : 0}`;
  const clients: { close(): Promise<void> }[] = [];
  onTestFinished(async () => {
    for (const client of clients) await client.close();
    await server.close(100);
    await edge.close();
    rmSync(stateRoot, { recursive: true, force: true });
  });
  const clientOf = (project: string) => {
    const holder = { edge: EDGE, project, principal: 'someone' };
    const client = createTicketedClient(baseUrl, holder, keys.privateKey);
    clients.push(client);
    return client;
  };
  return { edge, server, clientOf, baseUrl };
}
