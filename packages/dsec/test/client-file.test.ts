import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openIam } from '@dsec/iam';
import { type PrincipalId, type ProjectId, systemClock, systemRandom } from '@dsec/std';
import { createMemoryStore } from '@dsec/store';
import { expect, onTestFinished, test } from 'vitest';
import { ensureClientFile, placeOf, readClientFile, urlOf } from '../src/client-file.ts';
import { readTicketKeys } from '../src/edge-config.ts';
import { ensureTicketKeys, readTicketKey } from '../src/ticket-key-files.ts';
import { CERTIFICATE } from './certificate.ts';

const owner = { project: 'default' as ProjectId, principal: 'operator' as PrincipalId };
const here = { host: '127.0.0.1', port: 7720 };

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'dsec-client-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

test('a key stays while it is good, and is made anew when it is not; nobody else can read it', async () => {
  const path = join(directory(), 'client.json');
  const iam = openIam({ store: createMemoryStore(), clock: systemClock, random: systemRandom });
  const first = await ensureClientFile(path, placeOf(here), iam, owner);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(await iam.authenticate(`Bearer ${first.apiKey}`)).toMatchObject(owner);
  expect(await ensureClientFile(path, placeOf(here), iam, owner)).toEqual(first);
  const moved = await ensureClientFile(path, placeOf({ ...here, port: 1 }), iam, owner);
  expect(moved).toEqual({ url: 'http://127.0.0.1:1', apiKey: first.apiKey });
  const { keyId } = await iam.authenticate(`Bearer ${first.apiKey}`);
  await iam.revoke(keyId);
  const renewed = await ensureClientFile(path, placeOf(here), iam, owner);
  expect(renewed.apiKey).not.toBe(first.apiKey);
  expect(readClientFile(path)).toEqual(renewed);
});

test('what is no such file is none', () => {
  const path = join(directory(), 'client.json');
  expect(readClientFile(path)).toBeUndefined();
  for (const text of ['', '{', 'null', '{"url": 1, "apiKey": "x"}']) {
    writeFileSync(path, text);
    expect(readClientFile(path)).toBeUndefined();
  }
});

test('addresses as clients take them', () => {
  expect(urlOf(here)).toBe('http://127.0.0.1:7720');
  expect(urlOf({ host: '::1', port: 1 })).toBe('http://[::1]:1');
  expect(urlOf({ socketPath: '/run/x.sock' })).toBe('unix:/run/x.sock');
});

test('a server with TLS is called by a name of its certificate, which may vouch for itself', () => {
  const file = join(directory(), 'cert.pem');
  writeFileSync(file, CERTIFICATE);
  const any = { host: '0.0.0.0', port: 443 };
  expect(placeOf(any, file, ['dsec.example', '10.0.0.1'])).toEqual({
    ...{ url: 'https://dsec.example:443', caFile: file },
  });
  const names = ['dsec.example', '127.0.0.1'];
  expect(placeOf({ ...any, host: '127.0.0.1' }, file, names).url).toBe('https://127.0.0.1:443');
  expect(placeOf({ socketPath: '/run/x.sock' }, file)).toEqual({ url: 'unix:/run/x.sock' });
});

test('a pair of ticket keys is made once, and is one', () => {
  const path = join(directory(), 'keys');
  const files = ensureTicketKeys(path);
  const text = readFileSync(files.privateFile, 'utf8');
  expect(ensureTicketKeys(path)).toEqual(files);
  expect(readFileSync(files.privateFile, 'utf8')).toBe(text);
  expect(statSync(files.privateFile).mode & 0o777).toBe(0o600);
  const { id } = readTicketKey(files.privateFile);
  expect([...readTicketKeys(files.publicFile).keys()]).toEqual([id]);
  rmSync(files.publicFile);
  expect(() => ensureTicketKeys(path)).toThrowError(expect.objectContaining({ code: 'data-loss' }));
});
