/** Mounts that the policy compiler makes, as the launcher makes them and the host sees them. */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { compileSeccomp, type LauncherClient } from '@dsec/backend-container';
import {
  BARE_FACTS,
  compileMounts,
  compilePolicy,
  parsePolicy,
  resolvePolicy,
  type Verb,
} from '@dsec/policy';
import { asDsecError } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import { expectKept, promisesOf } from '../../packages/policy/test/mechanism-check.ts';
import {
  ATTRIBUTES,
  buildNative,
  type LauncherWorld,
  mountLayers,
  openLauncherWorld,
  type TestLayer,
} from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

const NAMES = ['a', 'b', 'ab'];
const DIRECTORIES = [
  ...NAMES.map((one) => `/${one}`),
  ...NAMES.flatMap((one) => NAMES.map((two) => `/${one}/${two}`)),
];

type Rule = readonly [path: string, ...access: string[]];
const policyOf = (...rules: readonly Rule[]) =>
  resolvePolicy(
    parsePolicy({ version: 1, files: rules.map(([path, ...access]) => ({ path, access })) }),
  );

describe.runIf(canMount)('mounts of a policy in a sandbox (needs root)', () => {
  let world: LauncherWorld;
  let client: LauncherClient;
  let base: TestLayer;
  let generation = 0;

  beforeAll(async () => {
    buildNative();
    world = openLauncherWorld({ seccomp: compileSeccomp() });
    ({ client } = await world.start());
    base = world.buildLayer((builder) => {
      for (const directory of DIRECTORIES) {
        builder.directory(directory.slice(1), ATTRIBUTES);
        const file = builder.file(`${directory.slice(1)}/f`, ATTRIBUTES, 2);
        file.write(Buffer.from('hi'));
        file.end();
      }
    });
    await mountLayers(client, [base]);
  });
  afterAll(() => world?.close());

  /** Makes a sandbox with the mounts, looks at it, and removes it. */
  async function inSandbox<T>(
    mounts: ReturnType<typeof compileMounts>['output'],
    look: (pid: number) => T,
  ): Promise<T> {
    generation += 1;
    const key = { name: 'box', generation };
    const change = (spec: ReturnType<LauncherWorld['spec']>) => ({
      ...spec,
      mounts: [...spec.mounts, ...mounts],
    });
    const { pid } = await client.spawn(world.spec(key, { layers: [base], slot: 1, change }));
    try {
      return look(pid);
    } finally {
      await client.kill(key);
      await client.release(key);
    }
  }

  /** What root of the host can do to a directory by the mounts of the sandbox. */
  function deniedAt(pid: number, directory: string): ReadonlySet<Verb> {
    const path = `/proc/${pid}/root${directory}`;
    const denied = new Set<Verb>();
    if (!readdirSync(path).includes('f')) denied.add('read');
    try {
      writeFileSync(`${path}/made`, '');
      rmSync(`${path}/made`);
    } catch (thrown) {
      if (asDsecError(thrown).code !== 'permission-denied') throw thrown;
      denied.add('write');
    }
    if (isNoexec(readFileSync(`/proc/${pid}/mountinfo`, 'utf8'), directory)) denied.add('exec');
    return denied;
  }

  it('what is hidden is empty, what is read-only stays as it is, also what is not there', async () => {
    const policy = policyOf(
      ['/a/b', 'hide'],
      ['/b', 'read', 'exec'],
      ['/ab', 'read'],
      ['/etc/ld.so.preload', 'hide'],
    );
    const { output, notEnforced } = compileMounts(policy, BARE_FACTS);
    expect(notEnforced).toEqual([]);
    await inSandbox(output, (pid) => {
      const denials = (path: string) => [...deniedAt(pid, path)].join(' ');
      expect(denials('/a')).toBe('');
      expect(denials('/a/a')).toBe('');
      expect(denials('/a/b')).toBe('read write exec');
      expect(denials('/b/b')).toBe('write');
      expect(denials('/ab')).toBe('write exec');
      expect(readdirSync(`/proc/${pid}/root/etc/ld.so.preload`)).toEqual([]);
      expect(() => rmSync(`/proc/${pid}/root/b/f`)).toThrow(/EROFS/);
      expect(readFileSync(`/proc/${pid}/root/b/f`, 'utf8')).toBe('hi');
    });
  });

  it('a device that is taken away is a file without use', async () => {
    const devices = ['null', 'zero', 'random', 'urandom', 'tty', 'ptmx', 'pts'];
    const policy = resolvePolicy(parsePolicy({ version: 1, devices }));
    await inSandbox(compilePolicy(policy, BARE_FACTS).mounts, (pid) => {
      expect(statSync(`/proc/${pid}/root/dev/full`).isCharacterDevice()).toBe(false);
      expect(statSync(`/proc/${pid}/root/dev/zero`).isCharacterDevice()).toBe(true);
    });
  });

  it('deny what they promise and nothing else', async () => {
    const rules: Rule[] = ['/a', '/a/b', '/b', '/b/*', '/ab/ab', '/**/a', '/ab'].flatMap((path) =>
      [['read'], ['read', 'exec'], ['hide'], []].map((access): Rule => [path, ...access]),
    );
    let promises = 0;
    for (let seed = 0; seed < 16; seed += 1) {
      const picked = new Map<string, Rule>();
      for (let k = 0; k < 4; k += 1) {
        const rule = rules[(seed * 13 + k * 11 + seed * k * 5) % rules.length] as Rule;
        picked.set(rule[0], rule);
      }
      const hidden = [...picked.values()].filter(([, access]) => access === 'hide');
      const policy = policyOf(
        ...[...picked.values()].filter(
          ([path, access]) =>
            access === 'hide' || !hidden.some(([above]) => path.startsWith(`${above}/`)),
        ),
      );
      const compiled = compileMounts(policy, BARE_FACTS);
      promises += promisesOf(compiled);
      await inSandbox(compiled.output, (pid) => {
        const denied = new Map(DIRECTORIES.map((path) => [path, visibleAt(pid, path)]));
        expectKept(
          policy,
          compiled,
          (path, verb) => denied.get(path)?.has(verb) === true,
          DIRECTORIES,
        );
      });
    }
    expect(promises).toBeGreaterThan(16);
  });

  const EVERYTHING: ReadonlySet<Verb> = new Set(['read', 'write', 'exec']);

  /** Below a mask there is nothing left to look at. */
  function visibleAt(pid: number, path: string): ReadonlySet<Verb> {
    try {
      return deniedAt(pid, path);
    } catch (thrown) {
      if (asDsecError(thrown).code !== 'not-found') throw thrown;
      return EVERYTHING;
    }
  }
});

/** By the last of the mounts on the way. */
function isNoexec(mountinfo: string, path: string): boolean {
  const rows = mountinfo.split('\n').map((line) => line.split(' '));
  const on = rows.findLast(([, , , , point = '-']) => `${path}/`.startsWith(`${point}/`));
  return on?.[5]?.split(',').includes('noexec') === true;
}
