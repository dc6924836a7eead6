import { generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { resolveStatePaths } from '../src/config.ts';
import { edgeConfigOf, listenAddressOf, readTicketKeys } from '../src/edge-config.ts';

const directory = mkdtempSync(join(tmpdir(), 'dsec-edge-config-'));
afterAll(() => rmSync(directory, { recursive: true }));

const OPTIONS = {
  ...{ edgeId: 'e1', shardId: 's1', backend: 'sim', ticketKeys: '/keys.json' },
  ...{ logLevel: 'info', keepEndedMs: '600000' },
};
const PATHS = resolveStatePaths('/srv/dsec');

const invalid = expect.objectContaining({ code: 'invalid-argument' });

describe('edgeConfigOf', () => {
  it('serves at a socket of the state root, unless told otherwise', () => {
    const config = edgeConfigOf(OPTIONS, PATHS);
    expect(config).toMatchObject({
      ...{ edgeId: 'e1', shardId: 's1', backend: 'sim', keepEndedMs: 600_000 },
      listen: { socketPath: '/srv/dsec/run/edge.sock' },
    });
    expect(config.launcherProgram).toMatch(/native\/build\/dsec-launcher$/);
  });

  it.each([
    { edgeId: 'Not an id' },
    { shardId: 'longerthan8' },
    { backend: 'docker' },
    { logLevel: 'loud' },
    { keepEndedMs: 'long' },
    { listen: '0.0.0.0:80' },
    { platformProject: '../x' },
  ])('refuses %o', (changes) => {
    expect(() => edgeConfigOf({ ...OPTIONS, ...changes }, PATHS)).toThrow(invalid);
  });
});

describe('listenAddressOf', () => {
  it.each([
    ['unix:/run/x.sock', { socketPath: '/run/x.sock' }],
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['[::1]:8080', { host: '::1', port: 8080 }],
  ])('%s', (text, address) => {
    expect(listenAddressOf(text)).toEqual(address);
  });

  it.each(['', 'unix:relative', '127.0.0.1', '127.0.0.1:65536', 'localhost:80', '10.0.0.1:80'])(
    'refuses %j: only this machine calls an edge in the clear',
    (text) => {
      expect(() => listenAddressOf(text)).toThrow(invalid);
    },
  );
});

describe('readTicketKeys', () => {
  const write = (content: unknown): string => {
    const path = join(directory, 'keys.json');
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  };
  const pemOf = ({ publicKey }: KeyPairKeyObjectResult) =>
    publicKey.export({ type: 'spki', format: 'pem' });

  it('reads keys by their ids', () => {
    const pair = generateKeyPairSync('ed25519');
    const keys = readTicketKeys(write({ a: pemOf(pair) }));
    expect([...keys.keys()]).toEqual(['a']);
    expect(keys.get('a')?.equals(pair.publicKey)).toBe(true);
  });

  it('refuses everything else', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 });
    for (const content of ['', 'no json', {}, { a: 'no key' }, { a: pemOf(rsa) }, []]) {
      expect(() => readTicketKeys(write(content))).toThrow(invalid);
    }
    expect(() => readTicketKeys(join(directory, 'absent'))).toThrow(/ENOENT/);
  });
});
