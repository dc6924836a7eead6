/** Files, layers and what is left of them. */
import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLayerStore, importLayer } from '@dsec/layers';
import { ROUTES } from '@dsec/protocol';
import { asDsecError, MIB } from '@dsec/std';
import { expect } from 'vitest';
import { until } from '../integration/launcher-world.ts';
import { expectRefused, type Row, withBox } from './rows.ts';
import { type Box, context, type SecurityWorld } from './security-world.ts';
import { countOf, runHost } from './unprotected.ts';

const codeOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
    return 'done';
  } catch (thrown) {
    return asDsecError(thrown).code;
  }
};

/** A file of the host that anybody could read, and links in the sandbox by every way to it. */
async function symlinkUp(world: SecurityWorld, box: Box, directory: string): Promise<void> {
  const secret = join(directory, 'secret');
  writeFileSync(secret, 'of the host');
  symlinkSync(secret, join(directory, 'link'));
  expect(readFileSync(join(directory, 'link'), 'utf8')).toBe('of the host');
  const params = { sandboxId: box.entry.id };
  const links = [
    secret,
    `${'../'.repeat(40)}${secret.slice(1)}`,
    `/proc/1/root${secret}`,
    `/proc/self/root${secret}`,
    `/proc/self/cwd/../../../..${secret}`,
    `/dev/fd/../../..${secret}`,
  ];
  for (const [number, link] of links.entries()) {
    await box.run(['/bin/ln', '-s', link, `/tmp/up-${number}`]);
    for (const path of [`/tmp/up-${number}`, link]) {
      expect(await codeOf(box.readFile(path)), path).not.toBe('done');
      expect(await codeOf(box.writeFile(`${path}/new`, Buffer.from('x'))), path).not.toBe('done');
    }
  }
  await box.run(['/bin/mkdir', '-p', '/tmp/inside']);
  const loop = `while :; do ln -sfn /tmp/inside /tmp/swap; ln -sfn ${directory} /tmp/swap; sleep 0.01; done`;
  await box.start(['/bin/sh', '-c', `echo begins; ${loop}`], 'begins');
  for (let round = 0; round < 12; round += 1) {
    await codeOf(box.writeFile(`/tmp/swap/new-${round}`, Buffer.from('x')));
    const page = world.client.call(ROUTES.listFiles, { params, query: { path: '/tmp/swap' } });
    expect(JSON.stringify(await page.catch(() => ''))).not.toContain('secret');
    expect(await codeOf(box.readFile('/tmp/swap/secret'))).not.toBe('done');
  }
  expect(readdirSync(directory).sort()).toEqual(['link', 'secret']);
}

/** The base with its own /proc turned into a link. */
async function importOddBase({ node }: SecurityWorld): Promise<void> {
  const root = join(node.stateRoot, 'base');
  const proc = join(root, 'proc');
  rmSync(proc, { recursive: true });
  mkdirSync(join(root, 'elsewhere'));
  symlinkSync('elsewhere', proc);
  try {
    await importLayer({
      store: await createLayerStore(join(node.stateRoot, 'store')),
      ...{ kind: 'base', name: 'odd', version: '1.0.0' },
      source: { kind: 'directory', path: root },
    });
  } finally {
    rmSync(proc);
    rmSync(join(root, 'elsewhere'), { recursive: true });
    mkdirSync(proc);
  }
}

/** mount(2) follows a link of the root that it mounts in. */
function mountedElsewhere(): string {
  return runHost(
    ...['unshare', '-m', 'sh', '-c'],
    'd=$(mktemp -d); mkdir $d/elsewhere; ln -s elsewhere $d/proc; mount -t tmpfs none $d/proc; ' +
      'grep -o "elsewhere tmpfs" /proc/self/mounts; umount $d/elsewhere; rm -r $d',
  );
}

async function namesIn({ client }: SecurityWorld, box: Box, path: string): Promise<number> {
  const params = { sandboxId: box.entry.id };
  let cursor: string | undefined;
  let names = 0;
  do {
    const query = { path, limit: 1000, ...(cursor === undefined ? {} : { cursor }) };
    const page = await client.call(ROUTES.listFiles, { params, query });
    names += page.entries.length;
    ({ cursor } = page);
  } while (cursor !== undefined);
  return names;
}

/** A pipe without a writer and a device, as `head` reads them on the host. */
function readNaively() {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-naive-'));
  const fifo = join(directory, 'fifo');
  try {
    runHost('mkfifo', fifo);
    const script = 'timeout 0.5 head -c 1 "$1" > /dev/null; echo $?';
    const waits = runHost('sh', '-c', script, 'sh', fifo).trim() === '124';
    const zeros = runHost('sh', '-c', 'head -c 5000000 /dev/zero | wc -c').trim();
    return { fifo: waits ? 'waits' : 'ends', zeros: zeros === '5000000' ? 'reads on' : zeros };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** How the import of a layer ends that has a file of this owner. */
async function importOwnedBy({ node }: SecurityWorld, id: number): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), 'dsec-owned-'));
  try {
    writeFileSync(join(root, 'file'), 'x');
    chownSync(join(root, 'file'), id, id);
    const store = await createLayerStore(join(node.stateRoot, 'store'));
    const source = { kind: 'directory', path: root } as const;
    const named = { kind: 'toolkit', name: `owned-${id}`, version: '1.0.0' } as const;
    return await codeOf(importLayer({ store, ...named, source }));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Imports a toolkit from what `fill` puts into a directory. */
async function importToolkit(
  { node }: SecurityWorld,
  name: string,
  whiteouts: 'keep' | 'apply',
  fill: (root: string) => void,
): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'dsec-toolkit-'));
  try {
    fill(root);
    const store = await createLayerStore(join(node.stateRoot, 'store'));
    const source = { kind: 'directory', path: root } as const;
    await importLayer({ store, kind: 'toolkit', name, version: '1.0.0', source, whiteouts });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** What a sandbox of these layers has at the places that one of them hides. */
async function seenWith(world: SecurityWorld, layers: readonly string[]): Promise<string> {
  const request = { layers: [...layers], limits: { diskBytes: 8 * MIB } };
  const entry = await world.edge.lifecycle.create(request, context());
  try {
    const spec = {
      shell: 'cat /etc/shared /opt/tool /opt/kept 2>/dev/null; find /opt -type c',
      waitMs: 60_000,
    };
    const { stdout } = await world.edge.exec.execs.start(entry, spec, context());
    return stdout?.text ?? '';
  } finally {
    await world.edge.lifecycle.stop(entry, context());
  }
}

export const FILE_ROWS: readonly Row[] = [
  {
    ...{ id: 21, name: 'symlink-up', expected: 'files never leave the root of the sandbox' },
    later: 'watch and tar are not served yet',
    check: (world) =>
      withBox(world, async (box) => {
        const directory = mkdtempSync(join(tmpdir(), 'dsec-outside-'));
        try {
          await symlinkUp(world, box, directory);
        } finally {
          rmSync(directory, { recursive: true });
        }
      }),
  },
  {
    ...{
      id: 24,
      name: 'wide-dir',
      expected: 'listed in constant memory; wide and deep trees are removed',
    },
    check: (world) =>
      withBox(
        world,
        async (box) => {
          const made =
            'i=0; mkdir /tmp/wide; while true > /tmp/wide/name-$i; do i=$((i+1)); done; echo $i';
          const { stdout, stderr } = await box.run(`(${made}) 2>&1 | tail -1; rm /tmp/wide/name-1`);
          expect(stderr).toBe('');
          const count = Number(stdout.match(/\d+/g)?.at(-1));
          // The limit of inodes holds: those of the layer's copies and of /tmp itself count too.
          expect(count).toBeGreaterThan(5500);
          expect(count).toBeLessThanOrEqual(6000);
          const rss = process.memoryUsage.rss();
          expect(await namesIn(world, box, '/tmp/wide')).toBeGreaterThanOrEqual(count - 2);
          expect(process.memoryUsage.rss() - rss).toBeLessThan(128 * MIB);
          const deep = await world.make({ inodesMax: 6000 });
          expect(countOf((await deep.probe('dive', '/tmp', '5000')).stdout, 'levels')).toBe(5000);
          const params = { sandboxId: deep.entry.id };
          const query = { path: '/tmp/d', recursive: true };
          await codeOf(world.client.call(ROUTES.removeFile, { params, query }));
          await deep.stop();
          const left = await world.node.leftovers();
          expect(left.filter((path) => path.includes(deep.entry.id))).toEqual([]);
        },
        { inodesMax: 6000 },
      ),
  },
  {
    ...{
      id: 25,
      name: 'hole-file',
      expected: 'sizes without end are told or refused, never read for hours',
    },
    later: 'pack_diff is not there yet',
    check: (world) =>
      withBox(world, async (box) => {
        const made = await box.run(
          'truncate -s 9223372036854771712 /tmp/hole && stat -c %b /tmp/hole',
        );
        expect(made.stdout).toBe('0\n');
        const params = { sandboxId: box.entry.id };
        const query = { path: '/tmp/hole' };
        const stat = world.client.call(ROUTES.statFile, { params, query });
        expect(['done', 'too-large', 'invalid-argument', 'unsupported']).toContain(
          await codeOf(stat),
        );
        await box.run('truncate -s 1T /tmp/hole');
        const signal = AbortSignal.timeout(6000);
        const range = { ...query, offset: 2 ** 39, lengthBytes: 1000 };
        const part = await world.client.call(ROUTES.readFile, { params, query: range }, { signal });
        let bytes = 0;
        for await (const piece of part.body) bytes += piece.byteLength;
        expect(bytes).toBe(1000);
        const whole = await world.client.call(ROUTES.readFile, { params, query }, { signal });
        bytes = 0;
        for await (const piece of whole.body) {
          bytes += piece.byteLength;
          if (bytes > MIB) break;
        }
        expect((await box.run('echo well')).stdout).toBe('well\n');
      }),
  },
  {
    ...{ id: 26, name: 'special-files', expected: 'nothing but files is read; no device is there' },
    later: 'nothing packs or restores yet',
    check: (world) =>
      withBox(world, async (box) => {
        // Who opens such a file as any other waits for ever, or reads without end.
        expect(readNaively()).toEqual({ fifo: 'waits', zeros: 'reads on' });
        await box.run('mkfifo /tmp/fifo; mkdir /tmp/directory; ln -s /dev/zero /tmp/zeros');
        const made = await box.run('ls -l /tmp/fifo /dev/zero');
        expect(made.stdout).toMatch(/^p.*fifo$/m);
        for (const path of [
          '/tmp/fifo',
          '/tmp/directory',
          '/dev/zero',
          '/tmp/zeros',
          '/dev/ptmx',
        ]) {
          const code = await Promise.race([codeOf(box.readFile(path)), hangs()]);
          expect(code, path).toMatch(
            /invalid-argument|unsupported|permission-denied|state-conflict/,
          );
        }
        expect(await codeOf(box.writeFile('/tmp/fifo', Buffer.from('x')))).not.toBe('hangs');
        await box.writeFile('/tmp/plain', Buffer.from('x'));
        const params = { sandboxId: box.entry.id };
        const query = { path: '/tmp/plain', mode: 0o6755 };
        const body = Buffer.of(1);
        await world.client.call(ROUTES.writeFile, { params, query, body });
        // The caller may give the bits; the root is mounted so that they mean nothing (row 57).
        expect((await box.run('stat -c %a /tmp/plain')).stdout).toBe('6755\n');
        expect(box.host.mounts().join('\n')).toMatch(/^\S+ \S+ \S+ \/ \/ \S*nosuid\S* /m);
      }),
  },
  {
    ...{
      id: 29,
      name: 'redirect-alias',
      expected: 'no attribute that overlays believe can be written',
    },
    later: 'the same in layers is shown by the tests of layers (28, 33)',
    check: (world) =>
      withBox(world, (box) =>
        expectRefused(box, {
          words: ['attributes'],
          refusals: ['EPERM', 'EOPNOTSUPP', 'EINVAL', 'EACCES'],
          unproven: ['security.apparmor', 'security.anything', 'system.posix_acl_none'],
        }),
      ),
  },
  {
    ...{
      id: 31,
      name: 'mask-missing',
      expected: 'a root whose /proc is a link fails the create, or is not followed',
    },
    later: 'each mask that fails is shown by tests/integration/launcher-refusals.test.ts',
    async check(world) {
      expect(mountedElsewhere()).toContain('elsewhere tmpfs');
      await importOddBase(world);
      const request = { layers: ['base/odd:1.0.0'], limits: { diskBytes: 8 * MIB } };
      const before = await world.node.leftovers();
      const made = world.edge.lifecycle.create(request, context());
      expect(await codeOf(made)).toMatch(
        /unsupported|invalid-argument|layer-invalid|internal|unavailable/,
      );
      await until('nothing of it is left', async () =>
        (await world.node.leftovers()).length <= before.length ? true : undefined,
      );
    },
  },
  {
    ...{
      id: 32,
      name: 'char00-layer',
      expected: 'devices 0:0 hide only what is below; no device is there; tools above intact',
    },
    later: 'the tools of the platform, at /.dsec, are shown by tests/security/grading.test.ts',
    async check(world) {
      await importToolkit(world, 'tool', 'apply', (root) => {
        mkdirSync(join(root, 'opt'));
        writeFileSync(join(root, 'opt/tool'), 'tool\n');
        writeFileSync(join(root, 'opt/kept'), 'kept\n');
      });
      const hide = (root: string) => {
        for (const name of ['etc', 'opt']) mkdirSync(join(root, name));
        for (const path of ['etc/shared', 'opt/tool', 'opt/nothing']) {
          runHost('mknod', join(root, path), 'c', '0', '0');
        }
      };
      await importToolkit(world, 'hider', 'keep', hide);
      await importToolkit(world, 'usual', 'apply', hide);
      const base = 'base/small:1.0.0';
      const tool = 'toolkit/tool:1.0.0';
      const all = 'as all have it\ntool\nkept\n';
      expect(await seenWith(world, [base, tool])).toBe(all);
      // As toolkits are imported they hide nothing of other layers.
      expect(await seenWith(world, [base, tool, 'toolkit/usual:1.0.0'])).toBe(all);
      // One whose marks are kept hides what is below it: and what is above is what it cannot reach.
      const hider = 'toolkit/hider:1.0.0';
      expect(await seenWith(world, [base, tool, hider])).toBe('kept\n');
      expect(await seenWith(world, [base, hider, tool])).toBe('tool\nkept\n');
    },
  },
  {
    ...{
      id: 44,
      name: 'uid-high',
      expected: 'owners beyond the range are refused; copies of files work',
    },
    check: (world) =>
      withBox(world, async (box) => {
        // Each of these owners can be given where ids are those of the host.
        const given = /^(owner|group)-\d+$/;
        await expectRefused(box, {
          ...{ words: ['attributes'], items: given, refusals: ['EPERM', 'EINVAL'] },
        });
        expect(await importOwnedBy(world, 65_534)).toBe('done');
        for (const id of [65_536, 70_000, 4_294_967_294]) {
          expect(await importOwnedBy(world, id), `${id}`).toBe('import-invalid');
        }
        const { stdout } = await box.run(
          'echo more >> /etc/shared && chown 65534 /etc/shared && stat -c %u /etc/shared',
        );
        expect(stdout).toBe('65534\n');
      }),
  },
];

const hangs = () => new Promise<string>((resolve) => setTimeout(resolve, 10_000, 'hangs'));
