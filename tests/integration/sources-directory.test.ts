/**
 * What we read of a directory is what the host's own calls show of it; of an overlay's upper, what the
 * overlay means.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importSource } from '@dsec/layers';
import { listXattrs, makeNode, setXattr } from '@dsec/linux';
import { afterAll, describe, expect, it } from 'vitest';
import { createRecordingBuilder } from '../../packages/layers/test/sources/recording-builder.ts';
import { isRoot } from './erofs-world.ts';
import {
  addAcls,
  addHoles,
  addNamesAndDevices,
  addTimesAndXattrs,
  makeBasicTree,
} from './sources-tree.ts';
import { buildSource, comparable, listHost, unpack } from './sources-world.ts';

const work = mkdtempSync(join(tmpdir(), 'dsec-sources-directory-'));
afterAll(() => {
  execFileSync('rm', ['-rf', work]);
});
if (!isRoot) console.warn('sources-directory: skipped, since devices and overlays need root');

describe.runIf(isRoot)('a directory (needs root)', () => {
  it('comes out as it is, and as a tar of it', async () => {
    const tree = join(work, 'tree');
    makeBasicTree(tree);
    addNamesAndDevices(tree);
    addHoles(tree);
    addTimesAndXattrs(tree);
    addAcls(tree, 'fine', 'dir');
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(tree, 'socket'), resolve));
    const first = await buildSource(work, { kind: 'directory', path: tree });
    expect(comparable(first.listing)).toEqual(comparable(listHost(tree)));
    const again = await buildSource(work, { kind: 'auto', path: tree });
    expect(again.layerId).toBe(first.layerId);

    const archive = join(work, 'tree.tar');
    const options = ['--format=pax', '--sparse', '--xattrs', '--xattrs-include=*'];
    execFileSync('tar', ['-c', '-f', archive, '-C', tree, ...options, '.'], { stdio: 'pipe' });
    const exclude = ['socket'];
    const fromDirectory = await buildSource(work, { kind: 'directory', path: tree, exclude });
    const fromTar = await buildSource(work, { kind: 'tar', path: archive });
    expect(fromTar.treeDigest).toBe(fromDirectory.treeDigest);
    const unpacked = unpack(work, archive);
    const fromUnpacked = await buildSource(work, { kind: 'directory', path: unpacked });
    expect(fromUnpacked.treeDigest).toBe(fromTar.treeDigest);
    server.close();
  });

  it('refuses owners that no sandbox has', async () => {
    const tree = join(work, 'owners');
    mkdirSync(tree);
    writeFileSync(join(tree, 'f'), '');
    for (const owner of ['70000:0', '0:4294967294']) {
      execFileSync('chown', [owner, join(tree, 'f')]);
      const importing = buildSource(work, { kind: 'directory', path: tree });
      await expect(importing).rejects.toMatchObject({ code: 'import-invalid' });
    }
  });

  it('is walked on one file system, unless all are wanted', async () => {
    if (statSync('/dev').dev === statSync('/dev/pts').dev) {
      console.warn('sources-directory: no mount below /dev to stop at');
      return;
    }
    const calls = async (oneFileSystem: boolean) => {
      const builder = createRecordingBuilder();
      const exclude = ['shm', 'mqueue', 'hugepages'];
      await importSource(builder, { kind: 'directory', path: '/dev', oneFileSystem, exclude });
      return builder.calls;
    };
    const one = await calls(true);
    expect(one).toContain('directory pts');
    expect(one).toContain('char null 1:3');
    expect(one).not.toContain('char pts/ptmx 5:2');
    expect(await calls(false)).toContain('char pts/ptmx 5:2');
  });
});

/** Changes a mounted overlay in every way that leaves a mark in its upper directory. */
const CHANGE_OVERLAY = `
set -e
mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work,$2" "$1/merged"
cd "$1/merged"
rm gone; rm -r gonedir
rm -r replaced; mkdir replaced; echo new > replaced/new
rm tofile; echo file > tofile
echo more >> changed; chmod 600 changed
echo added > dir/added; rm dir/removed
mkdir newdir; ln changed newdir/link
cd /; umount "$1/merged"
`;

/** Runs a script where its mounts are its own. */
function runPrivately(script: string, ...args: string[]): void {
  const command = ['-m', '--propagation', 'private', 'sh', '-c', script, 'sh', ...args];
  const { status, stderr } = spawnSync('unshare', command, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

function makeOverlay(name: string, options: string): string {
  const root = join(work, name);
  for (const each of [
    'lower/gonedir/x',
    'lower/replaced/old',
    'lower/dir',
    'upper',
    'work',
    'merged',
  ]) {
    mkdirSync(join(root, each), { recursive: true });
  }
  for (const each of ['gone', 'tofile', 'changed', 'dir/removed', 'dir/kept']) {
    writeFileSync(join(root, 'lower', each), each);
  }
  runPrivately(CHANGE_OVERLAY, root, options);
  return join(root, 'upper');
}

describe.runIf(isRoot)('the upper directory of an overlay (needs root)', () => {
  const shape = async (upper: string, overlayUpper: 'trusted' | 'user') => {
    const source = { kind: 'directory', path: upper, overlayUpper } as const;
    const { listing } = await buildSource(work, source, { whiteouts: 'keep' });
    return Object.fromEntries(
      Array.from(listing, ([path, { kind, device, xattrs, content }]) => [
        path,
        [kind, ...(kind === 'char' ? [device] : []), ...Object.keys(xattrs), content !== ''].join(
          ' ',
        ),
      ]),
    );
  };
  const expected = {
    '': 'directory false',
    changed: 'file true',
    dir: 'directory false',
    'dir/added': 'file true',
    'dir/removed': 'char 0:0 false',
    gone: 'char 0:0 false',
    gonedir: 'char 0:0 false',
    newdir: 'directory trusted.overlay.opaque false',
    'newdir/link': 'file true',
    replaced: 'directory trusted.overlay.opaque false',
    'replaced/new': 'file true',
    tofile: 'file true',
  };

  it('becomes a diff', async () => {
    const upper = makeOverlay('plain', 'redirect_dir=nofollow,metacopy=off,index=on');
    expect(await shape(upper, 'trusted')).toEqual(expected);
  });

  it('becomes a diff with marks that users may set', async () => {
    const upper = makeOverlay('userxattr', 'userxattr');
    // The kernel marks a directory that is new as opaque only where it may set trusted attributes.
    expect(await shape(upper, 'user')).toEqual({ ...expected, newdir: 'directory false' });
  });

  it('is refused when it leans on its lower directory', async () => {
    const root = join(work, 'leaning');
    for (const each of ['lower/d', 'upper', 'work', 'merged']) {
      mkdirSync(join(root, each), { recursive: true });
    }
    writeFileSync(join(root, 'lower/f'), 'content');
    const mount =
      'mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work,$2" "$1/merged"';
    runPrivately(`${mount} && chmod 600 "$1/merged/f"`, root, 'metacopy=on,redirect_dir=on');
    const source = {
      kind: 'directory',
      path: join(root, 'upper'),
      overlayUpper: 'trusted',
    } as const;
    const whiteouts = 'keep';
    await expect(buildSource(work, source, { whiteouts })).rejects.toThrowError(/metacopy=off/);
    runPrivately(
      `${mount} && rm "$1/merged/f" && mv "$1/merged/d" "$1/merged/e"`,
      root,
      'metacopy=on,redirect_dir=on',
    );
    await expect(buildSource(work, source, { whiteouts })).rejects.toThrowError(/redirect_dir/);
  });

  it('has planted marks, which do nothing', async () => {
    const tree = join(work, 'planted');
    mkdirSync(join(tree, 'd'), { recursive: true });
    makeNode(join(tree, 'd/w'), { mode: 0o020_000 });
    const planted = ['security.planted', 'trusted.overlay.redirect', 'user.overlay.opaque'];
    for (const name of planted) setXattr(join(tree, 'd'), name, Buffer.from('y'));
    expect(listXattrs(join(tree, 'd')).sort()).toEqual(planted);
    const { listing } = await buildSource(work, { kind: 'directory', path: tree });
    expect(listing.get('d')?.xattrs).toEqual({});
    expect([...listing.keys()]).toEqual(['', 'd']);
  });
});
