import type { SimBackend } from '@dsec/backend/sim';
import type { AgentConnector } from '@dsec/edge';
import type { PolicyDocument, SandboxCreate } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { agentsOf, CREATE, context, createCoreWorld } from './core-world.ts';
import { createFakeNetwork } from './network/fake-network.ts';

const POLICY: PolicyDocument = {
  version: 1,
  extends: 'default',
  stages: {
    solve: { files: [{ path: '/answers/**', access: ['hide'] }] },
    grade: { capabilities: ['chown'] },
  },
};

/** What was done to agents, and to the mounts, in order. */
async function opened(create: SandboxCreate = {}, options = { policies: true }) {
  const told: string[] = [];
  const { world, open } = createCoreWorld(options);
  const openAgents = (backend: Parameters<typeof agentsOf>[0]): AgentConnector => ({
    ...agentsOf(backend),
    quiesce: async () => void told.push('quiesce'),
    setRules: async (_key, rules) => void told.push(`rules ${rules.capabilities.toString(16)}`),
  });
  const reopen = async () => {
    const edge = await open({ openAgents });
    const { policies } = edge.backend;
    const apply = policies?.apply;
    if (policies !== undefined && apply !== undefined) {
      Object.assign(policies, {
        apply: async (...call: Parameters<typeof apply>) => {
          told.push(`mounts ${call[1].mounts.map(({ target }) => target).join(' ')}`.trim());
          await apply(...call);
        },
      });
    }
    return edge;
  };
  const edge = await reopen();
  const entry = await edge.core.lifecycle.create({ ...CREATE, ...create }, context());
  return { ...edge, world, entry, told, reopen };
}

describe('the policy of a sandbox', () => {
  it('what the default profile takes is nothing to do', async () => {
    const { core, entry, told } = await opened();
    expect(told).toEqual([]);
    expect(entry.plan.policy).toBeUndefined();
    const names = core.sandboxes.view(entry).protections.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['policy-sockets', 'policy-capabilities']));
  });

  it('its rules are told before anything starts', async () => {
    const policy = { version: 1, capabilities: ['chown'] } as const;
    const { entry, told } = await opened({ policy: { ...policy, capabilities: ['chown'] } });
    expect(told).toEqual(['rules 1']);
    expect(entry.plan.policy).toMatchObject({ mounts: [], sessions: { capabilities: 1 } });
  });

  it('a backend without policies refuses them, and says so where that is allowed', async () => {
    const { core } = await opened({}, { policies: false });
    const make = (more: SandboxCreate) => core.lifecycle.create({ ...CREATE, ...more }, context());
    await expect(make({ policy: 'locked' })).rejects.toMatchObject({ code: 'unsupported' });
    const entry = await make({ policy: 'locked', allowDegraded: true });
    expect(core.sandboxes.view(entry).protections).toContainEqual({
      ...{ name: 'policy', state: 'absent', detail: 'this backend enforces no policies' },
    });
  });

  it('network rules are named once', async () => {
    const network = [{ kind: 'domain' as const, target: 'example.org' }];
    await expect(opened({ network, policy: { version: 1, network } })).rejects.toMatchObject({
      code: 'invalid-argument',
      details: { field: 'network' },
    });
  });
});

describe('a switch to another stage', () => {
  it('ends what runs, changes the mounts, tells the rules; once', async () => {
    const { core, entry, told, world } = await opened({ policy: POLICY });
    await core.lifecycle.setStage(entry, 'solve', false, context());
    await core.lifecycle.setStage(entry, 'solve', false, context());
    expect(told).toEqual(['quiesce', 'mounts /answers', 'rules ffffffff']);
    expect(core.sandboxes.view(entry)).toMatchObject({ stage: 'solve', state: 'running' });
    expect([...world.sandboxes.values()][0]?.policy?.mounts).toHaveLength(1);
  });

  it('one that allows more takes a right', async () => {
    const { core, entry, told } = await opened({ policy: POLICY, stage: 'solve' });
    told.length = 0;
    const refused = core.lifecycle.setStage(entry, 'build', false, context());
    await expect(refused).rejects.toMatchObject({
      ...{ code: 'permission-denied', details: { scope: 'policies:loosen', stage: 'build' } },
    });
    expect([entry.stage, told]).toEqual(['solve', []]);
    await core.lifecycle.setStage(entry, 'build', true, context());
    expect([entry.stage, told]).toEqual([...['build', ['quiesce', 'mounts', 'rules ffffffff']]]);
  });

  it('a paused sandbox is resumed for it', async () => {
    const { core, entry } = await opened({ policy: POLICY });
    await core.lifecycle.pause(entry, context());
    await core.lifecycle.setStage(entry, 'solve', false, context());
    expect(entry).toMatchObject({ state: 'running', stage: 'solve' });
  });

  it('one that could not be ended is gone on with by whoever comes next', async () => {
    const { core, entry, told, world } = await opened({ policy: POLICY });
    const { happens } = world.faults;
    let isStuck = true;
    world.faults.happens = (fault) => (fault === 'freeze-stuck' ? isStuck : happens(fault));
    const stuck = core.lifecycle.setStage(entry, 'solve', false, context());
    await expect(stuck).rejects.toMatchObject({ code: 'freeze-timeout' });
    expect(entry.stage).toBeUndefined();
    isStuck = false;
    await core.sandboxes.requireRunning(entry.id, { startsCommand: true });
    expect(entry.stage).toBe('solve');
    expect(told.filter((what) => what === 'quiesce')).toHaveLength(2);
  });

  it('one that an edge died over is ended by the next', async () => {
    const { core, entry, told, crash, reopen, world } = await opened({ policy: POLICY });
    let isStuck = true;
    const { happens } = world.faults;
    world.faults.happens = (fault) => (fault === 'freeze-stuck' ? isStuck : happens(fault));
    await core.lifecycle.setStage(entry, 'solve', false, context()).catch(() => undefined);
    crash();
    isStuck = false;
    told.length = 0;
    const next = await reopen();
    await next.core.lifecycle.idle();
    expect(next.core.sandboxes.get(entry.id)).toMatchObject({ stage: 'solve', state: 'running' });
    expect(told).toContain('quiesce');
  });

  it('what is required must be enforced in it too', async () => {
    const policy: PolicyDocument = {
      version: 1,
      stages: { grade: { files: [{ path: '/**/x', access: ['read'] }], require: ['files'] } },
    };
    const { core, entry } = await opened({ policy, allowDegraded: true });
    const refused = core.lifecycle.setStage(entry, 'grade', true, context());
    await expect(refused).rejects.toMatchObject({ code: 'unsupported' });
    expect(entry.stage).toBeUndefined();
  });

  describe('with network rules', () => {
    const network = [{ kind: 'domain' as const, target: 'example.org' }];
    const policy: PolicyDocument = { version: 1, network, stages: { grade: { network: [] } } };
    const networked = async (create: SandboxCreate) => {
      const fake = createFakeNetwork();
      const wrap = (backend: SimBackend) => ({
        ...backend,
        probe: async () => ({ ...(await backend.probe()), network: {} }),
      });
      const { open } = createCoreWorld({ policies: true, wrap });
      const { core } = await open({ openNetwork: () => fake });
      const make = () => core.lifecycle.create({ ...CREATE, ...create }, context());
      return { core, make, fake };
    };

    it('puts those of the stage in force', async () => {
      const { core, make, fake } = await networked({ policy });
      const entry = await make();
      expect(entry.network).toMatchObject({ version: 1, rules: network });
      await core.lifecycle.setStage(entry, 'grade', false, context());
      expect(entry.network).toMatchObject({ version: 2, rules: [] });
      expect([...fake.known.values()]).toMatchObject([{ version: 2, rules: [] }]);
      await core.lifecycle.setStage(entry, 'build', true, context());
      expect([...fake.known.values()]).toMatchObject([{ version: 3, rules: network }]);
    });

    it('they are changed by stages alone', async () => {
      const { core, make } = await networked({ policy });
      const entry = await make();
      const update = core.lifecycle.updateNetwork(entry, { version: 1, rules: [] }, context());
      await expect(update).rejects.toMatchObject({ code: 'state-conflict' });
    });

    it('a sandbox without a network gets none', async () => {
      const { core, make } = await networked({ policy, stage: 'grade' });
      const entry = await make();
      const switched = core.lifecycle.setStage(entry, 'build', true, context());
      await expect(switched).rejects.toMatchObject({ code: 'unsupported' });
    });

    it('a stage that shuts the network is not beside rules of the create', async () => {
      const { make } = await networked({
        ...{ network, policy: { version: 1, stages: { grade: { network: [] } } } },
      });
      await expect(make()).rejects.toMatchObject({ code: 'invalid-argument' });
    });
  });
});
