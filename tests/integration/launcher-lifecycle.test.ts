import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileSeccomp, connectLauncher, type ObjectKey } from '@dsec/backend-container';
import type { SpawnFields } from '@dsec/protocol';
import { DsecError, digestOfHex } from '@dsec/std';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import {
  ATTRIBUTES,
  buildNative,
  cgroupDirectories,
  IN_LAB,
  type LauncherWorld,
  mountLayers,
  openLauncherWorld,
  pinnedPaths,
  type RunningLauncher,
  type TestLayer,
  until,
} from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

const LIVES = process.env.DSEC_TEST_LONG === '1' ? 1000 : IN_LAB ? 10 : 100;
const key = { name: 'box', generation: 1 };
/** As many as one request takes. */
const SETTINGS = 64;
const SIGKILL = 9;
const bytes = (text: string) => Buffer.from(text);
const idOf = ({ name, generation }: ObjectKey) => `${name}-${generation}`;

describe.runIf(canMount)('the life of sandboxes (needs root)', () => {
  let world: LauncherWorld;
  let launcher: RunningLauncher;
  let base: TestLayer;

  beforeAll(buildNative);
  beforeEach(async () => {
    world = openLauncherWorld({ seccomp: compileSeccomp() });
    launcher = await world.start();
    base = world.buildLayer((builder) => {
      const file = builder.file('hello', ATTRIBUTES, 2);
      file.write(bytes('hi'));
      file.end();
    });
    await mountLayers(launcher.client, [base]);
  });
  afterEach(() => world.close());

  const specOf = (which: ObjectKey = key, slot = 1, change?: (spec: SpawnFields) => SpawnFields) =>
    world.spec(which, { layers: [base], slot, ...(change && { change }) });
  const cgroupOf = (hierarchy: string) => {
    const directories = cgroupDirectories(world.edgeId);
    const found = directories.find((path) => path.includes(`/${hierarchy}/`));
    // Where there is version 2 alone, it is at the top.
    return found ?? (hierarchy === 'unified' ? directories[0] : undefined);
  };

  it('tells how a sandbox ended, and keeps it until it is released', async () => {
    const { client, exited } = launcher;
    await client.spawn(specOf());
    await world.ask(key, 'exit 7').catch(() => {});
    await until('it is told', () => exited[0]);
    expect(exited).toEqual([{ ...key, exitCode: 7, oomKilled: false }]);
    expect(await client.listObjects()).toMatchObject([{ ...key, running: false, exitCode: 7 }]);
    expect(pinnedPaths(world.stateRoot)).toContain('/uppers/box-1');
    await client.release(key);
    expect(await client.listObjects()).toEqual([]);
    expect(world.leftovers()).toEqual([]);
  });

  it('kills every process, also those that left their session', async () => {
    const { client, exited } = launcher;
    const { pid } = await client.spawn(specOf());
    await world.ask(key, 'children');
    const life = join(cgroupOf('unified') ?? '', idOf(key));
    expect(readFileSync(join(life, 'cgroup.procs'), 'utf8').trim().split('\n')).toHaveLength(3);
    await client.kill(key);
    expect(readFileSync(join(life, 'cgroup.procs'), 'utf8')).toBe('');
    expect(existsSync(`/proc/${pid}`)).toBe(false);
    await until('it is told', () => exited[0]);
    expect(exited).toEqual([{ ...key, signal: SIGKILL, oomKilled: false }]);
    await client.kill(key);
    await client.release(key);
  });

  it('answers a kill once that could not be written', async () => {
    const { client, exited, process: child } = launcher;
    await client.spawn(specOf());
    const taken = new Set(readdirSync(`/proc/${child.pid}/fd`).map(Number));
    const free = Array.from({ length: taken.size + 1 }, (_, n) => n).find((n) => !taken.has(n));
    const limitFiles = (count: number | undefined) =>
      execFileSync('prlimit', [`--pid=${child.pid}`, `--nofile=${count}:`]);
    limitFiles(free);
    await expect(client.kill(key)).rejects.toMatchObject({ code: 'overloaded' });
    limitFiles(1024);
    await client.kill(key);
    await until('it is told', () => exited[0]);
    // A second answer to the first kill would have ended the connection.
    await client.release(key);
    expect(world.leftovers()).toEqual([]);
  });

  it('releases with the kill that was asked for before', async () => {
    const { client, exited } = launcher;
    for (const generation of [1, 2]) {
      const which = { name: 'box', generation };
      const spawned = client.spawn(specOf(which));
      // Once it runs, and while it is still being made.
      if (generation === 1) await spawned;
      await Promise.all([
        spawned.catch(() => {}),
        client.kill(which),
        client.release(which),
        client.release(which),
      ]);
      expect(await client.listObjects()).toEqual([]);
      expect(world.leftovers()).toEqual([]);
    }
    expect(exited[0]).toEqual({ name: 'box', generation: 1, signal: SIGKILL, oomKilled: false });
  });

  it('answers what is repeated as it did before', async () => {
    const { client } = launcher;
    const [first, second] = await Promise.all([client.spawn(specOf()), client.spawn(specOf())]);
    expect(second).toEqual(first);
    expect(await client.spawn(specOf())).toEqual(first);
    await expect(client.release(key)).rejects.toMatchObject({ code: 'state-conflict' });
    await Promise.all([client.kill(key), client.kill(key)]);
    await expect(client.spawn(specOf())).rejects.toMatchObject({ code: 'state-conflict' });
    await Promise.all([client.release(key), client.release(key)]);
    await client.release(key);
    await client.kill(key);
    expect(world.leftovers()).toEqual([]);
  });

  it('tells that the kernel killed it for memory, also in a pooled cgroup', async () => {
    const isVersion1 = existsSync('/sys/fs/cgroup/memory/memory.limit_in_bytes');
    const limitName = isVersion1 ? 'memory.limit_in_bytes' : 'memory.max';
    const { client, exited } = launcher;
    const limited = (spec: SpawnFields): SpawnFields => ({
      ...spec,
      root: {
        ...spec.root,
        upper: { driver: 'tmpfs', sizeBytes: 2 ** 28, inodesMax: 64 },
      } as never,
      cgroups: spec.cgroups.map((group) =>
        group.hierarchy === (isVersion1 ? 'memory' : 'unified')
          ? {
              ...group,
              directory: isVersion1 ? bytes('pool-0') : group.directory,
              settings: [{ name: limitName, value: `${2 ** 23}` }],
            }
          : group,
      ),
    });
    for (const [generation, oomKilled] of [
      [1, true],
      [2, false],
    ] as const) {
      const which = { name: 'box', generation };
      await client.spawn(specOf(which, 1, limited));
      // 64 MiB into an upper that is charged to the sandbox.
      if (oomKilled) await world.ask(which, 'session fill 1000').catch(() => {});
      await client.kill(which);
      await until('it is told', () => exited[generation - 1]);
      expect(exited[generation - 1]).toMatchObject({ generation, oomKilled });
      await client.release(which);
    }
  });

  it('changes limits of a running sandbox, and nothing else', async () => {
    const { client } = launcher;
    await client.spawn(specOf());
    const hierarchy = cgroupOf('pids') === undefined ? 'unified' : 'pids';
    const write = (name: string, on = hierarchy) =>
      client.writeCgroup({ ...key, hierarchy: on, settings: [{ name, value: '33' }] });
    await write('pids.max');
    const file = join(cgroupOf(hierarchy) ?? '', idOf(key), 'pids.max');
    expect(readFileSync(file, 'utf8').trim()).toBe('33');
    for (const name of ['cgroup.procs', 'tasks', '../pids.max', 'release_agent', '.hidden']) {
      await expect(write(name), name).rejects.toMatchObject({ code: 'permission-denied' });
    }
    await expect(write('pids.max', 'cpuset')).rejects.toMatchObject({ code: 'not-found' });
  });

  it('serves others while it writes settings, in order for each sandbox', async () => {
    const { client } = launcher;
    await client.spawn(specOf());
    const hierarchy = cgroupOf('pids') === undefined ? 'unified' : 'pids';
    const settings = Array.from({ length: SETTINGS }, (_, i) => ({
      name: 'pids.max',
      value: `${1000 + i}`,
    }));
    let overtaken = 0;
    for (let round = 0; round < 20 && overtaken === 0; round += 1) {
      const answered: string[] = [];
      const then = (what: string) => () => answered.push(what);
      await Promise.all([
        client.writeCgroup({ ...key, hierarchy, settings }).then(then('first')),
        client
          .writeCgroup({ ...key, hierarchy, settings: [{ name: 'pids.max', value: '77' }] })
          .then(then('second')),
        client.listObjects().then(then('other')),
      ]);
      expect(answered.indexOf('first')).toBeLessThan(answered.indexOf('second'));
      const file = join(cgroupOf(hierarchy) ?? '', idOf(key), 'pids.max');
      expect(readFileSync(file, 'utf8').trim()).toBe('77');
      if (answered[0] === 'other') overtaken += 1;
    }
    expect(overtaken).toBe(1);
  });

  it('leaves no setting to be written to cgroups that have another owner', async () => {
    const { client } = launcher;
    for (let generation = 1; generation <= 5; generation += 1) {
      const which = { name: 'box', generation };
      await client.spawn(specOf(which));
      const settings = Array.from({ length: SETTINGS }, () => ({
        name: 'cgroup.max.depth',
        value: '7',
      }));
      const write = () => client.writeCgroup({ ...which, hierarchy: 'unified', settings });
      const writes = Array.from({ length: 8 }, () => write().catch((error: DsecError) => error));
      await client.kill(which);
      await client.release(which);
      // Each was written, or broken off; all are answered before the release is.
      for (const result of await Promise.all(writes)) {
        if (result !== undefined) expect(['not-found', 'internal']).toContain(result.code);
      }
      expect(world.leftovers()).toEqual([]);
    }
  });

  it('mounts a layer once, and keeps it while it is used', async () => {
    const { client } = launcher;
    await mountLayers(client, [base, base]);
    await client.spawn(specOf());
    expect(await client.listLayers()).toEqual([{ layerId: base.layerId, users: 1 }]);
    await expect(client.unmountLayer(base.layerId)).rejects.toMatchObject({ code: 'conflict' });
    await client.kill(key);
    await client.release(key);
    await client.unmountLayer(base.layerId);
    await client.unmountLayer(base.layerId);
    expect(await client.listLayers()).toEqual([]);
    expect(pinnedPaths(world.stateRoot)).toEqual(['/layers']);
  });

  it('does not mount what is not the layer', async () => {
    const { client } = launcher;
    const other = { ...base, layerId: digestOfHex('ab'.repeat(32)) };
    await expect(mountLayers(client, [other])).rejects.toMatchObject({ code: 'layer-invalid' });
    writeFileSync(join(world.stateRoot, 'layers/empty'), '');
    const empty = digestOfHex('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    const nothing = { layerId: empty, meta: 'layers/empty', devices: [] };
    await expect(mountLayers(client, [nothing])).rejects.toBeInstanceOf(DsecError);
    const outside = { ...base, meta: '../etc/passwd' };
    await client.unmountLayer(base.layerId);
    await expect(mountLayers(client, [outside])).rejects.toMatchObject({
      details: { step: 'meta' },
    });
    expect(await client.listLayers()).toEqual([]);
  });

  it('leaves sandboxes and layers to the launcher after it', async () => {
    const spawned = await launcher.client.spawn(specOf());
    await launcher.kill();
    expect(await world.ask(key, 'session read /hello')).toBe('hi');

    const next = await world.start();
    expect(next.client.instance).not.toEqual(launcher.client.instance);
    expect(await next.client.listLayers()).toEqual([{ layerId: base.layerId, users: 1 }]);
    await expect(next.client.spawn(specOf())).rejects.toMatchObject({ code: 'state-conflict' });
    const { cgroups } = specOf();
    const strangers = { ...spawned, startTicks: spawned.startTicks + 1 };
    await expect(next.client.adopt({ ...strangers, cgroups })).rejects.toMatchObject({
      code: 'not-found',
    });
    await expect(
      next.client.adopt({ ...spawned, pid: process.pid, cgroups }),
    ).rejects.toMatchObject({ code: 'not-found' });
    await next.client.adopt({ ...spawned, cgroups });
    await next.client.adopt({ ...spawned, cgroups });
    expect(await next.client.listObjects()).toMatchObject([{ ...spawned, running: true }]);

    await next.client.spawn(specOf({ name: 'other', generation: 1 }, 2));
    await next.client.kill(key);
    await until('it is told', () => next.exited[0]);
    expect(next.exited).toEqual([{ ...key, oomKilled: false }]);
    await next.client.release(key);
    expect((await next.client.listObjects()).map(({ name }) => name)).toEqual(['other']);
  });

  it('releases by name what it never knew', async () => {
    await launcher.client.spawn(specOf());
    await launcher.kill();
    const { client } = await world.start();
    await expect(client.release(key)).rejects.toMatchObject({ code: 'state-conflict' });
    await client.kill(key);
    await client.release(key);
    expect(world.leftovers()).toEqual([]);
  });

  it('serves one edge: the newest, with its own id', async () => {
    const socketPath = join(world.stateRoot, 'run/launcher.sock');
    const connect = (edgeId: string, epoch: number) =>
      connectLauncher({ socketPath, edgeId, epoch });
    await expect(connect('other', 9)).rejects.toMatchObject({ code: 'permission-denied' });
    const newer = await connect(world.edgeId, 9);
    expect((await launcher.client.closed).code).toBe('unavailable');
    await expect(connect(world.edgeId, 8)).rejects.toMatchObject({ code: 'conflict' });
    expect(await newer.listObjects()).toEqual([]);
    newer.close();
  });

  it('remembers the newest edge when it is started again', async () => {
    const socketPath = join(world.stateRoot, 'run/launcher.sock');
    const newer = await connectLauncher({ socketPath, edgeId: world.edgeId, epoch: 50 });
    await launcher.kill();
    await newer.closed;
    await expect(world.start()).rejects.toMatchObject({ code: 'conflict' });
  });

  it('is one for each state root', async () => {
    const second = await world.start().catch(() => undefined);
    await second?.ended;
    expect(second?.process.exitCode ?? 2).toBe(2);
    const again = await world.connect();
    expect(again.instance).toEqual(launcher.client.instance);
    again.close();
  });

  it(`leaves nothing of ${LIVES} sandboxes`, { timeout: 300_000 }, async () => {
    const { client, process: child } = launcher;
    const descriptors = () => readdirSync(`/proc/${child.pid}/fd`).length;
    const before = descriptors();
    const live = async (index: number) => {
      const which = { name: `box${index}`, generation: 1 };
      await client.spawn(world.spec(which, { layers: [base], slot: index + 1, pooled: true }));
      await client.kill(which);
      await client.release(which);
    };
    const queue = Array.from({ length: LIVES }, (_, index) => index);
    const lane = async () => {
      for (let index = queue.pop(); index !== undefined; index = queue.pop()) await live(index);
    };
    await Promise.all(Array.from({ length: 8 }, lane));
    expect(world.leftovers()).toEqual([]);
    expect(await client.listObjects()).toEqual([]);
    expect(await client.listLayers()).toEqual([{ layerId: base.layerId, users: 0 }]);
    expect(descriptors()).toBe(before);
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8');
    expect(children).toBe('');
  });
});
