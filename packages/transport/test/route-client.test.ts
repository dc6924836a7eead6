import { DsecError } from '@dsec/std';
import { afterEach, describe, expect, it } from 'vitest';
import { callRoute, createHttpClient, type HttpClient } from '../src/index.ts';
import {
  startServer,
  stopAll,
  stopLater,
  TABLE,
  type TestHandlers,
} from './support/test-server.ts';

afterEach(stopAll);

async function clientOf(handlers: TestHandlers): Promise<HttpClient> {
  const { baseUrl } = await startServer(handlers);
  const client = createHttpClient({ baseUrl });
  stopLater(() => client.close());
  return client;
}

const params = { id: 'abc' };

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe('callRoute', () => {
  it('carries every kind of body and answer', async () => {
    const client = await clientOf({
      echo: async ({ body, query }) => ({ text: body.text.repeat(query.times ?? 1) }),
      show: async ({ params: { id } }) => ({ text: id }),
      remove: async () => undefined,
      poke: async () => 'poked \u00e9',
      upload: async ({ body }) => {
        const chunks: Uint8Array[] = [];
        for await (const chunk of body) chunks.push(chunk);
        return { text: Buffer.concat(chunks).toString() };
      },
      download: async () => ({
        headers: { 'dsec-offset': '12' },
        body: (async function* () {
          yield Buffer.from('some ');
          yield Buffer.from('bytes');
        })(),
      }),
      lines: async () =>
        (async function* () {
          yield { text: 'one' };
          yield { text: 'two \u00e9\n' };
        })(),
      events: async () =>
        (async function* () {
          yield { id: 'c1', data: { text: 'first\nline' } };
          yield { id: 'c2', data: { text: 'second' } };
        })(),
    });
    const body = { text: 'ab' };
    expect(await callRoute(client, TABLE.echo, { params, query: { times: 2 }, body })).toEqual({
      text: 'abab',
    });
    expect(await callRoute(client, TABLE.show, { params })).toEqual({ text: 'abc' });
    expect(await callRoute(client, TABLE.remove, { params })).toBeUndefined();
    expect(await callRoute(client, TABLE.poke, { params })).toBe('poked \u00e9');
    const bytes = (async function* () {
      yield Buffer.from('up');
      yield Buffer.from('load');
    })();
    expect(await callRoute(client, TABLE.upload, { params, body: bytes })).toEqual({
      text: 'upload',
    });
    const download = await callRoute(client, TABLE.download, { params });
    expect(download.headers).toEqual({ 'dsec-offset': '12' });
    expect(Buffer.concat(await all(download.body)).toString()).toBe('some bytes');
    expect(await all(await callRoute(client, TABLE.lines, { params }))).toEqual([
      { text: 'one' },
      { text: 'two \u00e9\n' },
    ]);
    expect(await all(await callRoute(client, TABLE.events, { params }))).toEqual([
      { id: 'c1', data: { text: 'first\nline' } },
      { id: 'c2', data: { text: 'second' } },
    ]);
  });

  it('refuses a bad body before it is sent, and a bad answer', async () => {
    let calls = 0;
    const client = await clientOf({
      echo: async ({ body }) => {
        calls += 1;
        return body;
      },
      poke: async () => 'x',
    });
    const wrong = { params, body: { text: 1 } as never };
    await expect(callRoute(client, TABLE.echo, wrong)).rejects.toMatchObject({
      code: 'invalid-argument',
    });
    expect(calls).toBe(0);
    const other = { ...TABLE.poke, reply: TABLE.show.reply };
    await expect(callRoute(client, other, { params })).rejects.toMatchObject({ code: 'protocol' });
    await expect(callRoute(client, TABLE.socket, { params })).rejects.toMatchObject({
      code: 'invalid-argument',
    });
  });

  it('brings errors of the handler, also from the middle of a stream', async () => {
    const client = await clientOf({
      show: async () => {
        throw new DsecError('state-conflict', 'stopped', { details: { state: 'stopped' } });
      },
      lines: async () =>
        (async function* () {
          yield { text: 'one' };
          throw new DsecError('agent-lost', 'gone');
        })(),
    });
    await expect(callRoute(client, TABLE.show, { params })).rejects.toMatchObject({
      code: 'state-conflict',
      message: 'stopped',
      details: { state: 'stopped' },
    });
    const lines = await callRoute(client, TABLE.lines, { params });
    const seen: string[] = [];
    const read = async () => {
      for await (const line of lines) seen.push(line.text);
    };
    await expect(read()).rejects.toMatchObject({ code: 'unavailable' });
    expect(seen.length).toBeLessThanOrEqual(1);
  });
});
