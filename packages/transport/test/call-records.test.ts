import { once } from 'node:events';
import { DsecError } from '@dsec/std';
import { afterEach, expect, it } from 'vitest';
import { type AnsweredRequest, connectWebSocket } from '../src/index.ts';
import { until } from './support/socket-pair.ts';
import { ask, rawConnection, startServer, stopAll } from './support/test-server.ts';

afterEach(stopAll);

it('tells of every request once, however it ended', async () => {
  const told: AnsweredRequest<string>[] = [];
  const { baseUrl, port } = await startServer(
    {
      show: async ({ params }) => ({ text: params.id }),
      remove: async () => {
        throw new DsecError('state-conflict', 'no');
      },
      download: async (_, { signal }) => ({
        body: (async function* () {
          yield Buffer.alloc(10);
          await once(signal, 'abort');
        })(),
      }),
      events: async () =>
        (async function* () {
          yield undefined;
          yield { id: 'c1', data: { text: 'x' } };
        })(),
      socket: async (_, __, channel) => {
        if ((await channel.receive()) === 'fail') throw new DsecError('agent-lost', 'gone');
      },
    },
    { onAnswered: (answered) => told.push(answered) },
  );
  await ask(baseUrl, '/v1/things/abc');
  await ask(baseUrl, '/v1/things/abc', { method: 'DELETE' });
  await ask(baseUrl, '/v1/nothing');
  const events = await ask(baseUrl, '/v1/things/abc/events');
  expect(events.body).toBe(': connected\n\n:\n\nid: c1\ndata: {"text":"x"}\n\n');
  for (const word of ['done', 'fail']) {
    const channel = await connectWebSocket({ baseUrl, target: '/v1/things/abc/socket' });
    await channel.send(word);
    await channel.closed;
  }
  const leaver = await rawConnection(port);
  leaver.write('GET /v1/things/abc/bytes HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(leaver, 'data');
  leaver.destroy();
  await until(() => told.length === 7);
  expect(
    told.map(({ operation, status, error, call }) => [
      operation,
      status,
      error?.code,
      call?.principal,
    ]),
  ).toEqual([
    ['show', 200, undefined, 'tester'],
    ['remove', 409, 'state-conflict', 'tester'],
    [undefined, 404, 'not-found', undefined],
    ['events', 200, undefined, 'tester'],
    ['socket', 101, undefined, 'tester'],
    ['socket', 101, 'agent-lost', 'tester'],
    ['download', 499, undefined, 'tester'],
  ]);
});
