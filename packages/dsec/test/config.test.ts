import { chmodSync, chownSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  checkStateDirectories,
  makeStateDirectories,
  makeStateDirectory,
  resolveStatePaths,
} from '../src/config.ts';

describe('resolveStatePaths', () => {
  afterEach(() => vi.unstubAllEnvs());

  it('prefers the option, then the environment', () => {
    vi.stubEnv('DSEC_STATE', '/from/environment');
    expect(resolveStatePaths('/from/option').store).toBe('/from/option/store');
    expect(resolveStatePaths(undefined).node).toBe('/from/environment/node');
  });

  it('makes a relative path absolute, so that workers find the same place', () => {
    expect(resolveStatePaths('state').root).toBe(resolve('state'));
  });

  it('never takes the working directory for a value that is empty', () => {
    vi.spyOn(process, 'getuid').mockReturnValue(1000);
    vi.stubEnv('DSEC_STATE', '');
    vi.stubEnv('XDG_DATA_HOME', '');
    expect(resolveStatePaths(undefined).root).toBe(join(homedir(), '.local', 'share', 'dsec'));
    expect(() => resolveStatePaths('')).toThrowError(/--state/);
    vi.restoreAllMocks();
  });

  it('has a default for root and for other users', () => {
    vi.stubEnv('DSEC_STATE', undefined);
    vi.spyOn(process, 'getuid').mockReturnValue(0);
    expect(resolveStatePaths(undefined).root).toBe('/var/lib/dsec');
    vi.spyOn(process, 'getuid').mockReturnValue(1000);
    vi.stubEnv('XDG_DATA_HOME', '/home/user/data');
    expect(resolveStatePaths(undefined).root).toBe('/home/user/data/dsec');
    vi.restoreAllMocks();
  });
});

describe('makeStateDirectory', () => {
  it('lets nobody else in', () => {
    const parent = mkdtempSync(join(tmpdir(), 'dsec-config-'));
    try {
      const path = join(parent, 'a', 'b');
      makeStateDirectory(path);
      makeStateDirectory(path);
      expect(statSync(path).mode & 0o777).toBe(0o700);
    } finally {
      rmSync(parent, { recursive: true });
    }
  });
});

describe('checkStateDirectories', () => {
  const spoilers: [string, (path: string) => void][] = [
    ['anybody may write', (path) => chmodSync(path, 0o777)],
    ['the group may write', (path) => chmodSync(path, 0o770)],
    ['anybody may write in its store', (path) => chmodSync(join(path, 'store'), 0o777)],
  ];
  // Only root can give a directory away.
  if (process.getuid?.() === 0) {
    spoilers.push(['somebody else owns', (path) => chownSync(path, 1000, 1000)]);
  }

  it.each(spoilers)('refuses a directory where %s', (_name, spoil) => {
    const path = mkdtempSync(join(tmpdir(), 'dsec-config-'));
    try {
      const paths = resolveStatePaths(path);
      checkStateDirectories(paths);
      makeStateDirectories(paths);
      checkStateDirectories(paths);
      spoil(path);
      const refusal = expect.objectContaining({ code: 'permission-denied' });
      expect(() => checkStateDirectories(paths)).toThrow(refusal);
      expect(() => makeStateDirectories(paths)).toThrow(refusal);
    } finally {
      rmSync(path, { recursive: true });
    }
  });
});
