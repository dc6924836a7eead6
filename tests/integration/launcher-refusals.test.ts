import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileSeccomp, type LauncherClient } from '@dsec/backend-container';
import {
  type MountFields,
  PROC_PARTS,
  SANDBOX_ID_COUNT,
  SANDBOX_ID_FIRST,
  type SpawnFields,
} from '@dsec/protocol';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import {
  ATTRIBUTES,
  buildNative,
  LAUNCHER,
  type LauncherWorld,
  mountLayers,
  NATIVE,
  openLauncherWorld,
  SESSION_IDS,
  type TestLayer,
} from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

type Refusal = readonly [field: string, code: string, change: (spec: SpawnFields) => SpawnFields];

const SLOT = 1;
const BASE = SANDBOX_ID_FIRST + SLOT * SANDBOX_ID_COUNT;
const key = { name: 'box', generation: 1 };
const bytes = (text: string) => Buffer.from(text);

const mountAt = (kind: MountFields['kind'], target = '/proc'): MountFields => ({
  ...{ kind, target: bytes(target), flags: 0 },
});

describe.runIf(canMount)('what the launcher refuses (needs root)', () => {
  let world: LauncherWorld;
  let client: LauncherClient;
  let base: TestLayer;

  beforeAll(buildNative);
  beforeEach(async () => {
    world = openLauncherWorld({ seccomp: compileSeccomp() });
    ({ client } = await world.start());
    base = world.buildLayer((builder) => builder.directory('etc', ATTRIBUTES));
    await mountLayers(client, [base]);
  });
  afterEach(() => world.close());

  const spawn = (change?: (spec: SpawnFields) => SpawnFields, layers = [base]) =>
    client.spawn(world.spec(key, { layers, slot: SLOT, ...(change && { change }) }));

  it.each(['proc', 'dev', 'sys', 'dev/pts'])(
    'refuses an image whose /%s is a link',
    async (path) => {
      const hostile = world.buildLayer((builder) => {
        builder.directory('elsewhere', ATTRIBUTES);
        builder.symlink(path, ATTRIBUTES, '/elsewhere');
      });
      await mountLayers(client, [hostile]);
      const spawning = spawn(
        (spec) =>
          path === 'dev/pts'
            ? { ...spec, mounts: spec.mounts.filter(({ kind }) => kind !== 'dev') }
            : spec,
        [hostile, base],
      );
      await expect(spawning).rejects.toMatchObject({
        code: 'invalid-argument',
        details: { step: `mount:/${path}` },
      });
      expect(world.leftovers()).toEqual([]);
    },
  );

  it('is not made when a mask cannot be', async () => {
    const spawning = spawn((spec) => ({
      ...spec,
      mounts: [...spec.mounts, { kind: 'mask', target: bytes('/proc/no-such-part'), flags: 0 }],
    }));
    await expect(spawning).rejects.toMatchObject({
      code: 'not-found',
      details: { step: 'mount:/proc/no-such-part' },
    });
    expect(world.leftovers()).toEqual([]);
  });

  it('is not made of a layer that is not mounted', async () => {
    const absent = world.buildLayer((builder) => builder.directory('absent', ATTRIBUTES));
    await expect(spawn(undefined, [absent])).rejects.toMatchObject({
      code: 'not-found',
      details: { step: `layer:${absent.layerId}` },
    });
    expect(world.leftovers()).toEqual([]);
  });

  const refusals: readonly Refusal[] = [
    ['namespaces', 'permission-denied', (s) => ({ ...s, namespaces: s.namespaces & ~16 })],
    [
      'idMaps',
      'permission-denied',
      (s) => ({ ...s, idMaps: [{ inside: 0, outside: 0, count: 65_536 }] }),
    ],
    [
      'idMaps',
      'permission-denied',
      (s) => ({ ...s, idMaps: [{ inside: 0, outside: BASE + 1, count: 65_536 }] }),
    ],
    ['sessionIdMaps', 'permission-denied', (s) => ({ ...s, sessionIdMaps: [] })],
    [
      'sessionIdMaps',
      'permission-denied',
      (s) => ({ ...s, sessionIdMaps: [{ inside: 0, outside: 0, count: 65_536 }] }),
    ],
    [
      'sessionIdMaps',
      'permission-denied',
      (s) => ({ ...s, sessionIdMaps: [{ inside: 1, outside: 1, count: 65_535 }] }),
    ],
    ['ids', 'permission-denied', (s) => ({ ...s, uid: SESSION_IDS, gid: SESSION_IDS })],
    ['ids', 'permission-denied', (s) => ({ ...s, gid: 1 })],
    ['root', 'invalid-argument', ({ root: _, ...s }) => s],
    [
      'proc',
      'permission-denied',
      (s) => ({ ...s, mounts: s.mounts.filter((m) => m.kind !== 'mask') }),
    ],
    ['proc', 'permission-denied', (s) => ({ ...s, mounts: [] })],
    // Each would lie over what covers its parts.
    ['proc', 'permission-denied', (s) => ({ ...s, mounts: [...s.mounts, mountAt('proc')] })],
    ['proc', 'permission-denied', (s) => ({ ...s, mounts: [...s.mounts, mountAt('readonly')] })],
    ...['/proc/', '//proc', '/./proc', '/proc/.', '/etc/../proc', '/', 'proc'].map(
      (target): Refusal => [
        'mounts',
        'invalid-argument',
        (s) => ({ ...s, mounts: [...s.mounts, mountAt('readonly', target)] }),
      ],
    ),
    [
      'mounts',
      'invalid-argument',
      (s) => ({ ...s, mounts: [...s.mounts, { kind: 'bind', target: bytes('/x'), flags: 0 }] }),
    ],
    [
      'sysctls',
      'permission-denied',
      (s) => ({ ...s, sysctls: [{ name: 'kernel.core_pattern', value: 'x' }] }),
    ],
    ['privileges', 'permission-denied', (s) => ({ ...s, capabilities: 2 ** 21 })],
    ['privileges', 'permission-denied', ({ seccomp: _, ...s }) => s],
    ['privileges', 'permission-denied', (s) => ({ ...s, oomScoreAdj: -1 })],
    ['rlimits', 'permission-denied', (s) => ({ ...s, rlimits: [] })],
    ['program', 'permission-denied', (s) => ({ ...s, env: [bytes('A=b')] })],
    ['program', 'permission-denied', (s) => ({ ...s, program: bytes('layers/x') })],
    ['descriptors', 'permission-denied', (s) => ({ ...s, descriptors: s.descriptors.slice(0, 3) })],
    ['kind', 'unsupported', (s) => ({ ...s, kind: 'service' })],
  ];
  it.each(refusals)(
    'is refused when its %s break what the launcher insists on',
    async (field, code, change) => {
      await expect(spawn(change)).rejects.toMatchObject({
        code,
        details: { step: `spec:${field}` },
      });
      expect(world.leftovers()).toEqual([]);
    },
  );

  it('is refused when anything that must be covered in /proc is not', async () => {
    const parts = [...PROC_PARTS.masked, ...PROC_PARTS.guarded, ...PROC_PARTS.given];
    for (const name of parts.filter((part) => existsSync(`/proc/${part}`))) {
      const spawning = spawn((s) => ({
        ...s,
        mounts: s.mounts.filter(({ target }) => `${target}` !== `/proc/${name}`),
      }));
      await expect(spawning, name).rejects.toMatchObject({ details: { step: 'spec:proc' } });
    }
  });

  it('never gets a path out of the state root', async () => {
    for (const source of ['../etc', 'layers/../../etc', '/etc']) {
      const spawning = spawn((spec) => ({
        ...spec,
        mounts: [
          ...spec.mounts,
          { kind: 'bind', target: bytes('/x'), source: bytes(source), flags: 0 },
        ],
      }));
      await expect(spawning).rejects.toMatchObject({ details: { step: 'mount:/x' } });
    }
    expect(existsSync(`${world.stateRoot}/x`)).toBe(false);
    expect(world.leftovers()).toEqual([]);
  });

  it('serves no edge id that is in use by another state root', async () => {
    await spawn();
    const elsewhere = mkdtempSync(join(tmpdir(), 'dsec-launcher-'));
    try {
      const { status, stderr } = spawnSync(
        LAUNCHER,
        [
          ...['--state-root', elsewhere, '--edge-id', world.edgeId, '--edge-uid', '0'],
          ...['--aether', join(NATIVE, 'build/launcher_pid1')],
        ],
        { encoding: 'utf8', timeout: 20_000 },
      );
      expect(status).not.toBe(0);
      expect(stderr).toContain('edge id of another state root');
    } finally {
      rmSync(elsewhere, { recursive: true, force: true });
    }
    await client.kill(key);
    await client.release(key);
  });
});
