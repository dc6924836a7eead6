import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import {
  attach,
  type BytePath,
  createUserNamespace,
  fileSystemType,
  getXattr,
  type MountFd,
  mountClassic,
  mountDetached,
  mountErofs,
  mountFdOf,
  mountOverlay,
  mountSetattr,
  type OverlayLayer,
  openTree,
  openTreeAttr,
  setXattr,
  umount,
  unmount,
} from '@dsec/linux';
import { afterEach, describe, expect, it } from 'vitest';
import {
  inPrivateMountNamespace,
  isRoot,
  kernelIsAtLeast,
  programOf,
  scratchDirectory,
} from './linux-support.ts';
import { tinyErofs } from './linux-tiny-erofs.ts';

const canMount = isRoot && inPrivateMountNamespace();
const RERUN = 'DSEC_TEST_RERUN';
const scratch = scratchDirectory();
const takesDescriptors = kernelIsAtLeast(6, 13);
/** Clones and layers of mounts that are attached nowhere. */
const knowsDetached = kernelIsAtLeast(6, 15);

it.runIf(isRoot && !canMount && process.env[RERUN] === undefined)(
  'runs again in a mount namespace of its own (needs root, and to be outside of one)',
  () => {
    const vitest = [
      programOf('vitest', 'vitest.mjs') ?? 'vitest',
      'run',
      '--project',
      'integration',
    ];
    const command = [process.execPath, ...vitest, import.meta.filename];
    const result = spawnSync('unshare', ['-m', '--propagation', 'private', ...command], {
      encoding: 'utf8',
      env: { ...process.env, [RERUN]: '1' },
    });
    expect(result.stdout + result.stderr).toContain('passed');
    expect(result.status).toBe(0);
  },
);

let made = 0;
/** A new directory with these files. */
function tree(files: Readonly<Record<string, string>> = {}): string {
  const path = join(scratch, `tree${made++}`);
  mkdirSync(path);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

const undo: (() => void)[] = [];
afterEach(() => {
  for (const step of undo.splice(0).reverse()) step();
});

/** Attaches at a new directory until the end of the test. */
function shown(mount: MountFd): string {
  const target = tree();
  attach(mount, target);
  undo.push(() => unmount(target, { detach: true }));
  undo.push(() => mount.close());
  return target;
}

function image(content: string, onDevice = false) {
  const { meta, blob } = tinyErofs(content, { onDevice });
  const directory = tree();
  const metaPath = join(directory, 'meta');
  writeFileSync(metaPath, meta);
  if (blob === undefined) return { metaPath, devices: [] };
  writeFileSync(join(directory, 'blob'), blob);
  return { metaPath, devices: [join(directory, 'blob')] };
}

const mountTable = () => readFileSync('/proc/self/mountinfo', 'utf8');
const errno = (name: string) =>
  expect.objectContaining({ details: expect.objectContaining({ errnoName: name }) });

describe.runIf(canMount)('EROFS from files (needs root)', () => {
  it.each([
    ['in one file', false],
    ['with a device', true],
  ])('mounts an image %s, read-only, set-user-id kept', (_label, onDevice) => {
    const at = shown(mountErofs(image('from a layer', onDevice)));
    expect(fileSystemType(at)).toBe('erofs');
    expect(readFileSync(join(at, 'hello'), 'utf8')).toBe('from a layer');
    expect(statSync(join(at, 'hello')).mode & 0o7777).toBe(0o4755);
    expect(() => writeFileSync(join(at, 'hello'), 'x')).toThrow('EROFS');
    const line = mountTable()
      .split('\n')
      .find((row) => row.includes(` ${at} `));
    expect(line).toMatch(/ ro,relatime /);
    expect(line).not.toMatch(/nosuid|nodev/);
  });

  it('is in no mount table before it is attached, and gone when closed', () => {
    const before = mountTable();
    const mount = mountErofs(image('x'));
    expect(mountTable()).toBe(before);
    expect(readdirSync(`/proc/self/fd/${mount.fd}`)).toEqual(['hello']);
    mount.close();
    mount.close();
    expect(existsSync(`/proc/self/fd/${mount.fd}/hello`)).toBe(false);
  });

  it('takes attributes on top, and paths that are longer than a mount option may be', () => {
    const deep = join(tree(), 'd'.repeat(200), 'e'.repeat(200));
    mkdirSync(deep, { recursive: true });
    const { meta, blob } = tinyErofs('deep', { onDevice: true });
    writeFileSync(join(deep, 'meta'), meta);
    writeFileSync(join(deep, 'blob'), blob ?? '');
    const spec = { metaPath: join(deep, 'meta'), devices: [join(deep, 'blob')] };
    const at = shown(mountErofs({ ...spec, attributes: ['noSuid', 'noDev'] }));
    expect(readFileSync(join(at, 'hello'), 'utf8')).toBe('deep');
    expect(mountTable()).toContain(`${at} ro,nosuid,nodev,relatime`);
  });

  it('reads past the page cache below where asked', () => {
    const at = shown(mountErofs({ ...image('direct', true), directIo: true }));
    expect(readFileSync(join(at, 'hello'), 'utf8')).toBe('direct');
    expect(mountTable()).toContain('directio');
  });

  it('refuses what is no image or has no device, and leaves no descriptor behind', () => {
    const open = readdirSync('/proc/self/fd').length;
    const plain = join(tree({ file: 'x'.repeat(8192) }), 'file');
    expect(() => mountErofs({ metaPath: plain, devices: [] })).toThrowError(errno('EINVAL'));
    const { metaPath } = image('x', true);
    expect(() => mountErofs({ metaPath, devices: ['/nonexistent'] })).toThrowError(errno('ENOENT'));
    expect(() => mountErofs({ metaPath: '/nonexistent', devices: [] })).toThrowError(
      expect.objectContaining({ code: 'not-found' }),
    );
    expect(readdirSync('/proc/self/fd')).toHaveLength(open);
  });
});

type Form = 'descriptor' | 'path';

function overlayTests(form: Form): void {
  const overlay = (lower: readonly BytePath[], more: { upper?: string; work?: string } = {}) =>
    mountOverlay({ form, lower, ...more });

  it('stacks the topmost first and writes into the upper alone', () => {
    const [top, bottom] = [tree({ a: 'top' }), tree({ a: 'bottom', b: 'bottom' })];
    const [upper, work] = [tree(), tree()];
    const at = shown(overlay([top, bottom], { upper, work }));
    expect(readFileSync(join(at, 'a'), 'utf8')).toBe('top');
    writeFileSync(join(at, 'b'), 'changed');
    expect(readFileSync(join(upper, 'b'), 'utf8')).toBe('changed');
    expect(readFileSync(join(bottom, 'b'), 'utf8')).toBe('bottom');
    expect(mountTable()).toMatch(new RegExp(`${at} rw,nodev,relatime .*redirect_dir=nofollow`));
  });

  it('is read-only without an upper', () => {
    const at = shown(overlay([tree({ a: '1' }), tree({ b: '2' })]));
    expect(readdirSync(at)).toEqual(['a', 'b']);
    expect(() => writeFileSync(join(at, 'c'), '')).toThrow('EROFS');
  });

  it('takes names with every awkward byte, and long ones', () => {
    const parent = tree();
    const awkward = ['back\\slash', 'co:lon', 'com,ma', 'new\nline', 'l'.repeat(255)];
    const lower = awkward.map((name, i) => {
      mkdirSync(join(parent, name));
      writeFileSync(join(parent, name, String(i)), '');
      return join(parent, name);
    });
    const bytes = Buffer.concat([Buffer.from(`${parent}/`), Buffer.from([0xff, 0xfe])]);
    mkdirSync(bytes);
    const at = shown(overlay([...lower, bytes]));
    expect(readdirSync(at)).toEqual(['0', '1', '2', '3', '4']);
    for (const name of ['up\\per', 'wo\\rk']) mkdirSync(join(parent, name));
    const [upper, work] = [join(parent, 'up\\per'), join(parent, 'wo\\rk')];
    writeFileSync(join(shown(overlay(lower, { upper, work })), 'new'), 'x');
    expect(readFileSync(join(upper, 'new'), 'utf8')).toBe('x');
  });

  it('does not follow a planted redirect', () => {
    const planted = tree();
    const hidden = tree();
    mkdirSync(join(planted, 'x'));
    mkdirSync(join(hidden, 'answers'));
    writeFileSync(join(hidden, 'answers/a'), 'the answer');
    setXattr(join(planted, 'x'), 'trusted.overlay.redirect', Buffer.from('/answers'));
    const at = shown(overlay([planted, hidden]));
    let seen: string;
    try {
      seen = readdirSync(join(at, 'x')).join();
    } catch (error) {
      seen = String((error as NodeJS.ErrnoException).code);
    }
    expect(seen).toBe('EPERM');
  });

  it('takes 500 layers', () => {
    const lower = Array.from({ length: 500 }, (_, i) => tree({ [`f${i}`]: '' }));
    expect(readdirSync(shown(overlay(lower)))).toHaveLength(500);
  });

  it('says what is wrong with a layer', () => {
    expect(() => overlay(['/nonexistent', tree()])).toThrowError(
      expect.objectContaining({ code: 'not-found' }),
    );
  });
}

describe.runIf(canMount)('overlay by path (needs root)', () => overlayTests('path'));
describe.runIf(canMount && takesDescriptors)(
  'overlay by descriptor (needs root and Linux 6.13)',
  () => overlayTests('descriptor'),
);

describe.runIf(canMount && knowsDetached)(
  'overlay of detached mounts (needs root and Linux 6.15)',
  () => {
    it('composes layers that are in no mount table', () => {
      const before = mountTable();
      const layers: OverlayLayer[] = ['one', 'two'].map((text) => mountErofs(image(text)));
      const mount = mountOverlay({
        form: 'descriptor',
        lower: layers,
        upper: tree(),
        work: tree(),
        volatile: true,
      });
      expect(mountTable()).toBe(before);
      for (const layer of layers as MountFd[]) layer.close();
      const at = shown(mount);
      expect(readFileSync(join(at, 'hello'), 'utf8')).toBe('one');
      chmodSync(join(at, 'hello'), 0o600);
      expect(statSync(join(at, 'hello')).mode & 0o777).toBe(0o600);
    });
  },
);

describe.runIf(canMount)('targets (needs root)', () => {
  it('attaches onto an opened directory, and does not follow a link at the end of a path', () => {
    const mount = mountErofs(image('x'));
    const target = tree();
    symlinkSync(target, `${target}-link`);
    expect(() => attach(mount, `${target}-link`)).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
    const fd = openSync(target, 'r');
    attach(mount, { fd });
    closeSync(fd);
    mount.close();
    expect(readdirSync(target)).toEqual(['hello']);
    expect(() => unmount(`${target}-link`)).toThrowError(errno('EINVAL'));
    unmount(target);
    expect(readdirSync(target)).toEqual([]);
  });

  it('says that a busy mount is busy, and detaches it', () => {
    const at = shown(mountErofs(image('x')));
    const fd = openSync(join(at, 'hello'), 'r');
    expect(() => unmount(at)).toThrowError(expect.objectContaining({ code: 'conflict' }));
    unmount(at, { detach: true });
    undo.splice(0, 1);
    expect(readFileSync(`/proc/self/fd/${fd}`, 'utf8')).toBe('x');
    closeSync(fd);
  });
});

describe.runIf(canMount)('changing mounts (needs root)', () => {
  it('clones a tree and sets attributes on the clone alone', () => {
    const source = tree({ a: '' });
    const clone = shown(mountFdOf(openTreeAttr(source, { set: ['readOnly', 'noExec'] })));
    expect(mountTable()).toMatch(new RegExp(`${clone} ro,noexec`));
    writeFileSync(join(source, 'b'), '');
    expect(() => writeFileSync(join(clone, 'c'), '')).toThrow('EROFS');
    mountSetattr(clone, { clear: ['readOnly'] });
    writeFileSync(join(clone, 'c'), '');
  });

  it('shifts ids of a layer for a user namespace', async () => {
    const namespaceFd = await createUserNamespace({ inside: 0, outside: 100_000, count: 65_536 });
    const attached = shown(mountErofs(image('x')));
    const change = { idmapUserNamespaceFd: namespaceFd };
    const clones = [openTreeAttr(attached, change)];
    if (knowsDetached) {
      const detached = mountErofs(image('x'));
      clones.push(openTreeAttr({ fd: detached.fd }, change));
      detached.close();
    }
    closeSync(namespaceFd);
    for (const clone of clones) {
      const at = shown(mountFdOf(clone));
      expect(statSync(join(at, 'hello'))).toMatchObject({ uid: 100_000, gid: 100_000 });
    }
    expect(statSync(join(attached, 'hello')).uid).toBe(0);
  });

  it('makes a tmpfs by the new calls and a bind mount by the old one', () => {
    const parameters = [
      { kind: 'string', key: 'size', value: '1m' },
      { kind: 'string', key: 'nr_inodes', value: '4' },
    ] as const;
    const at = shown(mountFdOf(mountDetached('tmpfs', parameters, ['noSuid'])));
    writeFileSync(join(at, 'a'), 'x');
    expect(() => writeFileSync(join(at, 'big'), Buffer.alloc(2 ** 21))).toThrow('ENOSPC');
    const target = tree();
    mountClassic({ source: at, target, flags: ['bind'] });
    expect(readFileSync(join(target, 'a'), 'utf8')).toBe('x');
    umount(target);
    expect(() => mountClassic({ target, type: 'tmpfs', data: 'x'.repeat(4096) })).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
  });

  it('reports what the kernel logged about a bad option', () => {
    const bad = [{ kind: 'string', key: 'no_such_option', value: '1' }] as const;
    expect(() => mountDetached('tmpfs', bad, [])).toThrowError(
      expect.objectContaining({
        code: 'invalid-argument',
        details: expect.objectContaining({ kernelLog: expect.stringContaining('no_such_option') }),
      }),
    );
    expect(() => mountDetached('no-such-fs', [], [])).toThrowError(
      expect.objectContaining({ code: 'unsupported' }),
    );
  });

  it('reads extended attributes through a mount descriptor', () => {
    const source = tree();
    setXattr(source, 'user.mark', Buffer.from('1'));
    const mount = mountFdOf(openTree(source, { clone: true }));
    expect(getXattr(mount.fd, 'user.mark')?.toString()).toBe('1');
    mount.close();
  });
});
