import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  composeRoot,
  createLayerStore,
  importLayer,
  type LayerStore,
  type MountForm,
  openNodeLayers,
  planMounts,
  readManifest,
  resolveEnvironment,
} from '@dsec/layers';
import { setXattr } from '@dsec/linux';
import { DsecError } from '@dsec/std';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import type { Listing } from '../integration/erofs-tree.ts';
import { listHost, plain } from '../integration/erofs-world.ts';
import { inGuest, isLinux612, newDirectory, onlyInGuest, shell } from './guest.ts';

/** The layers of the environment, base first, and what fills the directory that each is imported from. */
const SOURCES = {
  base: `
    mkdir -p bin dev etc var/empty var/spool/lower "$(printf 'n\\377me')"
    printf 'base tool' >bin/tool; chmod 4755 bin/tool; ln bin/tool bin/other; ln -s tool bin/sh
    printf root >etc/passwd; chown 12:65535 etc/passwd; chmod 640 etc/passwd
    printf base >etc/shared; printf base >etc/own
    mknod dev/null c 1 3; mknod dev/disk b 7 300; mkfifo -m 600 dev/queue
    truncate -s 3M var/sparse; printf end >>var/sparse
    head -c 200000 /dev/urandom >var/random; cp var/random var/twin
    chown 3:4 . ; chmod 751 .
    touch -h -d '2001-02-03 04:05:06.789012345' bin/sh etc/passwd var/empty`,
  workspace: `
    mkdir -p etc repo/.git var/spool/upper
    printf workspace >etc/shared; printf code >repo/code; printf ref >repo/.git/HEAD
    printf 'a file over a directory' >var/empty
    chown -R 1000:1000 repo; chmod 1777 var/spool`,
  toolkit: `
    mkdir -p etc opt/kit/bin opt/kit/cache
    printf toolkit >etc/shared; printf kit >opt/kit/bin/kit; chmod 755 opt/kit/bin/kit
    ln -s ../opt/kit/bin/kit etc/kit`,
} as const;

type Kind = keyof typeof SOURCES;
const KINDS: readonly Kind[] = ['base', 'workspace', 'toolkit'];

let place: string;
let store: LayerStore;
let pathNode: Awaited<ReturnType<typeof openNode>>;
let made = 0;

onlyInGuest();

const sourceOf = (kind: Kind) => join(place, 'sources', kind);

beforeAll(async () => {
  if (!inGuest) return;
  place = newDirectory();
  store = await createLayerStore(join(place, 'store'));
  const imports = KINDS.map((kind) => {
    const path = sourceOf(kind);
    mkdirSync(path, { recursive: true });
    expect(shell(`set -e; cd "$1"; ${SOURCES[kind]}`, path)).toMatchObject({ code: 0, stderr: '' });
    setXattr(join(path, 'etc'), 'user.kind', Buffer.from(kind));
    const source = { kind: 'directory', path } as const;
    return importLayer({ store, kind, name: 'lab', version: '1.0.0', source });
  });
  await Promise.all(imports);
  pathNode = await openNode('path');
});

const erofsMounts = () =>
  readFileSync('/proc/self/mountinfo', 'utf8').match(/^.* - erofs .*$/gm) ?? [];

/** A node with its layers, and a function that composes a root on it and attaches it at a new directory. */
async function openNode(form: MountForm) {
  const directory = join(place, `node${made++}`);
  const node = await openNodeLayers({ store, directory, form, directIo: false });
  const refs = KINDS.map((kind) => `${kind}/lab:1.0.0`);
  const { layers } = await resolveEnvironment(store, refs);
  const manifests = layers.map(async ({ kind, layerId }) => {
    return { kind, manifest: await readManifest(store, layerId) };
  });
  const input = {
    form,
    storeRoot: store.root,
    nodeDirectory: directory,
    layers: await Promise.all(manifests),
    allowSetuid: true,
  };
  const compose = async (upperDirectory?: string) => {
    if (upperDirectory !== undefined) mkdirSync(upperDirectory, { recursive: true });
    const root = await composeRoot(node, planMounts({ ...input, upperDirectory }));
    let isOpen = true;
    const close = async () => {
      if (isOpen) await root.close();
      isOpen = false;
    };
    onTestFinished(close);
    const path = join(place, `root${made++}`);
    mkdirSync(path);
    root.attach(path);
    return { path, close };
  };
  return { node, compose };
}

const newUpper = () => join(place, `upper${made++}`);

/** What the composed root must show, from the directories that the layers were made of. */
function expectedListing(): Listing {
  const listing: Listing = new Map();
  for (const kind of KINDS) {
    for (const [path, shown] of listHost(sourceOf(kind))) {
      if (shown.kind !== 'directory') {
        for (const below of listing.keys()) if (below.startsWith(`${path}/`)) listing.delete(below);
      }
      // The root itself is the upper's, made like that of the base.
      if (path !== '' || kind === 'base') listing.set(path, shown);
    }
  }
  return listing;
}

/** Without what overlayfs says in its own way: links of directories, and the time when the upper was made. */
function comparable(listing: Listing) {
  const entries = [...listing].map(([path, shown]) => {
    const nlink = shown.kind === 'directory' ? 0 : shown.nlink;
    return [path, { ...shown, nlink, mtimeNs: path === '' ? 0n : shown.mtimeNs }] as const;
  });
  return plain(new Map(entries));
}

it('shows of every path the entry of the topmost layer, by paths', async () => {
  const { path } = await pathNode.compose(newUpper());
  const shown = comparable(listHost(path));
  expect(shown).toEqual(comparable(expectedListing()));
  expect(Object.keys(shown).length).toBeGreaterThan(30);
  expect(readFileSync(join(path, 'etc/shared'), 'utf8')).toBe('toolkit');
});

it('keeps every write in the upper', async () => {
  const upper = newUpper();
  const { path, close } = await pathNode.compose(upper);
  const before = comparable(expectedListing());
  writeFileSync(join(path, 'etc/shared'), 'written');
  writeFileSync(join(path, 'opt/kit/cache/new'), 'cached');
  rmSync(join(path, 'etc/own'));
  rmSync(join(path, 'repo'), { recursive: true });
  expect(shell('cd "$1" && mv etc/passwd etc/moved && chmod 700 bin/tool', path).code).toBe(0);

  const inUpper = listHost(join(upper, 'upper'));
  const names = [...inUpper.keys()].sort();
  expect(names).toEqual(
    ['', 'bin', 'bin/tool', 'etc', 'etc/moved', 'etc/own', 'etc/passwd', 'etc/shared'].concat([
      'opt',
      'opt/kit',
      'opt/kit/cache',
      'opt/kit/cache/new',
      'repo',
    ]),
  );
  for (const gone of ['etc/own', 'etc/passwd', 'repo']) {
    expect(inUpper.get(gone), gone).toMatchObject({ kind: 'char', device: '0:0' });
  }
  await close();

  const again = await pathNode.compose(upper);
  expect(readFileSync(join(again.path, 'etc/shared'), 'utf8')).toBe('written');
  expect(existsSync(join(again.path, 'repo'))).toBe(false);
  const fresh = await pathNode.compose(newUpper());
  expect(comparable(listHost(fresh.path))).toEqual(before);
});

it('is read-only without an upper', async () => {
  const { path } = await pathNode.compose();
  expect(readFileSync(join(path, 'etc/shared'), 'utf8')).toBe('toolkit');
  expect(() => writeFileSync(join(path, 'etc/shared'), 'x')).toThrow(/EROFS/);
});

it('mounts each layer once for all roots, and leaves none when the last is gone', async () => {
  const { node } = pathNode;
  expect(erofsMounts()).toEqual([]);
  const first = await pathNode.compose(newUpper());
  const second = await pathNode.compose(newUpper());
  expect(erofsMounts()).toHaveLength(KINDS.length);
  expect([...node.users().values()]).toEqual([2, 2, 2]);
  await first.close();
  expect(erofsMounts()).toHaveLength(KINDS.length);
  expect(readFileSync(join(second.path, 'repo/code'), 'utf8')).toBe('code');
  await second.close();
  expect(erofsMounts()).toEqual([]);
  expect(shell('losetup --list --noheadings').stdout).toBe('');
});

it('says that this kernel takes no layers by descriptor', async (context) => {
  context.skip(!isLinux612, 'this kernel is newer than Linux 6.12, which this is about');
  const { node, compose } = await openNode('descriptor');
  const refusal = await compose(newUpper()).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(DsecError);
  expect(refusal).toMatchObject({ code: 'unsupported' });
  expect(node.users().size).toBe(0);
  expect(erofsMounts()).toEqual([]);
});
