/**
 * Members of one path, paths through files and links, and hard links, in random order: what comes out is what
 * docker's rule gives on a real file system. The rule, from what docker's layer code does: whatever is in the
 * way of a member goes, unless both are directories. Where docker would follow a symbolic link to a parent,
 * we replace it (THREATS C12).
 */
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { tarMember, tarOf } from '../../packages/layers/test/sources/tar-encoder.ts';
import { isLong, isRoot } from './erofs-world.ts';
import { buildSource, comparable, listHost } from './sources-world.ts';

const work = mkdtempSync(join(tmpdir(), 'dsec-sources-duplicates-'));
afterAll(() => rmSync(work, { recursive: true, force: true }));

if (!isRoot) console.warn('sources-duplicates: skipped, since it reads directories without rights');

interface Member {
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'symlink' | 'hardlink';
  readonly target: string;
  readonly mode: number;
}

const path = fc
  .array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join('/'));
const member: fc.Arbitrary<Member> = fc.record({
  path,
  kind: fc.constantFrom('file', 'file', 'directory', 'symlink', 'hardlink'),
  target: path,
  mode: fc.constantFrom(0o600, 0o755, 0o4711),
});

function kindAt(full: string): 'nothing' | 'directory' | 'other' {
  const stat = lstatSync(full, { throwIfNoEntry: false });
  if (stat === undefined) return 'nothing';
  return stat.isDirectory() ? 'directory' : 'other';
}

function makeParents(root: string, relative: string): void {
  const parent = dirname(relative);
  if (parent === '.') return;
  makeParents(root, parent);
  const full = join(root, parent);
  if (kindAt(full) === 'other') rmSync(full);
  if (kindAt(full) === 'nothing') mkdirSync(full, 0o755);
}

function hasRealParents(root: string, relative: string): boolean {
  const parent = dirname(relative);
  return (
    parent === '.' || (hasRealParents(root, parent) && kindAt(join(root, parent)) === 'directory')
  );
}

/** Whether the member can be unpacked; after one that cannot, the archive as a whole is refused. */
function unpackOne(root: string, { path: relative, kind, target, mode }: Member): boolean {
  makeParents(root, relative);
  const full = join(root, relative);
  if (kind === 'hardlink') {
    if (!hasRealParents(root, target) || kindAt(join(root, target)) !== 'other') return false;
  }
  const both = kind === 'directory' && kindAt(full) === 'directory';
  if (!both) rmSync(full, { recursive: true, force: true });
  if (kind === 'directory') {
    if (!both) mkdirSync(full);
    chmodSync(full, mode);
  } else if (kind === 'file') {
    writeFileSync(full, `${relative} ${mode}`);
    chmodSync(full, mode);
  } else if (kind === 'symlink') {
    symlinkSync(target, full);
  } else {
    linkSync(join(root, target), full);
  }
  return true;
}

function encode({ path: name, kind, target, mode }: Member): Buffer {
  if (kind === 'file') return tarMember({ name, mode }, `${name} ${mode}`);
  const type = { directory: '5', symlink: '2', hardlink: '1' }[kind];
  return tarMember({ name, mode, type, link: kind === 'directory' ? '' : target });
}

/** A link onto itself or into what it replaces is where tools differ; the builder's own tests have it. */
const isPlain = ({ kind, path: own, target }: Member) =>
  kind !== 'hardlink' || !`${target}/`.startsWith(`${own}/`);

let runs = 0;
it.runIf(isRoot)('comes out by the rule (needs root)', async () => {
  const members = fc.array(member.filter(isPlain), { minLength: 1, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(members, async (list) => {
      runs += 1;
      const root = join(work, `${runs}`);
      mkdirSync(root, 0o755);
      const fits = list.every((each) => unpackOne(root, each));
      const archive = `${root}.tar`;
      writeFileSync(archive, tarOf(...list.map(encode)));
      const building = buildSource(work, { kind: 'tar', path: archive });
      if (fits) {
        const ignored = ['mtimeNs', 'uid', 'gid', 'nlink'] as const;
        const { listing } = await building;
        expect(comparable(listing, ...ignored)).toEqual(comparable(listHost(root), ...ignored));
      } else {
        await expect(building).rejects.toMatchObject({ code: 'import-invalid' });
      }
      rmSync(root, { recursive: true });
      rmSync(archive);
    }),
    { seed: 20_260_102, numRuns: isLong ? 5000 : 100 },
  );
});
