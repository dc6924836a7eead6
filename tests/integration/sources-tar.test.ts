/**
 * What we read of a tar is what GNU tar unpacks of it, entry by entry, for every format that it and Python
 * write.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importSource } from '@dsec/layers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRecordingBuilder } from '../../packages/layers/test/sources/recording-builder.ts';
import {
  base256,
  type PaxRecords,
  paxHeader,
  tarMember,
  tarOf,
} from '../../packages/layers/test/sources/tar-encoder.ts';
import { isRoot } from './erofs-world.ts';
import {
  addAcls,
  addHoles,
  addNamesAndDevices,
  addSparse,
  addTimesAndXattrs,
  bytePath,
  makeBasicTree,
} from './sources-tree.ts';
import { buildSource, comparable, listHost, unpack } from './sources-world.ts';

const work = mkdtempSync(join(tmpdir(), 'dsec-sources-tar-'));
afterAll(() => {
  execFileSync('rm', ['-rf', work]);
});
if (!isRoot) console.warn('sources-tar: skipped, since unpacking owners and devices needs root');

const tree = join(work, 'tree');
const at = (name: string) => bytePath(tree, name);

const tar = (name: string, ...options: string[]) => {
  const archive = join(work, name);
  execFileSync('tar', ['-c', '-f', archive, '-C', tree, ...options, '.'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return archive;
};

async function compare(archive: string): Promise<void> {
  const expected = comparable(listHost(unpack(work, archive)));
  const { listing } = await buildSource(work, { kind: 'tar', path: archive });
  expect(comparable(listing)).toEqual(expected);
  expect(listing.size).toBeGreaterThan(5);
}

describe.runIf(isRoot)('GNU tar (needs root)', () => {
  describe('a plain tree', () => {
    beforeAll(() => makeBasicTree(tree));
    it.each(['v7', 'oldgnu', 'gnu', 'ustar', 'pax'])('--format=%s', async (format) => {
      await compare(tar(`basic.${format}`, `--format=${format}`));
    });
    it('with absolute names and without ./', async () => {
      const archive = join(work, 'absolute.tar');
      execFileSync('tar', ['-c', '-P', '-f', archive, '--format=gnu', tree], { stdio: 'ignore' });
      const { listing } = await buildSource(work, { kind: 'tar', path: archive });
      const inside = tree.slice(1);
      expect([...listing.keys()]).toContain(`${inside}/dir/sub/large`);
      expect(listing.get(`${inside}/hard`)?.sameAs).toBe(`${inside}/dir/file`);
    });
  });

  describe('names, devices and long paths', () => {
    beforeAll(() => addNamesAndDevices(tree));
    it.each(['oldgnu', 'gnu', 'pax'])('--format=%s', async (format) => {
      await compare(tar(`full.${format}`, `--format=${format}`));
    });
    it('through gzip and zstd', async () => {
      const plain = await buildSource(work, { kind: 'tar', path: tar('f.tar', '--format=gnu') });
      for (const option of ['--gzip', '--zstd']) {
        const archive = tar(`f${option}`, '--format=gnu', option);
        const packed = await buildSource(work, { kind: 'auto', path: archive });
        expect(packed.layerId).toBe(plain.layerId);
      }
    });
  });

  describe('holes', () => {
    beforeAll(() => addHoles(tree));
    it.each([
      ['oldgnu', []],
      ['gnu', []],
      ['pax', ['--sparse-version=0.0']],
      ['pax', ['--sparse-version=0.1']],
      ['pax', ['--sparse-version=1.0']],
    ])('--format=%s --sparse %j', async (format, options) => {
      const archive = tar(
        `sparse.${format}${options}`,
        `--format=${format}`,
        '--sparse',
        ...options,
      );
      await compare(archive);
    });
    it.each(['gnu', 'pax'])('beyond 8 GiB: --format=%s', async (format) => {
      addSparse(tree, 'huge', 2 ** 34 + 4096, [2 ** 34]);
      const archive = tar(`huge.${format}`, `--format=${format}`, '--sparse');
      execFileSync('rm', [join(tree, 'huge')]);
      const builder = createRecordingBuilder();
      await importSource(builder, { kind: 'tar', path: archive });
      expect(builder.calls).toContain(`file huge ${2 ** 34 + 4096}`);
      expect(builder.calls).toContain(`hole 0 ${2 ** 34}`);
    });
  });

  describe('what pax keeps', () => {
    beforeAll(() => addTimesAndXattrs(tree));
    it('times and attributes', async () => {
      await compare(tar('pax.tar', '--format=pax', '--xattrs', '--xattrs-include=*'));
    });
    it('ACLs as text and as attributes', async () => {
      addAcls(tree, 'fine', 'dir');
      const asAttributes = tar('acl.tar', '--format=pax', '--xattrs', '--xattrs-include=*');
      await compare(asAttributes);
      const first = await buildSource(work, { kind: 'tar', path: asAttributes });
      expect(first.listing.get('fine')?.xattrs).toHaveProperty(['system.posix_acl_access']);
      // The text form names users; those that this machine has no name for are numbers.
      const asText = tar('acltext.tar', '--format=pax', '--acls', '--xattrs');
      const importing = buildSource(work, { kind: 'tar', path: asText });
      await expect(importing).rejects.toThrowError(/names no numeric id/);
    });
    it('a socket is left out by the archiver', async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(join(tree, 'socket'), resolve));
      await compare(tar('socket.tar', '--format=pax', '--xattrs', '--xattrs-include=*'));
      server.close();
    });
  });

  it('members appended later replace earlier ones', async () => {
    const archive = tar('append.tar', '--format=gnu', '--exclude=./fine');
    writeFileSync(at('dir/file'), 'changed, and longer than it was before');
    writeFileSync(at('empty'), 'no longer');
    execFileSync('tar', ['-r', '-f', archive, '-C', tree, './dir/file', './empty', './dir']);
    await compare(archive);
  });
});

const PYTHON = `
import io, sys, tarfile, time
fmt = {'ustar': tarfile.USTAR_FORMAT, 'gnu': tarfile.GNU_FORMAT, 'pax': tarfile.PAX_FORMAT}[sys.argv[2]]
with tarfile.open(sys.argv[1], 'w', format=fmt) as t:
    def add(name, type=tarfile.REGTYPE, data=b'', **more):
        i = tarfile.TarInfo(name)
        i.type = type
        i.size = len(data)
        i.mode = 0o640
        i.mtime = 1600000000 if fmt != tarfile.PAX_FORMAT else 1600000000.25
        for k, v in more.items(): setattr(i, k, v)
        t.addfile(i, io.BytesIO(data))
    for d in ['.', 'dir', 'prefix', 'prefix/' + 'p' * 90, 'x']: add(d, tarfile.DIRTYPE, mode=0o711)
    add('dir/a', data=b'a' * 1025, uid=7, gid=8)
    add('dir/link', tarfile.SYMTYPE, linkname='a')
    add('dir/hard', tarfile.LNKTYPE, linkname='dir/a')
    add('dev', tarfile.CHRTYPE, devmajor=5, devminor=1)
    add('pipe', tarfile.FIFOTYPE)
    add('prefix/' + 'p' * 90 + '/' + 'f' * 90, data=b'long')
    if fmt != tarfile.USTAR_FORMAT:
        add('x/' + 'y' * 250, data=b'longer')
        add('l', tarfile.SYMTYPE, linkname='z' * 2000)
        add('\\u00fcml\\u00e4ut', data=b'u')
        add('old', mtime=-100)
        add('big ids', uid=40000, gid=65535)
    if fmt == tarfile.PAX_FORMAT:
        add('x.attr', pax_headers={'SCHILY.xattr.user.k': 'v', 'comment': 'ignored'})
`;

describe.runIf(isRoot)("Python's tarfile (needs root)", () => {
  it.each(['ustar', 'gnu', 'pax'])('%s', async (format) => {
    const archive = join(work, `python.${format}`);
    execFileSync('python3', ['-c', PYTHON, archive, format]);
    await compare(archive);
  });
});

describe('hostile members', () => {
  const build = (...members: Buffer[]) => {
    const archive = join(work, 'hostile.tar');
    writeFileSync(archive, tarOf(...members));
    return buildSource(work, { kind: 'tar', path: archive });
  };

  it('with planted attributes come out as without them', async () => {
    const planted = [
      'trusted.overlay.redirect',
      'trusted.overlay.metacopy',
      'trusted.overlay.opaque',
      'trusted.overlay.whiteout',
      'user.overlay.opaque',
      'user.overlay.redirect',
      'security.apparmor',
      'security.selinux',
      'security.ima',
      'system.nfs4_acl',
      'unknown',
    ].map((name) => [`SCHILY.xattr.${name}`, 'y'] as const);
    const kept = ['SCHILY.xattr.user.kept', 'v'] as const;
    const members = [tarMember({ name: 'd', type: '5' }), tarMember({ name: 'd/f' }, 'x')];
    const withRecords = (records: PaxRecords) =>
      build(...members.flatMap((member) => [paxHeader(records), member]));
    const clean = await withRecords([kept]);
    const hostile = await withRecords([...planted, kept]);
    expect(hostile.layerId).toBe(clean.layerId);
    expect(hostile.listing.get('d')?.xattrs).toEqual({ 'user.kept': '76' });
    const global = await build(paxHeader([...planted, kept], 'g'), ...members);
    expect(global.layerId).toBe(clean.layerId);
  });

  it('with owners beyond the ids of a sandbox are refused', async () => {
    for (const id of [65_536, 70_000, 2 ** 32 - 2, 2 ** 32 - 1, 2 ** 40]) {
      const inHeader = tarMember({ name: 'f', uid: base256(BigInt(id), 8) });
      const inRecord = [paxHeader([['gid', `${id}`]]), tarMember({ name: 'f' })];
      for (const members of [[inHeader], inRecord]) {
        await expect(build(...members)).rejects.toMatchObject({ code: 'import-invalid' });
      }
    }
    const negative = tarMember({ name: 'f', gid: base256(-2n, 8) });
    await expect(build(negative)).rejects.toMatchObject({ code: 'import-invalid' });
    const highest = await build(tarMember({ name: 'f', uid: 65_535, gid: 65_535 }));
    expect(highest.listing.get('f')).toMatchObject({ uid: 65_535, gid: 65_535 });
  });

  it('below the mount of platform tools are refused', async () => {
    for (const name of ['.dsec', './.dsec/x', '/.dsec/bin/tool', '.wh..dsec']) {
      await expect(build(tarMember({ name }))).rejects.toMatchObject({ code: 'import-invalid' });
    }
  });

  it('that are devices 0:0 are whiteouts', async () => {
    const device = tarMember({ name: 'gone', type: '3', major: 0, minor: 0 });
    const { listing } = await build(tarMember({ name: 'kept' }), device);
    expect([...listing.keys()]).toEqual(['', 'kept']);
  });
});
