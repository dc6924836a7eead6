import { ROUTES } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { createHttpServer } from '@dsec/transport';
import { expect, it, onTestFinished } from 'vitest';
import type { Invocation } from '../src/command-line/invocation.ts';
import { run } from '../src/commands/key-create.ts';

it('a key whose secret was lost on its way is revoked, and that is said', async () => {
  const revoked: string[] = [];
  let asked = 0;
  const server = await createHttpServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, routes: ROUTES, authorize: async () => 'me' },
    handlers: {
      async createKey({ body: { name, scopes } }) {
        asked += 1;
        // The key is made, and the answer is lost; who asks again is not told the secret.
        if (asked === 1) throw new DsecError('unavailable', 'the connection broke');
        const id = 'ke-aaaaaaaaaaaaaaaa';
        return { key: { id, name, project: 'p', principal: 'u', scopes, createdAtMs: 1 } };
      },
      async revokeKey({ params }) {
        revoked.push(params.keyId);
        return undefined;
      },
    },
  });
  onTestFinished(() => server.close(100));
  const port = 'port' in server.address ? server.address.port : 0;
  const setting = (value: string) => ({ value, source: 'option' });
  const settings = { url: setting(`http://127.0.0.1:${port}`), apiKey: setting('dsec_x') };
  const invocation = { args: ['mine'], flags: {}, json: false, settings } as unknown as Invocation;
  await expect(run(invocation)).rejects.toMatchObject({
    ...{ code: 'secret-lost', details: { keyId: 'ke-aaaaaaaaaaaaaaaa' } },
    message: expect.stringContaining('revoked: make another'),
  });
  expect(asked).toBe(2);
  expect(revoked).toEqual(['ke-aaaaaaaaaaaaaaaa']);
});
