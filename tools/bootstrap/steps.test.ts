import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readHost } from './host.mjs';
import { parseOptions } from './options.mjs';
import { PACKAGES } from './packages.mjs';
import { createReport } from './report.mjs';
import { digestOf, readStamp, writeStamp } from './stamp.mjs';
import { isInstalledAsLocked } from './step-modules.mjs';
import { neededRows } from './step-packages.mjs';
import { filesBelow, workspaceFolders } from './workspaces.mjs';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'dsec-bootstrap-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function write(path: string, content: unknown): string {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, typeof content === 'string' ? content : JSON.stringify(content));
  return full;
}

describe('parseOptions', () => {
  it('knows its options and refuses others', () => {
    expect(parseOptions(['--test', '--check'])).toEqual({ test: true, check: true, help: false });
    expect(() => parseOptions(['--tset'])).toThrow('unknown option --tset');
  });
});

describe('neededRows', () => {
  const host = { ...readHost(), arch: 'arm64', distributionNode: false };
  const names = (change: object, test: boolean) =>
    neededRows(PACKAGES, { ...host, ...change }, test).map(({ name }) => name);

  it('leaves out what the tests alone need', () => {
    expect(names({}, false)).toContain('gcc');
    expect(names({}, false)).not.toContain('libclang-rt-dev');
    expect(names({}, true)).toContain('clang');
    expect(names({}, false)).toContain('clang');
  });

  it('follows the processor and the origin of Node', () => {
    expect(names({}, true)).not.toContain('qemu-system-x86');
    expect(names({ arch: 'x64' }, true)).toContain('qemu-system-x86');
    expect(names({}, true)).not.toContain('libnode-dev');
    expect(names({ distributionNode: true }, true)).toContain('libnode-dev');
  });
});

describe('isInstalledAsLocked', () => {
  const entry = { version: '1.0.0', integrity: 'sha512-a' };
  const lock = (packages: object) => write('package-lock.json', { packages });
  const installed = (packages: object) => write('node_modules/.package-lock.json', { packages });

  it('compares the lock file with what npm recorded', () => {
    lock({ '': {}, 'packages/std': {}, 'node_modules/a': entry });
    expect(isInstalledAsLocked(root)).toBe(false);
    installed({ 'node_modules/a': entry });
    expect(isInstalledAsLocked(root)).toBe(false);
    write('node_modules/a/package.json', {});
    expect(isInstalledAsLocked(root)).toBe(true);
  });

  it('takes optional packages of other platforms as absent, and nothing else', () => {
    const optional = { ...entry, optional: true };
    lock({ 'node_modules/a': optional });
    installed({});
    expect(isInstalledAsLocked(root)).toBe(true);
    lock({ 'node_modules/a': entry });
    expect(isInstalledAsLocked(root)).toBe(false);
  });

  it('sees another version, another content and a package too many', () => {
    write('node_modules/a/package.json', {});
    lock({ 'node_modules/a': entry });
    for (const change of [{ version: '1.0.1' }, { integrity: 'sha512-b' }]) {
      installed({ 'node_modules/a': { ...entry, ...change } });
      expect(isInstalledAsLocked(root)).toBe(false);
    }
    write('node_modules/b/package.json', {});
    installed({ 'node_modules/a': entry, 'node_modules/b': entry });
    expect(isInstalledAsLocked(root)).toBe(false);
  });
});

describe('stamps', () => {
  it('change with content, names and absence, and not with time', () => {
    const a = write('a', 'x');
    const first = digestOf([a], ['more']);
    write('a', 'x');
    expect(digestOf([a], ['more'])).toBe(first);
    const others = [digestOf([a], ['mor', 'e']), digestOf([a]), digestOf([`${a}b`], ['more'])];
    write('a', 'y');
    expect(new Set([first, digestOf([a], ['more']), ...others]).size).toBe(5);
  });

  it('are written with their folder and read back', () => {
    const path = join(root, 'x/y/stamp');
    expect(readStamp(path)).toBe('');
    writeStamp(path, 'abc');
    expect(readStamp(path)).toBe('abc');
    expect(filesBelow(join(root, 'x'), '')).toEqual([join(root, 'x/y'), path]);
  });
});

describe('workspaceFolders', () => {
  it('expands packages/* to the folders with a manifest', () => {
    write('package.json', { workspaces: ['packages/*', 'bench'] });
    write('packages/b/package.json', {});
    write('packages/a/package.json', {});
    write('packages/notes/README.md', '');
    expect(workspaceFolders(root)).toEqual(['packages/a', 'packages/b']);
  });
});

describe('createReport', () => {
  it('prints plain lines where there is no terminal', () => {
    let text = '';
    let now = 0;
    const report = createReport({ write: (part: string) => (text += part) }, () => now);
    report.start('packages');
    report.note('installing make');
    report.progress('Unpacking');
    now = 1500;
    report.done('ready');
    expect(text).toBe('  packages     installing make …\n  packages        1.5 s  ready\n');
  });
});
