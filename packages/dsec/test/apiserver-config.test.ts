import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  type ApiserverCommandOptions,
  apiserverConfigOf,
  edgeOf,
} from '../src/apiserver-config.ts';
import { resolveStatePaths } from '../src/config.ts';

const paths = resolveStatePaths('/state');
const options: ApiserverCommandOptions = {
  ...{ listen: '127.0.0.1:7720', edges: undefined, edge: ['a=unix:/run/a.sock'] },
  ...{ ticketKey: 'key.json', store: undefined, platformProject: 'platform' },
  ...{ clientFile: undefined, project: 'default', principal: 'operator', watchMs: '1000' },
  ...{ allowHost: [], logLevel: 'info', rateLimit: '2000' },
  ...{ tlsCert: undefined, tlsKey: undefined },
};

test('an edge is [SHARD/]ID=ADDRESS, on loopback or a socket', () => {
  expect(edgeOf('s2/b=127.0.0.1:7721')).toEqual({
    ...{ edgeId: 'b', shardId: 's2', address: { host: '127.0.0.1', port: 7721 } },
  });
  expect(edgeOf('a=unix:/run/a.sock')).toMatchObject({ edgeId: 'a', shardId: 'local' });
  for (const text of [
    '',
    'a',
    'a=',
    '=unix:/x',
    'A=unix:/x',
    'a=10.0.0.1:1',
    'a=evil.example:80',
  ]) {
    expect(() => edgeOf(text), text).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
  }
});

test('the store is in the state directory unless it is named', () => {
  expect(apiserverConfigOf(options, paths).storeFile).toBe('/state/apiserver.db');
  expect(apiserverConfigOf({ ...options, store: '/x.db' }, paths).storeFile).toBe('/x.db');
});

test('what is encrypted may come from anywhere', () => {
  const tls = { tlsCert: '/c.pem', tlsKey: '/k.pem' };
  const at = (listen: string) => apiserverConfigOf({ ...options, ...tls, listen }, paths);
  expect(at('0.0.0.0:443')).toMatchObject({
    listen: { host: '0.0.0.0', port: 443 },
    tls: { certFile: '/c.pem', keyFile: '/k.pem' },
  });
  expect(at('[::]:443').listen).toEqual({ host: '::', port: 443 });
  expect(at('unix:/run/x.sock').listen).toEqual({ socketPath: '/run/x.sock' });
});

test.each([
  ['no edge', { edge: [] }],
  ['no key', { ticketKey: undefined }],
  ['a level that is none', { logLevel: 'loud' }],
  ['a project that is none', { project: 'Not A Name' }],
  ['an address that is not here', { listen: '0.0.0.0:80' }],
  ['a time that is none', { watchMs: 'soon' }],
  ['a rate that is none', { rateLimit: '0' }],
  ['a certificate without a key', { tlsCert: 'c.pem' }],
  ['a name to listen at', { listen: 'dsec.example:443', tlsCert: 'c.pem', tlsKey: 'k.pem' }],
])('refuses %s', (_what, change) => {
  expect(() => apiserverConfigOf({ ...options, ...change }, paths)).toThrowError(
    expect.objectContaining({ code: 'invalid-argument' }),
  );
});

test('edges from a file are added to those that are named', () => {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-edges-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const edges = join(directory, 'edges.json');
  writeFileSync(edges, JSON.stringify([{ edge: 'b', address: '127.0.0.1:1' }]));
  const config = apiserverConfigOf({ ...options, edges }, paths);
  expect(config.edges.map(({ edgeId }) => edgeId)).toEqual(['b', 'a']);
  writeFileSync(edges, '{"not": "a list"}');
  expect(() => apiserverConfigOf({ ...options, edges }, paths)).toThrowError(
    expect.objectContaining({ code: 'invalid-argument' }),
  );
});
