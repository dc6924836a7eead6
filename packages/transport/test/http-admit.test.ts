import { DsecError } from '@dsec/std';
import { afterEach, expect, it } from 'vitest';
import { ask, exchange, startServer, stopAll } from './support/test-server.ts';

afterEach(stopAll);

it('asks who comes in before it reads a body', async () => {
  const admit = async () => {
    throw new DsecError('unauthenticated', 'no key');
  };
  const quick = { admit, limits: { lingerMs: 50 } };
  const { baseUrl } = await startServer(
    { echo: async () => ({ text: '' }), show: async () => ({ text: '' }) },
    quick,
  );
  const { port } = new URL(baseUrl);
  // The bodies never come.
  const head = 'host: localhost\r\ncontent-type: application/json\r\ncontent-length: 99';
  for (const [path, status] of [
    ['/v1/things/abc/echo', 401],
    ['/v1/nothing', 404],
  ]) {
    const sent = `POST ${path} HTTP/1.1\r\n${head}\r\n\r\n{`;
    expect(await exchange(Number(port), sent)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  }
  expect((await ask(baseUrl, '/v1/things/abc')).status).toBe(200);
});
