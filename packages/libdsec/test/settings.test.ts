import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { findServer } from '../src/index.ts';

let root = '';

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'dsec-settings-'));
  vi.stubEnv('HOME', join(root, 'home'));
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true, force: true });
});

function writeClient(directory: string, url: string): string {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, 'client.json');
  writeFileSync(path, JSON.stringify({ url, apiKey: `key of ${url}` }));
  return path;
}

describe('findServer', () => {
  it('takes what is given before the environment, and that before files', () => {
    const state = join(root, 'state');
    writeClient(state, 'http://state');
    const env = { DSEC_URL: 'http://env', DSEC_API_KEY: 'env', DSEC_STATE: state };
    expect(findServer({ url: 'http://given', apiKey: 'given' }, env)).toEqual({
      url: 'http://given',
      apiKey: 'given',
    });
    expect(findServer({}, env)).toEqual({ url: 'http://env', apiKey: 'env' });
    expect(findServer({ apiKey: 'other' }, env)).toEqual({ url: 'http://env', apiKey: 'other' });
    expect(findServer({}, { DSEC_STATE: state }).url).toBe('http://state');
  });

  it('looks at the file that is named alone, else at those of the user and of the state', () => {
    const named = writeClient(join(root, 'named'), 'http://named');
    const state = join(root, 'state');
    writeClient(state, 'http://state');
    const env = { DSEC_STATE: state };
    expect(findServer({}, { ...env, DSEC_CLIENT: named }).url).toBe('http://named');
    writeClient(join(root, 'home/.config/dsec'), 'http://home');
    expect(findServer({}, env).url).toBe('http://home');
    expect(() => findServer({}, { ...env, DSEC_CLIENT: join(root, 'none') })).toThrow(
      /DSEC_CLIENT/,
    );
  });

  it('says that a file is there which this user may not read', () => {
    const state = join(root, 'state');
    mkdirSync(state);
    // A link to itself is refused to root too.
    symlinkSync('client.json', join(state, 'client.json'));
    expect(() => findServer({}, { DSEC_STATE: state })).toThrow(
      /no server is known .*state\/client\.json cannot be read/,
    );
  });

  it('sends the key of a file to the server of that file alone', () => {
    const file = writeClient(root, 'http://mine');
    const env = { DSEC_CLIENT: file };
    expect(findServer({ url: 'http://mine' }, env).apiKey).toBe('key of http://mine');
    expect(() => findServer({ url: 'http://theirs' }, env)).toThrow(
      expect.objectContaining({ code: 'unauthenticated' }),
    );
    expect(findServer({ apiKey: 'k' }, env)).toEqual({ url: 'http://mine', apiKey: 'k' });
  });

  it('says what to do when nothing is known, and does not show what a broken file holds', () => {
    const env = { DSEC_STATE: join(root, 'nothing') };
    expect(() => findServer({}, env)).toThrow(/dsec up/);
    const broken = join(root, 'broken.json');
    writeFileSync(broken, '{"apiKey": "secret');
    expect(() => findServer({}, { DSEC_CLIENT: broken })).toThrow(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
    expect(() => findServer({}, { DSEC_CLIENT: broken })).not.toThrow(/secret/);
  });
});
