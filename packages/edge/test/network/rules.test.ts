import type { SandboxPlan } from '@dsec/backend';
import type { SimBackend } from '@dsec/backend/sim';
import type { EdgeCore, SandboxEntry } from '@dsec/edge';
import type { Event, NetworkRule } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { CREATE, context, createCoreWorld, until } from '../core-world.ts';
import { createFakeNetwork } from './fake-network.ts';

const PYPI: NetworkRule = { kind: 'service', target: 'pypi' };
const NPM: NetworkRule = { kind: 'service', target: 'npm' };

/** A simulated node whose sandboxes have links. */
function createNetworkedWorld() {
  const plans: SandboxPlan[] = [];
  const wrap = (backend: SimBackend) => ({
    ...backend,
    probe: async () => ({ ...(await backend.probe()), network: {} }),
    create: (plan: SandboxPlan, signal?: AbortSignal) => {
      plans.push(plan);
      return backend.create(plan, signal);
    },
  });
  return { ...createCoreWorld({ wrap }), plans };
}

async function openNetworked() {
  const world = createNetworkedWorld();
  const network = createFakeNetwork();
  const opened = await world.open({ openNetwork: () => network });
  return { ...world, ...opened, network };
}

const update = (core: EdgeCore, entry: SandboxEntry, version: number, rules: NetworkRule[]) =>
  core.lifecycle.updateNetwork(entry, { version, rules }, context());

describe('a sandbox with rules', () => {
  it('has a link, an address of its slot and protections of the network', async () => {
    const { core, network, plans } = await openNetworked();
    const entry = await core.lifecycle.create({ ...CREATE, network: [PYPI] }, context());
    const link = { address: '100.96.0.2', gateway: '169.254.77.1' };
    expect(plans.map((plan) => plan.network)).toEqual([link]);
    expect(network.known.get(link.address)).toMatchObject({ version: 1, rules: [PYPI] });
    const view = core.sandboxes.view(entry);
    expect(view.network).toEqual({ address: link.address, version: 1, rules: [PYPI] });
    expect(view.protections).toContainEqual({ name: 'packet-filter', state: 'absent' });
    await core.lifecycle.stop(entry, context());
    expect(network.known.size).toBe(0);
  });

  it('leaves one without rules as it was', async () => {
    const { core, network, plans } = await openNetworked();
    const entry = await core.lifecycle.create({ ...CREATE, network: [] }, context());
    expect(plans[0]).not.toHaveProperty('network');
    expect(core.sandboxes.view(entry)).not.toHaveProperty('network');
    expect(network.did).toEqual([]);
    await expect(update(core, entry, 1, [PYPI])).rejects.toMatchObject({ code: 'unsupported' });
  });

  it('is not made where rules or required protections cannot be kept', async () => {
    const { core, network } = await openNetworked();
    const refused = { ...CREATE, network: [{ ...PYPI, target: 'refused' }] };
    await expect(core.lifecycle.create(refused, context())).rejects.toMatchObject({
      ...{ code: 'not-found', details: { field: 'network.0.target' } },
    });
    const required = { ...CREATE, network: [PYPI], requireProtections: ['packet-filter'] };
    await expect(core.lifecycle.create(required, context())).rejects.toMatchObject({
      code: 'unsupported',
    });
    await core.lifecycle.idle();
    expect(network.known.size).toBe(0);
  });

  it('is refused by a node whose backend links none', async () => {
    const { open } = createCoreWorld();
    const { core } = await open({ openNetwork: () => createFakeNetwork() });
    const create = core.lifecycle.create({ ...CREATE, network: [PYPI] }, context());
    await expect(create).rejects.toMatchObject({ code: 'unsupported' });
  });
});

describe('rules', () => {
  it('are replaced by those who have seen the ones in force, once', async () => {
    const { core, network } = await openNetworked();
    const entry = await core.lifecycle.create({ ...CREATE, network: [PYPI] }, context());
    await update(core, entry, 1, [NPM]);
    // The answer was lost, and the request comes again.
    await update(core, entry, 1, [NPM]);
    expect(core.sandboxes.view(entry).network).toMatchObject({ version: 2, rules: [NPM] });
    expect(core.sandboxes.view(entry).spec.network).toEqual([PYPI]);
    await expect(update(core, entry, 1, [])).rejects.toMatchObject({
      ...{ code: 'conflict', details: { version: 1, versionInForce: 2 } },
    });
    await update(core, entry, 2, []);
    expect(network.did).toEqual(['add 1', 'update 2', 'update 3']);
    await core.lifecycle.stop(entry, context());
    await expect(update(core, entry, 3, [PYPI])).rejects.toMatchObject({ code: 'state-conflict' });
  });

  it('have one winner among many at once', async () => {
    const { core } = await openNetworked();
    const entry = await core.lifecycle.create({ ...CREATE, network: [PYPI] }, context());
    const changes = Array.from({ length: 20 }, (_, i) =>
      update(core, entry, 1, [{ kind: 'domain', target: `n${i}.example.org` }]),
    );
    const results = await Promise.allSettled(changes);
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(core.sandboxes.view(entry).network?.version).toBe(2);
  });

  it('in force are those of a restarted edge', async () => {
    const world = await openNetworked();
    const entry = await world.core.lifecycle.create({ ...CREATE, network: [PYPI] }, context());
    await update(world.core, entry, 1, [NPM]);
    world.crash();
    const network = createFakeNetwork();
    const { core } = await world.open({ openNetwork: () => network });
    expect(network.did).toEqual(['add 2']);
    expect([...network.known.values()]).toMatchObject([{ version: 2, rules: [NPM] }]);
    expect(core.sandboxes.get(entry.id).state).toBe('running');
  });
});

describe('denials', () => {
  it('are events of the living, within bounds for all', async () => {
    const { core, network } = await openNetworked();
    const entry = await core.lifecycle.create({ ...CREATE, network: [PYPI] }, context());
    const cursor = core.events.cursor();
    const denied = { sandbox: entry.id, at: 'dns', reason: 'name', suppressed: 0 } as const;
    for (let i = 0; i < 600; i += 1) network.deny({ ...denied, target: `n${i}.example.org` });
    network.deny({ ...denied, sandbox: 'sb-s1-e1-zzzzzzzzzzzzzzzz' as typeof entry.id });
    await new Promise((resolve) => setTimeout(resolve, 700));
    network.deny({ ...denied, target: 'last.example.org', port: 443 });
    const seen: Event[] = [];
    const ended = new AbortController();
    const follow = core.events.follow({ cursor, signal: ended.signal, quietMs: 50 });
    for await (const event of follow) {
      if (event === undefined) break;
      seen.push(event);
    }
    expect(seen.length).toBeGreaterThanOrEqual(41);
    expect(seen.length).toBeLessThan(50);
    const { project, principal, id: sandbox } = entry;
    expect(seen[0]).toMatchObject({
      ...{ type: 'denied', project, principal, sandbox, at: 'dns', reason: 'name', version: 1 },
      ...{ target: 'n0.example.org', suppressed: 0 },
    });
    const told = seen.reduce(
      (sum, event) => sum + (event.type === 'denied' ? 1 + event.suppressed : 0),
      0,
    );
    expect(told).toBe(601);
    await core.lifecycle.stop(entry, context());
    await until(() => network.known.size === 0);
  });
});
