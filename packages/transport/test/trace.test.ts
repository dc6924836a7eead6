import { DsecError } from '@dsec/std';
import { afterEach, expect, it } from 'vitest';
import { newTraceparent, requestIdOf, traceparentOf } from '../src/trace.ts';
import { ask, startServer, stopAll } from './support/test-server.ts';

afterEach(stopAll);

it('keeps what is valid and replaces what is not', () => {
  const good = '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01';
  expect(traceparentOf(good)).toBe(good);
  const zero = '0'.repeat(32);
  for (const bad of [
    undefined,
    '',
    `${good}x`,
    good.toUpperCase(),
    `00-${zero}-${'1'.repeat(16)}-00`,
  ]) {
    const made = traceparentOf(bad);
    expect(made).not.toBe(bad);
    expect(traceparentOf(made)).toBe(made);
  }
  expect(newTraceparent()).not.toBe(newTraceparent());
  expect(requestIdOf('abc.1-2_X')).toBe('abc.1-2_X');
  for (const bad of [undefined, '', 'a b', 'a'.repeat(65), 'a\u001b[31m']) {
    expect(requestIdOf(bad)).toMatch(/^[A-Za-z0-9_-]{16}$/);
  }
});

it('names request and trace in every answer, as the handler sees them', async () => {
  const seen: unknown[] = [];
  const { baseUrl } = await startServer({
    show: async (_, { requestId, traceparent }) => {
      seen.push([requestId, traceparent]);
      throw new DsecError('not-found', 'no such thing');
    },
  });
  const { headers } = await ask(baseUrl, '/v1/things/abc', {});
  expect(seen).toEqual([[headers['x-request-id'], headers.traceparent]]);
  const nowhere = await ask(baseUrl, '/nowhere', { headers: { traceparent: 'none' } });
  expect(nowhere.headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
});
