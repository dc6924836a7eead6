import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Key } from '@dsec/protocol';
import { DsecError as CodedError } from '@dsec/std';
import { expect, it, onTestFinished, vi } from 'vitest';
import { Client, findServer, SecretLostError } from '../src/index.ts';
import { clientOf, startFake, stopLater } from './support/fake-server.ts';

const KEY: Key = {
  ...{ id: 'ke-aaaaaaaaaaaaaaaa', name: 'k', project: 'p', principal: 'u' },
  ...{ scopes: ['exec'], createdAtMs: 1 },
};
const SECRET = `dsec_${'s'.repeat(43)}`;

it('a key comes with its secret', async () => {
  const client = await clientOf({
    createKey: async () => ({ key: KEY, secret: SECRET }),
    rotateKey: async () => ({ key: KEY, secret: SECRET }),
  });
  expect(await client.keys.create('k', ['exec'])).toEqual({ key: KEY, secret: SECRET });
  expect(await client.keys.rotate(KEY.id, { graceMs: 0 })).toEqual({ key: KEY, secret: SECRET });
});

it('one whose secret was lost with the answer that told it is an error that names it', async () => {
  let asked = 0;
  const lose = async () => {
    asked += 1;
    // The first answer got lost; a repetition is not told the secret.
    if (asked % 2 === 1) throw new CodedError('unavailable', 'the connection broke');
    return { key: KEY };
  };
  const client = await clientOf({ createKey: lose, rotateKey: lose });
  for (const ask of [() => client.keys.create('k', ['exec']), () => client.keys.rotate(KEY.id)]) {
    const error = await ask().catch((thrown) => thrown);
    expect(error).toBeInstanceOf(SecretLostError);
    expect(error).toMatchObject({ code: 'secret-lost', details: { keyId: KEY.id } });
    expect(error.message).toContain(KEY.id);
    expect(error.remedy).toMatch(/Revoke the key and make another/);
  }
});

it('a key of a file that is refused is read from it again, for the same server only', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-keys-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'client.json');
  const seen: (string | undefined)[] = [];
  let good = 'first';
  const url = await startFake({
    async getVersion(_, { headers }) {
      seen.push(headers.authorization);
      if (headers.authorization !== `Bearer ${good}`) throw new CodedError('unauthenticated', 'no');
      return { version: '1', api: 'v1', frames: 1 };
    },
  });
  const write = (apiKey: string, at = url) =>
    writeFileSync(file, JSON.stringify({ url: at, apiKey }));
  write('first');
  vi.stubEnv('DSEC_CLIENT', file);
  const client = new Client();
  vi.unstubAllEnvs();
  stopLater(() => client.close());
  await client.version();
  good = 'second';
  write('second', 'http://127.0.0.1:1');
  await expect(client.version()).rejects.toMatchObject({ code: 'unauthenticated' });
  write('second');
  await Promise.all([client.version(), client.version()]);
  await client.version();
  expect(seen.at(-1)).toBe('Bearer second');
  // A key that was given is not looked for anywhere.
  const given = findServer({ apiKey: 'third' }, { DSEC_CLIENT: file });
  expect(given).toEqual({ url, apiKey: 'third' });
});
